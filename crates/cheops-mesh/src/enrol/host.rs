//! The side that has the authority. Whoever calls here has shown no certificate: it gets one stream,
//! some seconds and a few KiB, and may ask one thing.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cheops_core::causes;
use cheops_core::model::SiteId;
use ring::signature::{ED25519, UnparsedPublicKey};
use tokio::sync::Semaphore;

use super::invitations::{InvitationError, Invitations};
use super::talk::{
    self, EnrolAnswer, EnrolQuestion, LONGEST_ANSWER, LONGEST_QUESTION, MeshAtHand, Welcome,
};
use super::token::{InvitationId, JoinSecret};
use crate::authority::{Authority, SERVES, SitePublicKey};
use crate::identity::MeshError;

/// How many join at the same time.
const AT_ONCE: usize = 4;
/// How long the other side may take to ask.
const ASKING_LASTS: Duration = Duration::from_secs(5);
/// How long it may take to hear the answer.
const HEARING_LASTS: Duration = Duration::from_secs(20);
/// Nobody's address is longer.
const LONGEST_ADDRESS: usize = 256;

/// How such a connection ends when all was said.
const CLOSED_WHEN_DONE: u32 = 0;
const CLOSED_AS_REFUSED: u32 = 1;

/// A site that has just become one of the mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newcomer {
    /// Its name.
    pub site: SiteId,
    /// Where it will be found.
    pub address: String,
}

/// Who is to know of those who join.
pub trait NewcomerRegistry: Send + Sync {
    /// Takes it in, and says what it is to begin with. It may be one that is known already, and asks
    /// again.
    fn admit(&self, newcomer: Newcomer) -> MeshAtHand;
}

/// Lets in those who were invited.
#[derive(Clone)]
pub struct EnrolHost(Arc<EnrolState>);

struct EnrolState {
    /// The folder of the authority.
    authority: PathBuf,
    invitations: Arc<Invitations>,
    registry: Arc<dyn NewcomerRegistry>,
    room: Semaphore,
}

/// Why nobody was let in, apart from the token.
#[derive(Debug, thiserror::Error)]
enum EnrolError {
    #[error(transparent)]
    Invitations(#[from] InvitationError),
    #[error("the authority cannot be used")]
    Authority(#[from] MeshError),
}

impl EnrolHost {
    /// Of a site with the authority in that folder.
    pub fn new(
        authority: &Path,
        invitations: Arc<Invitations>,
        registry: Arc<dyn NewcomerRegistry>,
    ) -> Self {
        let (authority, room) = (authority.to_owned(), Semaphore::new(AT_ONCE));
        Self(Arc::new(EnrolState { authority, invitations, registry, room }))
    }

    /// Hears what somebody asks who has shown no certificate, and answers.
    pub(crate) async fn serve(&self, connection: quinn::Connection) {
        let from = connection.remote_address();
        match tokio::time::timeout(ASKING_LASTS + HEARING_LASTS, self.talk(&connection)).await {
            Ok(Ok(())) => connection.close(CLOSED_WHEN_DONE.into(), b"done"),
            Ok(Err(error)) => {
                tracing::warn!(%from, error, "a caller without a certificate was refused");
                connection.close(CLOSED_AS_REFUSED.into(), error.as_bytes());
            }
            Err(_late) => connection.close(CLOSED_AS_REFUSED.into(), b"it took too long"),
        }
    }

    async fn talk(&self, connection: &quinn::Connection) -> Result<(), String> {
        let asking = async {
            let (send, mut receive) =
                connection.accept_bi().await.map_err(|error| error.to_string())?;
            let asked = talk::hear::<EnrolQuestion>(&mut receive, LONGEST_QUESTION).await;
            Ok::<_, String>((send, asked.map_err(|error| error.to_string())?))
        };
        let asked = tokio::time::timeout(ASKING_LASTS, asking).await;
        let (mut send, question) = asked.map_err(|_late| "it did not ask in time".to_owned())??;
        let answer = match self.0.room.try_acquire() {
            Ok(_room) => self.answer(connection, question).await?,
            Err(_) => EnrolAnswer::Busy,
        };
        let told = talk::say(&mut send, &answer, LONGEST_ANSWER).await;
        told.map_err(|error| error.to_string())?;
        // Until it has all of it, or went away.
        let _gone = send.stopped().await;
        Ok(())
    }

    async fn answer(
        &self,
        connection: &quinn::Connection,
        question: EnrolQuestion,
    ) -> Result<EnrolAnswer, String> {
        let proof = talk::to_prove(connection).ok_or("the connection proves nothing")?;
        let key = UnparsedPublicKey::new(&ED25519, &question.key);
        if key.verify(&proof, &question.signature).is_err() {
            return Err("it does not have the key that it shows".to_owned());
        }
        let from = connection.remote_address();
        let address = address_of(&question, from)?;
        let host = self.clone();
        let deciding = tokio::task::spawn_blocking(move || host.decide(&question, from, address));
        deciding.await.map_err(|_ended| "the agent stops".to_owned())
    }

    fn decide(&self, question: &EnrolQuestion, from: SocketAddr, address: String) -> EnrolAnswer {
        let now = SystemTime::now();
        let (id, secret) = (InvitationId(question.id), JoinSecret(question.secret));
        let from = from.ip().to_canonical();
        let redeemed = self.0.invitations.redeem(
            (id, &secret),
            (question.key, &from.to_string()),
            now,
            |site| {
                let authority = Authority::open(&self.0.authority)?;
                let made = authority.certify(site, SitePublicKey(question.key), now, SERVES)?;
                Ok::<_, EnrolError>((site.clone(), made))
            },
        );
        match redeemed {
            Ok(Ok((site, certificate))) => {
                tracing::info!(%site, %from, address, invitation = %id, "a site joined");
                let newcomer = Newcomer { site: site.clone(), address: address.clone() };
                let mesh = self.0.registry.admit(newcomer);
                EnrolAnswer::Welcome(Welcome {
                    site,
                    certificate: certificate.to_vec(),
                    address,
                    mesh,
                })
            }
            Ok(Err(refusal)) => {
                tracing::warn!(%from, invitation = %id, ?refusal, "a token does not serve");
                EnrolAnswer::Refused(refusal)
            }
            Err(error) => {
                let error = causes(&error);
                tracing::error!(%from, invitation = %id, error, "a site could not be let in");
                EnrolAnswer::Failed(error)
            }
        }
    }
}

/// Where the new site will be found: where it says, or else where it calls from, at its port.
fn address_of(question: &EnrolQuestion, from: SocketAddr) -> Result<String, String> {
    let seen = match from.ip().to_canonical() {
        IpAddr::V6(ip) => format!("[{ip}]"),
        IpAddr::V4(ip) => ip.to_string(),
    };
    match &question.advertise {
        Some(said) if said.len() <= LONGEST_ADDRESS && !said.chars().any(char::is_control) => {
            Ok(said.clone())
        }
        Some(_) => Err("the address that it names cannot be one".to_owned()),
        None => Ok(format!("{seen}:{}", question.port)),
    }
}
