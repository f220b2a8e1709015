//! Keeps this site's identity from running out: at two thirds of its time a certificate for the same key
//! is asked for at any site with the authority, and shown from then on, without a restart. A file that
//! somebody else replaced is shown as well. Where nobody renews it, links that there are go on and no new
//! ones come about; work at the site itself does not need it.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use cheops_api::paths;
use cheops_core::causes;
use cheops_core::model::SiteId;
use cheops_mesh::authority::Authority;
use cheops_mesh::durable;
use cheops_mesh::identity::{Identity, MeshError};
use cheops_mesh::{Peers, authority};
use http::{Method, StatusCode};
use rustls::pki_types::CertificateDer;

/// How often it is looked at, at least.
const LOOK_EVERY: Duration = Duration::from_secs(3_600);
/// And at most, however short it serves.
const LOOK_AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// Clocks differ, so certificates begin a day before they are made: that is no part of their time.
const BEGUN_BEFORE: u64 = 24 * 60 * 60;
/// How many sites are asked each time.
const MOST_ASKED: usize = 16;
/// How long one may take to answer.
const ANSWERING: Duration = Duration::from_secs(10);
/// A certificate is far shorter.
pub(crate) const LONGEST_CERTIFICATE: usize = 64 * 1024;

/// A site's identity, and who renews it.
pub(crate) struct Renewal {
    pub(crate) me: SiteId,
    /// The file of the identity.
    pub(crate) path: PathBuf,
    /// The folder of the authority, if it is here.
    pub(crate) authority: Option<PathBuf>,
    pub(crate) peers: Peers,
}

/// Why an identity is not renewed.
#[derive(Debug, thiserror::Error)]
enum RenewalError {
    #[error(transparent)]
    Identity(#[from] MeshError),
    #[error("`{}` cannot be written", .0.display())]
    File(PathBuf, #[source] std::io::Error),
    #[error("what it got cannot be shown: {0}")]
    Show(String),
    #[error("no site that can be reached has the mesh's authority")]
    Nobody,
}

impl Renewal {
    /// For as long as the agent runs.
    pub(crate) async fn run(self, mut shown: Identity) {
        loop {
            if let Err(error) = self.look(&mut shown).await {
                let (error, over) = (causes(&error), left(&shown).is_zero());
                tracing::warn!(error, over, "the identity of this site is not renewed");
            }
            tokio::time::sleep(pause(&shown)).await;
        }
    }

    async fn look(&self, shown: &mut Identity) -> Result<(), RenewalError> {
        let mut found = Identity::read(&self.path)?;
        if is_due(&found) {
            let certificate = self.renewed(&found).await?;
            let text = found.renewed(&certificate)?;
            durable::replace(&self.path, text.as_bytes(), 0o600)
                .map_err(|error| RenewalError::File(self.path.clone(), error))?;
            found = Identity::read(&self.path)?;
            tracing::info!(site = %self.me, "the identity of this site is renewed");
        }
        // What is signed is signed by the key that the agent was started with.
        let is_same_key = found.renewed(&shown.certificates()[0]).is_ok();
        if found.certificates() != shown.certificates() && is_same_key {
            let cannot = |error: cheops_mesh::PeersError| RenewalError::Show(causes(&error));
            self.peers.show(&found).map_err(cannot)?;
            *shown = found;
        }
        Ok(())
    }

    async fn renewed(&self, identity: &Identity) -> Result<CertificateDer<'static>, RenewalError> {
        let certificate = &identity.certificates()[0];
        if let Some(authority) = &self.authority {
            let (me, now) = (&self.me, SystemTime::now());
            return Ok(Authority::open(authority)?.renew(
                me,
                certificate,
                now,
                authority::SERVES,
            )?);
        }
        let all = self.peers.sites();
        let near = self.peers.nearest(&all);
        // Those without a link are called when they are asked.
        let far = all.iter().filter(|site| !near.contains(site));
        for site in near.iter().chain(far).take(MOST_ASKED) {
            if let Some(renewed) = self.ask(site, certificate).await {
                return Ok(renewed);
            }
        }
        Err(RenewalError::Nobody)
    }

    async fn ask(
        &self,
        site: &SiteId,
        certificate: &CertificateDer<'_>,
    ) -> Option<CertificateDer<'static>> {
        let mut question = Request::new(Body::from(certificate.to_vec()));
        *question.uri_mut() = http::Uri::from_static(paths::RENEWAL);
        *question.method_mut() = Method::POST;
        let asked = async {
            let answer = self.peers.pass_on(site, question).await.ok()?;
            let is_renewed = answer.status() == StatusCode::OK;
            let body = to_bytes(answer.into_body(), LONGEST_CERTIFICATE).await.ok()?;
            is_renewed.then(|| CertificateDer::from(body.to_vec()))
        };
        tokio::time::timeout(ANSWERING, asked).await.ok()?
    }
}

/// From when until when it is used. None for one that serves for ever: those never begin to end.
fn time(identity: &Identity) -> Option<(u64, u64)> {
    let (from, until) = identity.serves()?;
    Some(((from + BEGUN_BEFORE).min(until), until))
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// How long it still serves.
fn left(identity: &Identity) -> Duration {
    let until = time(identity).map_or(u64::MAX, |(_, until)| until);
    Duration::from_secs(until.saturating_sub(seconds_now()))
}

fn is_due(identity: &Identity) -> bool {
    time(identity).is_some_and(|(from, until)| seconds_now() >= until - (until - from) / 3)
}

fn pause(identity: &Identity) -> Duration {
    let whole = time(identity).map_or(u64::MAX, |(from, until)| until - from);
    Duration::from_secs(whole / 20).clamp(LOOK_AT_MOST_EVERY, LOOK_EVERY)
}
