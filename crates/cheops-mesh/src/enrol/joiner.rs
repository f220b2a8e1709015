//! The side that has the token. It says nothing before it is sure that who answers is of the mesh that
//! the token names.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cheops_core::causes;
use cheops_core::model::SiteId;
use cheops_record::{Keyring, site_of};
use quinn::crypto::rustls::QuicClientConfig;
use rcgen::{KeyPair, PKCS_ED25519, SigningKey};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use super::invitations::RedeemRefusal;
use super::talk::{
    self, EnrolAnswer, EnrolQuestion, LONGEST_ANSWER, LONGEST_QUESTION, MeshAtHand, Welcome,
};
use super::token::JoinToken;
use super::{ALPN, fingerprint};
use crate::identity::{MeshError, pem_of};

/// How long one address may take to answer the call.
const CALLING_LASTS: Duration = Duration::from_secs(5);
/// How long the answer may take.
const ANSWER_LASTS: Duration = Duration::from_secs(30);
/// The other side takes who is silent for some seconds for gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);
/// How many addresses of one name are tried.
const MOST_ADDRESSES: usize = 8;

/// Why a site did not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The token's address leads nowhere.
    #[error("`{address}` cannot be found")]
    NoAddress {
        /// As the token has it.
        address: String,
        /// What came of it.
        source: std::io::Error,
    },
    /// Nobody answers there, or nobody who lets sites in.
    #[error("nobody at `{address}` answers: {why}")]
    NoAnswer {
        /// Who was called.
        address: String,
        /// What came of it.
        why: String,
    },
    /// It has no authority.
    #[error("the agent at `{0}` lets nobody in: it has no authority, or is of an older version")]
    NoHost(String),
    /// It is of another mesh, or says it is of this one and cannot prove it.
    #[error(
        "who answers at `{address}` is not of the mesh that the token is for: {why}. Nothing was \
         told to it, the token's secret least of all"
    )]
    OfAnotherMesh {
        /// Who was called.
        address: String,
        /// What it showed.
        why: String,
    },
    /// The token does not serve.
    #[error("{}", told(.0))]
    Refused(RedeemRefusal),
    /// Others join right now.
    #[error("other sites are joining at this moment")]
    Busy,
    /// The other side could not do it.
    #[error("the site with the authority could not let this one in: {0}")]
    Failed(String),
    /// What it answers is not right.
    #[error("the answer of the site with the authority cannot be used: {0}")]
    BadAnswer(String),
    /// This side could not begin.
    #[error("the call cannot be made: {0}")]
    Call(String),
    /// The key cannot be used.
    #[error("the key of this site cannot be used")]
    Key(#[from] MeshError),
}

fn told(refusal: &RedeemRefusal) -> String {
    match refusal {
        RedeemRefusal::Unknown => {
            "the token is not known there: was it copied whole, and made by that site?"
        }
        RedeemRefusal::Used(_) => "the token was used already, and serves once",
        RedeemRefusal::Expired(_) => "the token's time is over",
        RedeemRefusal::Revoked(_) => "the token was revoked",
        RedeemRefusal::Guessed(_) => "the token ended, for somebody tried wrong secrets with it",
    }
    .to_owned()
}

/// The key of a site that is about to join. It is written down before it is shown to anybody.
pub struct JoinerKey(KeyPair);

impl JoinerKey {
    /// A new one.
    pub fn new() -> Result<Self, MeshError> {
        Ok(Self(KeyPair::generate_for(&PKCS_ED25519)?))
    }

    /// One that was written down.
    pub fn from_pem(text: &str) -> Result<Self, MeshError> {
        Ok(Self(KeyPair::from_pem(text)?))
    }

    /// How it is written down.
    pub fn to_pem(&self) -> String {
        self.0.serialize_pem()
    }
}

/// What a site has that joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Its name.
    pub site: SiteId,
    /// The file that it proves itself with.
    pub identity: String,
    /// Where the others will look for it.
    pub address: String,
    /// What it was told of the mesh.
    pub mesh: MeshAtHand,
}

