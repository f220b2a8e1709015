//! Where the data plane meets the rest of the agent: what `cheops-mesh` and `cheops-proxy` ask for, by
//! who has it. Nothing here decides.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use cheops_core::engine::{Answer, Event, Submission};
use cheops_core::model::{BlobId, KeyId, Reply, ResourceId, SiteId};
use cheops_mesh::{
    Brought, CertificateStore, Checked, FileError, FilePin, FileStore, Inbox, InboxClosed,
    PartialFile, Peers, Seals, SiteServices, ToService, TunnelError, WholeFile,
};
use cheops_proxy::{
    AskedService, BodyPin, BodyStore, BodyWriter, NoReply, NotPassedOn, NotPassedOnReason,
    Operations, OtherSites, Proxies, SignatureCheck, Signatures, StoredBody,
};
use cheops_store::{BlobError, BlobWriter, Blobs, Certificates, CheckedBlob, Feed, PartialBlob};
use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, Response};

use crate::driver::{Driver, NotDurable, SubmitUpdate, room_left};

type AnyError = Box<dyn Error + Send + Sync>;

/// What is heard of other sites goes to the driver.
impl Inbox for Driver {
    fn take(&self, event: Event, files: Option<Brought>) -> BoxFuture<'_, Result<(), InboxClosed>> {
        Box::pin(async { self.happened_with(event, files).await.map_err(|_stopped| InboxClosed) })
    }

    fn settle(&self) -> BoxFuture<'_, Result<bool, InboxClosed>> {
        Box::pin(async {
            Driver::settle(self).await.map_err(|_stopped| InboxClosed)?;
            Ok(self.trouble.borrow().is_none())
        })
    }
}

/// What several sites keep goes to the driver, too.
pub(crate) struct SiteOperations {
    pub(crate) me: SiteId,
    pub(crate) driver: Driver,
}

impl Operations for SiteOperations {
    fn carry_out(
        &self,
        submission: Submission,
        files: Vec<BodyPin>,
    ) -> BoxFuture<'_, Result<Reply, NoReply>> {
        Box::pin(async move {
            let Ok(mut said) = self.driver.submit(submission, files).await else {
                return Err(no_more(None, TakenIn::NotYet));
            };
            let mut taken_in = TakenIn::NotYet;
            loop {
                match said.recv().await {
                    Some(SubmitUpdate::Answer(Answer::Replied(reply))) => {
                        if *reply.site() == self.me {
                            return Ok(reply);
                        }
                    }
                    Some(SubmitUpdate::Answer(Answer::Accepted { .. })) => {
                        taken_in = TakenIn::Durably;
                    }
                    end => return Err(no_more(end, taken_in)),
                }
            }
        })
    }

    fn unknown(
        &self,
        mut ids: BTreeSet<ResourceId>,
    ) -> BoxFuture<'_, Option<BTreeSet<ResourceId>>> {
        let asked = self.driver.ask(move |engine| {
            ids.retain(|id| engine.config(id).is_none());
            ids
        });
        Box::pin(async { asked.await.ok() })
    }
}

/// Whether an operation is known to be durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TakenIn {
    NotYet,
    Durably,
}

/// What it means that nothing more is said of an operation, or nothing good.
fn no_more(end: Option<SubmitUpdate>, taken_in: TakenIn) -> NoReply {
    match end {
        Some(SubmitUpdate::Answer(Answer::Refused(refusal))) => {
            NoReply::Refused(refusal.to_string())
        }
        Some(SubmitUpdate::Answer(_)) => NoReply::UnderWay,
        Some(SubmitUpdate::NotDurable(why @ NotDurable::Undecided(_))) => {
            NoReply::Undecided(why.to_string())
        }
        Some(SubmitUpdate::NotDurable(why)) => NoReply::NotDurable(why.to_string()),
        None if taken_in == TakenIn::Durably => NoReply::UnderWay,
        None => NoReply::NotDurable("the agent is stopping".into()),
    }
}

