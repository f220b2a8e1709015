//! Who is who on the mesh port: both sides show a certificate of the mesh's authority, but for those who
//! call to get one.

use std::sync::Arc;
use std::time::Duration;

use cheops_core::causes;
use cheops_core::model::SiteId;
use cheops_record::site_of;
use quinn::VarInt;
use quinn::crypto::rustls::{HandshakeData, QuicClientConfig, QuicServerConfig};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;

use super::frame::LinkError;
use super::link;
use crate::enrol;
use crate::identity::Identity;

const ALPN: &[u8] = b"cheops";
/// A connection that is silent for so long is dead. A new one is tried earlier where one is needed; and
/// signs of life are given as often as somebody needs it, which a connection does not know by itself.
const SILENCE: Duration = Duration::from_secs(8);

/// How many callers may wait to be looked at, and what of theirs is held until then.
const MOST_WAITING: usize = 1024;
const WAITING_BYTES: u64 = 4 * 1024 * 1024;

/// What a site calls others with.
pub(super) fn client(identity: &Identity) -> Result<quinn::ClientConfig, String> {
    let mut client = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| causes(&error))?
        .with_root_certificates(identity.roots.clone())
        .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
        .map_err(|error| causes(&error))?;
    client.alpn_protocols = vec![ALPN.to_vec()];
    let client = QuicClientConfig::try_from(client).map_err(|error| causes(&error))?;
    let mut client = quinn::ClientConfig::new(Arc::new(client));
    client.transport_config(Arc::new(transport()));
    Ok(client)
}

/// What a site is called with. Where sites may enrol, those who call may have no certificate: they are
/// told apart once the handshake is over, see [`kind`].
pub(super) fn server(identity: &Identity, enrols: bool) -> Result<quinn::ServerConfig, String> {
    let verifier = WebPkiClientVerifier::builder_with_provider(identity.roots.clone(), provider());
    let verifier = if enrols { verifier.allow_unauthenticated() } else { verifier };
    let mut server = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| causes(&error))?
        .with_client_cert_verifier(verifier.build().map_err(|error| causes(&error))?)
        .with_cert_resolver(Arc::new(ShownChains::of(identity)?));
    server.alpn_protocols = vec![ALPN.to_vec()];
    let mut transport = transport();
    if enrols {
        server.alpn_protocols.push(enrol::ALPN.to_vec());
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS_OF_A_STRANGER))
            .receive_window(VarInt::from_u32(WINDOW_OF_A_STRANGER));
    }
    let server = QuicServerConfig::try_from(server).map_err(|error| causes(&error))?;
    let mut server = quinn::ServerConfig::with_crypto(Arc::new(server));
    server.transport_config(Arc::new(transport));
    server.max_incoming(MOST_WAITING).incoming_buffer_size_total(WAITING_BYTES);
    Ok(server)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// What a caller is shown: who enrols knows nobody yet, and is shown the authority as well.
#[derive(Debug)]
struct ShownChains {
    to_sites: Arc<CertifiedKey>,
    to_joiners: Arc<CertifiedKey>,
}

impl ShownChains {
    fn of(identity: &Identity) -> Result<Self, String> {
        let shown = |chain: Vec<CertificateDer<'static>>| {
            CertifiedKey::from_der(chain, identity.key.clone_key(), &provider())
                .map(Arc::new)
                .map_err(|error| causes(&error))
        };
        let mut whole = identity.chain.clone();
        whole.push(identity.authority.clone());
        Ok(Self { to_sites: shown(identity.chain.clone())?, to_joiners: shown(whole)? })
    }
}

impl ResolvesServerCert for ShownChains {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut spoken = hello.alpn().into_iter().flatten();
        let is_joiner = spoken.any(|protocol| protocol == enrol::ALPN);
        Some(if is_joiner { &self.to_joiners } else { &self.to_sites }.clone())
    }
}

/// Who calls, as far as the handshake tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallerKind {
    /// It says it is a site: it has shown a certificate of this mesh, or is to be refused.
    Site,
    /// It wants to become one, and may do nothing else.
    Joiner,
}

/// What a caller is here for. A site that has shown its certificate gets the room of one.
pub(super) fn kind(connection: &quinn::Connection) -> CallerKind {
    let data = connection.handshake_data().and_then(|any| any.downcast::<HandshakeData>().ok());
    if data.is_some_and(|data| data.protocol.as_deref() == Some(enrol::ALPN)) {
        return CallerKind::Joiner;
    }
    if proven_site(connection).is_ok() {
        connection.set_max_concurrent_bi_streams(VarInt::from_u32(STREAMS));
        connection.set_receive_window(VarInt::from_u32(RECEIVE_WINDOW));
    }
    CallerKind::Site
}

/// How many streams the other side may have open at once: all that it asks for by each kind of
/// use, and an eighth more, for so many are over before quinn says that there is room again.
const STREAMS: u32 = (link::REQUESTS + link::CALLS + link::FILES) / 7 * 8;
/// What may arrive of one before somebody reads it: a site a tenth of a second away still sends
/// 10 MB/s by it.
const STREAM_WINDOW: u32 = 1024 * 1024;
/// How many may be full and unread before nothing at all arrives any more, messages neither. What
/// is unread is held in memory, 1 GiB at the most. Thousands of streams are thousands of clients
/// that wait for something, and hardly ever as many that do not read what they asked for.
const UNREAD: u32 = 1024;
const RECEIVE_WINDOW: u32 = UNREAD * STREAM_WINDOW;
/// What a caller gets until it has shown a certificate.
const STREAMS_OF_A_STRANGER: u32 = 1;
const WINDOW_OF_A_STRANGER: u32 = 16 * 1024;

fn transport() -> quinn::TransportConfig {
    let mut transport = quinn::TransportConfig::default();
    transport
        .max_idle_timeout(SILENCE.try_into().ok())
        // Links are long and lossy: loss is no sign of congestion there.
        .congestion_controller_factory(Arc::new(quinn::congestion::BbrConfig::default()))
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(2))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(RECEIVE_WINDOW))
        .send_window(16 * 1024 * 1024)
        .datagram_receive_buffer_size(None);
    transport
}

/// The site whose certificate the other side has shown, and the certificate.
pub(super) fn proven_site(
    connection: &quinn::Connection,
) -> Result<(SiteId, CertificateDer<'static>), LinkError> {
    let shown = connection
        .peer_identity()
        .and_then(|any| any.downcast::<Vec<CertificateDer<'static>>>().ok());
    let shown = shown.and_then(|chain| chain.into_iter().next()).ok_or(LinkError::NoCertificate)?;
    let site = site_of(&shown).ok_or(LinkError::Nameless)?;
    Ok((site, shown))
}