/// Joins, as the one that the token invites.
///
/// The others find it at `advertise`, if something is said, or else where it calls from, at `port`.
pub async fn join(
    token: &JoinToken,
    key: &JoinerKey,
    advertise: Option<String>,
    port: u16,
) -> Result<Joined, JoinError> {
    let connection = call(token).await?;
    let asked = ask(&connection.0, token, key, advertise, port);
    let answer = tokio::time::timeout(ANSWER_LASTS, asked).await;
    let late =
        |_| JoinError::NoAnswer { address: token.address.clone(), why: "it takes too long".into() };
    let answer = answer.map_err(late)??;
    connection.0.close(0_u32.into(), b"done");
    match answer {
        EnrolAnswer::Welcome(welcome) => taken(token, key, welcome, &connection.1),
        EnrolAnswer::Refused(refusal) => Err(JoinError::Refused(refusal)),
        EnrolAnswer::Busy => Err(JoinError::Busy),
        EnrolAnswer::Failed(why) => Err(JoinError::Failed(why)),
    }
}

/// Calls the addresses of the token in turn.
async fn call(
    token: &JoinToken,
) -> Result<(quinn::Connection, CertificateDer<'static>), JoinError> {
    let address = &token.address;
    let found = tokio::net::lookup_host(address).await;
    let found: Vec<SocketAddr> = found
        .map_err(|source| JoinError::NoAddress { address: address.clone(), source })?
        .take(MOST_ADDRESSES)
        .collect();
    let mut problem =
        JoinError::NoAnswer { address: address.clone(), why: "it has no address".into() };
    for at in found {
        match call_at(token, at).await {
            // Whoever is of another mesh is not made up for by another address.
            Err(error @ JoinError::OfAnotherMesh { .. }) => return Err(error),
            Err(error) => problem = error,
            called => return called,
        }
    }
    Err(problem)
}