/// The files of operations, in the store.
pub(crate) struct SiteFiles {
    pub(crate) blobs: Arc<dyn Blobs>,
    /// Where short ones are, in the entries.
    pub(crate) feed: Arc<dyn Feed>,
    /// Whose disk they are on.
    pub(crate) dir: PathBuf,
}

fn in_store(error: BlobError) -> FileError {
    FileError { is_full: error.is_full(), hint: error.hint(), source: error.into() }
}

impl FileStore for SiteFiles {
    fn pin(&self, blob: BlobId) -> FilePin {
        Arc::new(self.blobs.pin(blob))
    }

    fn contains(&self, blob: &BlobId) -> bool {
        self.blobs.contains(blob)
    }

    fn partial(&self, blob: BlobId, size: u64) -> Result<Box<dyn PartialFile>, FileError> {
        let partial = self.blobs.partial(blob, size).map_err(in_store)?;
        Ok(Box::new(PartialSiteFile(partial)))
    }

    fn open(&self, blob: BlobId, offset: u64) -> Result<Option<Box<dyn WholeFile>>, FileError> {
        let file = self.blobs.open_checked(blob, offset).map_err(in_store)?;
        Ok(file.map(|file| Box::new(WholeSiteFile(file)) as Box<dyn WholeFile>))
    }

    fn inline_body(&self, blob: &BlobId) -> Result<Option<Vec<u8>>, FileError> {
        let unread = |error| FileError { source: Box::new(error), is_full: false, hint: None };
        self.feed.inline_body(blob).map_err(unread)
    }

    fn room_left(&self) -> u64 {
        room_left(&self.dir)
    }
}

impl BodyStore for SiteFiles {
    fn create(&self) -> Result<Box<dyn BodyWriter>, AnyError> {
        Ok(Box::new(NewSiteFile(self.blobs.create()?)))
    }
}

struct PartialSiteFile(Box<dyn PartialBlob>);

impl Write for PartialSiteFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl PartialFile for PartialSiteFile {
    fn offset(&self) -> u64 {
        self.0.offset()
    }

    fn is_whole(&self) -> bool {
        self.0.is_whole()
    }

    fn discard(self: Box<Self>) -> Result<(), FileError> {
        self.0.discard().map_err(in_store)
    }

    fn finish(self: Box<Self>) -> Result<(), FileError> {
        self.0.finish().map(|_stored| ()).map_err(in_store)
    }
}

struct WholeSiteFile(Box<dyn CheckedBlob>);

impl WholeFile for WholeSiteFile {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn next(&mut self, most: usize) -> Result<Vec<u8>, FileError> {
        self.0.next(most).map_err(in_store)
    }
}

struct NewSiteFile(Box<dyn BlobWriter>);

impl Write for NewSiteFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl BodyWriter for NewSiteFile {
    fn finish(self: Box<Self>) -> Result<StoredBody, AnyError> {
        let stored = self.0.finish()?;
        Ok(StoredBody { blob: stored.id, size: stored.size, pin: Arc::new(stored.pin) })
    }
}

/// The certificates of other sites, in the log.
pub(crate) struct KeptCertificates(pub(crate) Arc<dyn Certificates>);

impl CertificateStore for KeptCertificates {
    fn kept(&self) -> Result<Vec<Vec<u8>>, AnyError> {
        let identities = self.0.identities()?;
        Ok(identities.into_iter().map(|(_, certificate)| certificate).collect())
    }

    fn keep(&self, key: KeyId, certificate: &[u8]) -> Result<(), AnyError> {
        Ok(self.0.keep_identity(key, certificate)?)
    }
}

/// What this site signs, for its proxies.
pub(crate) struct ProxySignatures(pub(crate) Seals);

impl Signatures for ProxySignatures {
    fn me(&self) -> &SiteId {
        self.0.me()
    }

    fn sign(&self, what: &[u8]) -> Option<Vec<u8>> {
        self.0.sign(what)
    }

