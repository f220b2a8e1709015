//! The ways in which somebody at the terminal, or the system, asks a command for an end.

use std::future::pending;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// SIGINT, SIGTERM and SIGHUP. From the time this is listened to, none of them ends the process by
/// itself.
pub(crate) struct EndSignals {
    signals: [Signal; 3],
}

impl EndSignals {
    /// Needs a runtime.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::ours("signals cannot be caught").because(error))
        };
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hang_up] = kinds.map(listen);
        Ok(Self { signals: [interrupt?, terminate?, hang_up?] })
    }

    /// Comes back once one of them came.
    pub(crate) async fn come(&mut self) {
        let [interrupt, terminate, hang_up] = &mut self.signals;
        let came = tokio::select! {
            came = interrupt.recv() => came,
            came = terminate.recv() => came,
            came = hang_up.recv() => came,
        };
        if came.is_none() {
            pending::<()>().await;
        }
    }
}
