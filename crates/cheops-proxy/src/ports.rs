//! What the proxies ask of the rest of an agent. They know neither the mesh, the engine nor the store:
//! whoever has them hands them in as these.

use std::any::Any;
use std::collections::BTreeSet;
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use cheops_core::engine::Submission;
use cheops_core::model::{BlobId, Reply, ResourceId, SiteId};
use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, Response};

/// The other sites, as far as this one reaches them.
pub trait OtherSites: Send + Sync {
    /// All of them, reached or not.
    fn sites(&self) -> Box<dyn Iterator<Item = &SiteId> + '_>;

    /// How far a site is that can be reached.
    fn round_trip(&self, site: &SiteId) -> Option<Duration>;

    /// These sites, the nearest first; those that cannot be reached are left out.
    fn nearest(&self, sites: &mut dyn Iterator<Item = &SiteId>) -> Vec<SiteId>;

    /// Asks the agent of a site.
    fn ask_agent<'a>(
        &'a self,
        site: &'a SiteId,
        request: Request<Body>,
    ) -> BoxFuture<'a, Result<Response<Body>, NotPassedOn>>;

    /// Asks a service of a site.
    fn ask_service<'a>(
        &'a self,
        site: &'a SiteId,
        service: AskedService<'a>,
        request: Request<Body>,
    ) -> BoxFuture<'a, Result<Response<Body>, NotPassedOn>>;
}

/// What a request to a service of another site comes with.
#[derive(Debug, Clone, Copy)]
pub struct AskedService<'a> {
    /// Which service.
    pub name: &'a str,
    /// What to go over to.
    pub upgrade: Option<&'a HeaderValue>,
    /// The sites that are to keep what it makes, if that was decided.
    pub among: Option<&'a BTreeSet<SiteId>>,
}

/// Why a request has no answer of another site.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct NotPassedOn {
    /// For programs.
    pub reason: NotPassedOnReason,
    /// For people.
    pub why: String,
}

/// The same for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotPassedOnReason {
    /// It was not sent: the site cannot be reached.
    Unreachable,
    /// It was not sent: others take all the room.
    NoRoom,
    /// It was not sent: its path and headers are too long.
    HeadTooLong,
    /// It was sent, and the site may have taken it in.
    Broke,
}

/// The engine of this site, which takes in what several sites keep.
pub trait Operations: Send + Sync {
    /// Hands in an operation, makes it durable, and waits for what this site says to it. The files
    /// that it names are kept by what is held with it.
    fn carry_out(
        &self,
        submission: Submission,
        files: Vec<BodyPin>,
    ) -> BoxFuture<'_, Result<Reply, NoReply>>;

    /// Those of these that this site has never heard of. Nothing if the agent is stopping.
    fn unknown(&self, ids: BTreeSet<ResourceId>) -> BoxFuture<'_, Option<BTreeSet<ResourceId>>>;
}

/// Why this site says nothing to an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoReply {
    /// It was refused, and nothing was done.
    Refused(String),
    /// It cannot be made durable, and nothing was done.
    NotDurable(String),
    /// It was on its way into the log when that could not be written: it may be carried out yet.
    Undecided(String),
    /// It is durable, and will be carried out.
    UnderWay,
}

/// Keeps a body where it is for as long as it is held.
pub type BodyPin = Arc<dyn Any + Send + Sync>;

/// Where bodies are kept that are too long for their operation.
pub trait BodyStore: Send + Sync {
    /// Begins a new one. May wait for the disk, as all that is done with it.
    fn create(&self) -> Result<Box<dyn BodyWriter>, Box<dyn Error + Send + Sync>>;
}

/// A body on its way to the disk. Nothing of it stays if it is not finished.
pub trait BodyWriter: Write + Send {
    /// Puts it where it belongs.
    fn finish(self: Box<Self>) -> Result<StoredBody, Box<dyn Error + Send + Sync>>;
}

/// A body on the disk.
pub struct StoredBody {
    /// What it is called.
    pub blob: BlobId,
    /// How long it is.
    pub size: u64,
    /// What keeps it there.
    pub pin: BodyPin,
}

/// What a site signs with the key of its identity, and by which it knows what others signed.
pub trait Signatures: Send + Sync {
    /// This site.
    fn me(&self) -> &SiteId;

    /// Signs something; `None` if this site has no identity.
    fn sign(&self, what: &[u8]) -> Option<Vec<u8>>;

    /// Whether that site signed it.
    fn check(&self, site: &SiteId, what: &[u8], signature: &[u8]) -> SignatureCheck;
}

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureCheck {
    /// The site signed it.
    Good,
    /// It did not.
    Bad,
    /// No key of that site is known here.
    NobodyKnown,
}
