//! Threads for the clients of proxies, apart from everything else that the agent does.
//!
//! A client, the connections to its service and the answers stay on one thread, so that no request
//! has to be handed from one to another. Each does what there is to do in the order in which it
//! came: requests that arrived together are passed on together, and a service that is woken for
//! the first finds the others.

use std::io;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// More of them would take from the application what it is there for.
const MOST: usize = 4;

/// The threads. They end with this value, and what is still under way on them.
pub struct Threads(Vec<Thread>);

struct Thread {
    runtime: Handle,
    /// Held, not used: its end is the thread's.
    _alive: oneshot::Sender<()>,
}

impl Threads {
    /// Starts as many as this machine has room for.
    pub fn start() -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores.min(MOST)).map(|_| Thread::start()).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn each(&self) -> impl Iterator<Item = Handle> {
        self.0.iter().map(|thread| thread.runtime.clone())
    }
}

impl Thread {
    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (alive, ended) = oneshot::channel::<()>();
        std::thread::Builder::new().name("proxy".into()).spawn(move || {
            let _ended = runtime.block_on(ended);
        })?;
        Ok(Self { runtime: handle, _alive: alive })
    }
}
