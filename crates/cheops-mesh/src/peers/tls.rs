//! Who is who on the mesh port: both sides show a certificate of the mesh's authority.

use std::sync::Arc;
use std::time::Duration;

use cheops_core::causes;
use cheops_core::model::SiteId;
use cheops_record::site_of;
use quinn::VarInt;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;

use super::frame::LinkError;
use super::link;
use crate::identity::Identity;

const ALPN: &[u8] = b"cheops";
/// A connection that is silent for so long is dead. A new one is tried much earlier.
const SILENCE: Duration = Duration::from_secs(5);
const KEEP_ALIVE: Duration = Duration::from_millis(400);

/// How many callers may wait to be looked at, and what of theirs is held until then.
const MOST_WAITING: usize = 1024;
const WAITING_BYTES: u64 = 4 * 1024 * 1024;

pub(super) fn configs(
    identity: &Identity,
) -> Result<(quinn::ServerConfig, quinn::ClientConfig), String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let transport = Arc::new(transport());
    let (roots, chain) = (&identity.roots, &identity.chain);

    let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
        .build()
        .map_err(|error| causes(&error))?;
    let mut server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| causes(&error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain.clone(), identity.key.clone_key())
        .map_err(|error| causes(&error))?;
    server.alpn_protocols = vec![ALPN.to_vec()];
    let server = QuicServerConfig::try_from(server).map_err(|error| causes(&error))?;
    let mut server = quinn::ServerConfig::with_crypto(Arc::new(server));
    server.transport_config(transport.clone());
    server.max_incoming(MOST_WAITING).incoming_buffer_size_total(WAITING_BYTES);

    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| causes(&error))?
        .with_root_certificates(roots.clone())
        .with_client_auth_cert(chain.clone(), identity.key.clone_key())
        .map_err(|error| causes(&error))?;
    client.alpn_protocols = vec![ALPN.to_vec()];
    let client = QuicClientConfig::try_from(client).map_err(|error| causes(&error))?;
    let mut client = quinn::ClientConfig::new(Arc::new(client));
    client.transport_config(transport);
    Ok((server, client))
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

fn transport() -> quinn::TransportConfig {
    let mut transport = quinn::TransportConfig::default();
    transport
        .max_idle_timeout(SILENCE.try_into().ok())
        .keep_alive_interval(Some(KEEP_ALIVE))
        // Links are long and lossy: loss is no sign of congestion there.
        .congestion_controller_factory(Arc::new(quinn::congestion::BbrConfig::default()))
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(2))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(UNREAD * STREAM_WINDOW))
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
    let shown = shown.and_then(|chain| chain.into_iter().next()).ok_or(LinkError::Nameless)?;
    let site = site_of(&shown).ok_or(LinkError::Nameless)?;
    Ok((site, shown))
}