async fn call_at(
    token: &JoinToken,
    at: SocketAddr,
) -> Result<(quinn::Connection, CertificateDer<'static>), JoinError> {
    let cannot = |error: &(dyn std::error::Error + 'static)| JoinError::Call(causes(error));
    let verifier = Arc::new(AuthorityByHash::of(token.authority));
    let from: SocketAddr = match at {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let endpoint = quinn::Endpoint::client(from).map_err(|error| cannot(&error))?;
    let config = client_config(verifier.clone()).map_err(JoinError::Call)?;
    // What is sent of the name in the clear says nothing.
    let calling =
        endpoint.connect_with(config, at, "enrol.invalid").map_err(|error| cannot(&error))?;
    let called = tokio::time::timeout(CALLING_LASTS, calling).await;
    let address = format!("{} ({at})", token.address);
    let no_answer = |why: String| JoinError::NoAnswer { address: address.clone(), why };
    let error = match called {
        Ok(Ok(connection)) => {
            let seen = verifier.authority.lock().unwrap_or_else(PoisonError::into_inner).take();
            // It was looked at, or there would be no connection.
            let seen = seen.ok_or_else(|| no_answer("it showed no certificate".to_owned()))?;
            return Ok((connection, seen));
        }
        Ok(Err(error)) => error,
        Err(_late) => return Err(no_answer("it takes too long".to_owned())),
    };
    let wrong = verifier.wrong.lock().unwrap_or_else(PoisonError::into_inner).take();
    // How TLS says that it does not speak that protocol (RFC 7301).
    let no_protocol = quinn::TransportErrorCode::crypto(120);
    Err(match (wrong, error) {
        (Some(why), _) => JoinError::OfAnotherMesh { address, why },
        (None, quinn::ConnectionError::ConnectionClosed(told))
            if told.error_code == no_protocol =>
        {
            JoinError::NoHost(address)
        }
        (None, error) => no_answer(causes(&error)),
    })
}

async fn ask(
    connection: &quinn::Connection,
    token: &JoinToken,
    key: &JoinerKey,
    advertise: Option<String>,
    port: u16,
) -> Result<EnrolAnswer, JoinError> {
    let broken = |why: String| {
        let told = connection.close_reason().map(|told| causes(&told));
        JoinError::NoAnswer { address: token.address.clone(), why: told.unwrap_or(why) }
    };
    let proof = talk::to_prove(connection).ok_or_else(|| broken("it cannot be proven".into()))?;
    let bad = |error: rcgen::Error| JoinError::Key(error.into());
    let public = key.0.public_key_raw().try_into();
    let public = public.map_err(|_| JoinError::BadAnswer("the key is of another kind".into()))?;
    let question = EnrolQuestion {
        id: token.id.0,
        secret: token.secret.0,
        key: public,
        signature: key.0.sign(&proof).map_err(bad)?,
        advertise,
        port,
        software: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let (mut send, mut receive) =
        connection.open_bi().await.map_err(|error| broken(causes(&error)))?;
    let said = talk::say(&mut send, &question, LONGEST_QUESTION).await;
    said.map_err(|error| broken(error.to_string()))?;
    let heard = talk::hear(&mut receive, LONGEST_ANSWER).await;
    heard.map_err(|error| broken(error.to_string()))
}

/// What came with the answer, if it is what was asked for.
fn taken(
    token: &JoinToken,
    key: &JoinerKey,
    welcome: Welcome,
    authority: &CertificateDer<'static>,
) -> Result<Joined, JoinError> {
    let bad = |why: String| JoinError::BadAnswer(why);
    let certificate = CertificateDer::from(welcome.certificate);
    let keyring = Keyring::new([authority.clone()]).map_err(|error| bad(error.to_string()))?;
    let (site, ..) =
        keyring.add(&certificate, UnixTime::now()).map_err(|error| bad(error.to_string()))?;
    if site != welcome.site {
        return Err(bad(format!("the certificate is for `{site}`, not `{}`", welcome.site)));
    }
    let fits = cheops_record::SiteKey::new(&key.0.serialize_der(), &certificate);
    fits.map_err(|error| bad(causes(&error)))?;
    if fingerprint(authority) != token.authority {
        return Err(bad("the authority is another one".to_owned()));
    }
    let certificates = [&certificate, authority].map(|der| pem_of("CERTIFICATE", der));
    let identity = format!("{}{}{}", certificates[0], key.to_pem(), certificates[1]);
    Ok(Joined { site, identity, address: welcome.address, mesh: welcome.mesh })
}

fn client_config(verifier: Arc<AuthorityByHash>) -> Result<quinn::ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| causes(&error))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    client.alpn_protocols = vec![ALPN.to_vec()];
    let client = QuicClientConfig::try_from(client).map_err(|error| causes(&error))?;
    let mut transport = quinn::TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(0_u32.into())
        .max_concurrent_uni_streams(0_u32.into())
        .keep_alive_interval(Some(SIGN_OF_LIFE))
        .datagram_receive_buffer_size(None);
    let mut client = quinn::ClientConfig::new(Arc::new(client));
    client.transport_config(Arc::new(transport));
    Ok(client)
}

/// Believes a site whose certificate is by the authority that has this hash, and nobody else.
#[derive(Debug)]
struct AuthorityByHash {
    hash: [u8; 32],
    provider: Arc<CryptoProvider>,
    /// The authority that was shown, once it was believed.
    authority: Mutex<Option<CertificateDer<'static>>>,
    /// What was wrong with what was shown.
    wrong: Mutex<Option<String>>,
}

impl AuthorityByHash {
    fn of(hash: [u8; 32]) -> Self {
        let provider = Arc::new(ring::default_provider());
        Self { hash, provider, authority: Mutex::default(), wrong: Mutex::default() }
    }

    fn refuse(&self, why: String) -> rustls::Error {
        *self.wrong.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        rustls::CertificateError::ApplicationVerificationFailure.into()
    }
}

impl ServerCertVerifier for AuthorityByHash {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = intermediates.iter().find(|it| fingerprint(it) == self.hash) else {
            let shown = intermediates.last().map(|it| URL_SAFE_NO_PAD.encode(fingerprint(it)));
            let token = URL_SAFE_NO_PAD.encode(self.hash);
            return Err(self.refuse(match shown {
                Some(shown) => format!(
                    "the hash of its authority's certificate is {shown}, and the token says {token}"
                ),
                None => "it shows no authority".to_owned(),
            }));
        };
        let authority = authority.clone().into_owned();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(authority.clone()).map_err(|error| self.refuse(causes(&error)))?;
        // Any site of that mesh: the token names none.
        let site = site_of(end_entity).map(|site| site.to_string());
        let name = site.and_then(|site| ServerName::try_from(site).ok());
        let name = name.ok_or_else(|| self.refuse("its certificate names no site".to_owned()))?;
        let builder =
            WebPkiServerVerifier::builder_with_provider(roots.into(), self.provider.clone());
        let verifier = builder.build().map_err(|error| self.refuse(causes(&error)))?;
        let verified = verifier
            .verify_server_cert(end_entity, &[], &name, ocsp_response, now)
            .map_err(|error| self.refuse(format!("its certificate is not good: {error}")))?;
        *self.authority.lock().unwrap_or_else(PoisonError::into_inner) = Some(authority);
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms).inspect_err(|_| {
            self.refuse("it does not have the key of its certificate".to_owned());
        })
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