    fn check(&self, site: &SiteId, what: &[u8], signature: &[u8]) -> SignatureCheck {
        match self.0.check(site, what, signature) {
            Checked::Good => SignatureCheck::Good,
            Checked::Bad => SignatureCheck::Bad,
            Checked::NobodyKnown => SignatureCheck::NobodyKnown,
        }
    }
}

/// The other sites, for the proxies of this one.
pub(crate) struct ProxyPeers(pub(crate) Peers);

impl OtherSites for ProxyPeers {
    fn sites(&self) -> Box<dyn Iterator<Item = &SiteId> + '_> {
        Box::new(self.0.sites())
    }

    fn round_trip(&self, site: &SiteId) -> Option<Duration> {
        self.0.round_trip(site)
    }

    fn nearest(&self, sites: &mut dyn Iterator<Item = &SiteId>) -> Vec<SiteId> {
        self.0.nearest(sites)
    }

    fn ask_agent<'a>(
        &'a self,
        site: &'a SiteId,
        request: Request<Body>,
    ) -> BoxFuture<'a, Result<Response<Body>, NotPassedOn>> {
        Box::pin(async move { self.0.pass_on(site, request).await.map_err(not_passed_on) })
    }

    fn ask_service<'a>(
        &'a self,
        site: &'a SiteId,
        AskedService { name, upgrade, among }: AskedService<'a>,
        request: Request<Body>,
    ) -> BoxFuture<'a, Result<Response<Body>, NotPassedOn>> {
        let to = ToService { name, upgrade, among };
        Box::pin(async move { self.0.ask_service(site, to, request).await.map_err(not_passed_on) })
    }
}

#[allow(clippy::needless_pass_by_value, reason = "what `map_err` hands over")]
fn not_passed_on(error: TunnelError) -> NotPassedOn {
    let reason = match &error {
        TunnelError::NoLink(_) => NotPassedOnReason::Unreachable,
        TunnelError::NoRoom(_) => NotPassedOnReason::NoRoom,
        TunnelError::HeadTooLong(_) => NotPassedOnReason::HeadTooLong,
        TunnelError::Broke { .. } => NotPassedOnReason::Broke,
    };
    NotPassedOn { reason, why: error.to_string() }
}

/// The proxies of this site, for the agents of others.
pub(crate) struct ProxiesForPeers(pub(crate) Proxies);

impl SiteServices for ProxiesForPeers {
    fn answer<'a>(
        &'a self,
        from: &'a SiteId,
        service: &'a str,
        request: Request<Body>,
        upgrade: Option<HeaderValue>,
        among: Option<BTreeSet<SiteId>>,
    ) -> BoxFuture<'a, Response<Body>> {
        Box::pin(self.0.answer_peer(from, service, request, upgrade, among))
    }

    fn too_long_to_return(&self, service: &str, length: usize, most: usize) -> Response<Body> {
        self.0.too_long_to_return(service, length, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_nothing_is_carried_out_is_said_only_where_nothing_will_be() {
        let not_durable = |why| Some(SubmitUpdate::NotDurable(why));
        let never = |none: &NoReply| matches!(none, NoReply::NotDurable(_) | NoReply::Refused(_));
        let cases = [
            (not_durable(NotDurable::NoRoom { left: 1, needed: 2 }), TakenIn::NotYet, true),
            (not_durable(NotDurable::Stuck("it broke".into())), TakenIn::NotYet, true),
            (not_durable(NotDurable::Undecided("it broke".into())), TakenIn::NotYet, false),
            (None, TakenIn::NotYet, true),
            (None, TakenIn::Durably, false),
            (Some(SubmitUpdate::Answer(Answer::Done)), TakenIn::Durably, false),
        ];
        for (end, taken_in, expected) in cases {
            let case = format!("{end:?} {taken_in:?}");
            let none = no_more(end, taken_in);
            assert_eq!(never(&none), expected, "{case}: {none:?}");
        }
    }
}
