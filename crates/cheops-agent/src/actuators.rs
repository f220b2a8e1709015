//! Carrying out what the engine asks for: running, telling, reporting. Nothing here decides.

use std::sync::Arc;

use cheops_core::engine::{Engine, Event, Job, Message, Notice, Task};
use cheops_core::model::{IdMap, KeyId, Outcome, ResourceId, SiteId};
use cheops_core::plan::SnapshotId;
use cheops_mesh::{IncomingFiles, Peers};
use cheops_proxy::IdDirectory;
use cheops_store::Snapshots;
use tokio::runtime::Handle;
use tracing::{Instrument, Span};

use crate::content::KeptStates;
use crate::driver::{Actuators, Driver};
use crate::exec::Executor;
use crate::telemetry;

/// What the driver of a site acts with.
pub(crate) struct SiteActuators {
    pub(crate) runtime: Handle,
    pub(crate) executor: Executor,
    pub(crate) peers: Peers,
    pub(crate) incoming: IncomingFiles,
    pub(crate) snapshots: Snapshots,
    pub(crate) kept: KeptStates,
    /// Which resources of services are kept at several sites, for proxies and executors.
    pub(crate) replicas: IdDirectory,
}

impl Actuators for SiteActuators {
    fn run(&self, job: Job, span: Span, driver: Driver) {
        let (executor, peers) = (self.executor.clone(), self.peers.clone());
        let incoming = self.incoming.clone();
        let running = async move {
            tracing::debug!("a job begins");
            let files = match &job.task {
                Task::Run(operation) | Task::Edit { operation, .. }
                    if job.inline_body.is_none() =>
                {
                    peers.bring_back(operation, &incoming).await
                }
                Task::Write { state, size, .. } => {
                    peers.bring_back_state(*state, *size, &incoming).await
                }
                _ => Ok(()),
            };
            let ended = match files {
                Ok(()) => executor.run_for_engine(&job).await,
                Err(reason) => {
                    let outcome = Outcome::NotYet { reason, in_doubt: false };
                    Event::Ended { job: job.id, outcome }
                }
            };
            if let Event::Ended { outcome, .. } | Event::Edited { outcome, .. } = &ended {
                tracing::debug!(succeeded = outcome.succeeded(), "a job ended");
            }
            // A driver that has stopped finds the job in doubt when it starts again.
            let _stopped = driver.happened(ended).await;
        };
        self.runtime.spawn(running.instrument(span));
    }

    fn tell(&self, to: &SiteId, message: Message) {
        self.peers.tell(to, message);
    }

    fn set_apart(&self, site: &SiteId, key: KeyId) {
        self.peers.set_apart(site, key);
    }

    fn publish(&self, resource: &ResourceId, id_map: Option<Arc<IdMap>>) {
        self.replicas.publish(resource, id_map);
    }

    fn notify(&self, notice: &Notice) {
        if let Notice::Pruned(resource, _) = notice {
            self.kept.release(resource);
        }
        telemetry::notice(notice);
    }

    fn sweep_snapshots(&self, engine: &Engine) {
        let swept = self.snapshots.sweep(|resource, id| engine.needs_snapshot(resource)(id));
        if let Err(error) = swept {
            tracing::warn!(%error, "old snapshots could not be removed");
        }
    }

    fn retain_snapshots(
        &self,
        resource: &ResourceId,
        needed: Box<dyn Fn(SnapshotId) -> bool + Send>,
    ) {
        let (snapshots, resource) = (self.snapshots.clone(), resource.clone());
        self.runtime.spawn_blocking(move || {
            if let Err(error) = snapshots.retain(&resource, needed) {
                tracing::warn!(%resource, %error, "old snapshots could not be removed");
            }
        });
    }
}
