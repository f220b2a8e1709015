//! Looking a name up, on a thread of its own.
//!
//! The system's lookup cannot be given up: where no name service answers it goes on for half a
//! minute. On a thread of the runtime's pool, all that waits for a disk would wait for it.

use std::io;
use std::net::SocketAddr;
use std::thread;

use tokio::sync::oneshot;

type LookupResult = io::Result<Vec<SocketAddr>>;

/// The lookup under way, if there is one.
#[derive(Debug, Default)]
pub(super) struct Lookup(Option<oneshot::Receiver<LookupResult>>);

impl Lookup {
    /// Begins one.
    pub(super) fn begin(&mut self, look_up: impl FnOnce() -> LookupResult + Send + 'static) {
        let (found, hears) = oneshot::channel();
        self.0 = Some(hears);
        let thread = thread::Builder::new().name("lookup".to_owned());
        // Whoever wanted to know may be gone when it ends.
        if let Err(error) = thread.spawn(move || drop(found.send(look_up()))) {
            let (failed, hears) = oneshot::channel();
            self.0 = Some(hears);
            let _heard = failed.send(Err(error));
        }
    }

    /// What it came to. Comes back once for each lookup, and not while there is none.
    pub(super) async fn ended(&mut self) -> LookupResult {
        let Some(hears) = &mut self.0 else { return std::future::pending().await };
        let found = hears.await;
        self.0 = None;
        found.unwrap_or_else(|_lost| Err(io::Error::other("the lookup broke off")))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn lookups_that_hang_keep_nobody_else_from_their_work() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (answer, silence) = mpsc::channel();
            let mut lookup = Lookup::default();
            lookup.begin(move || silence.recv().map_err(io::Error::other));
            assert_eq!(tokio::task::spawn_blocking(|| "done").await.unwrap(), "done");

            let there: SocketAddr = "192.0.2.1:8078".parse().unwrap();
            answer.send(vec![there]).unwrap();
            assert_eq!(lookup.ended().await.unwrap(), [there]);
            lookup.begin(|| Err(io::Error::other("no such name")));
            assert_eq!(lookup.ended().await.unwrap_err().to_string(), "no such name");
        });
    }
}
