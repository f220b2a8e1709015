//! What is under way, so that all of it can be ended.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

/// The runs of one executor.
#[derive(Debug)]
pub(super) struct RunningCommands {
    state: Mutex<RunningState>,
    /// Told when a run ends.
    ended: Notify,
    stop: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct RunningState {
    last: u64,
    under_way: BTreeSet<u64>,
}

impl RunningCommands {
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), ended: Notify::new(), stop: watch::Sender::new(false) }
    }

    /// Takes part, unless all is being stopped.
    pub(super) fn enter(self: &Arc<Self>) -> Option<UnderWay> {
        let mut state = self.state();
        if *self.stop.borrow() {
            return None;
        }
        state.last += 1;
        let n = state.last;
        state.under_way.insert(n);
        Some(UnderWay { n, stop: self.stop.subscribe(), running: Arc::clone(self) })
    }

    pub(super) fn is_under_way(&self, n: u64) -> bool {
        self.state().under_way.contains(&n)
    }

    /// Tells everyone to stop, lets nobody in any more, and waits until all are out.
    pub(super) async fn stop(&self) {
        {
            let _state = self.state();
            self.stop.send_replace(true);
        }
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // From here on no ending is missed.
            ended.as_mut().enable();
            if self.state().under_way.is_empty() {
                return;
            }
            ended.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, RunningState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One run under way. It is out when this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay {
    /// New for every run.
    pub(super) n: u64,
    stop: watch::Receiver<bool>,
    running: Arc<RunningCommands>,
}

impl UnderWay {
    /// Comes back when all is to stop.
    pub(super) async fn stopped(&mut self) {
        // The sender lives as long as this does.
        let _ = self.stop.wait_for(|stop| *stop).await;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.running.state().under_way.remove(&self.n);
        self.running.ended.notify_waiters();
    }
}
