//! What the driver acts with, by what it asks of them: whoever runs, sends or keeps something knows
//! the driver, and not the other way round.

use std::sync::Arc;

use cheops_core::engine::{Engine, Job, Message, Notice};
use cheops_core::model::{IdMap, KeyId, ResourceId, SiteId};
use cheops_core::plan::SnapshotId;
use tracing::Span;

use super::Driver;

/// Carries out what the engine asks for. Nothing of it may block.
pub(crate) trait Actuators: Send {
    /// Begins a job in that span, and tells the driver when it has ended.
    fn run(&self, job: Job, span: Span, driver: Driver);

    /// Sends a message to a site, if there is a way.
    fn tell(&self, to: &SiteId, message: Message);

    /// Lets nothing more in from who holds that key.
    fn set_apart(&self, site: &SiteId, key: KeyId);

    /// Lets proxies and executors know what the sites call a resource of a service; or, with `None`, that
    /// requests which speak of it are to be known no more.
    fn publish(&self, resource: &ResourceId, id_map: Option<Arc<IdMap>>);

    /// Tells the operator.
    fn notify(&self, notice: &Notice);

    /// Removes saved states of all resources that can no longer be asked for, before anything runs.
    fn sweep_snapshots(&self, engine: &Engine);

    /// The same for one resource, later.
    fn retain_snapshots(
        &self,
        resource: &ResourceId,
        needed: Box<dyn Fn(SnapshotId) -> bool + Send>,
    );
}
