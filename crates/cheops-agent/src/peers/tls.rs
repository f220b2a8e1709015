//! Who is who on the mesh port: both sides show a certificate of the mesh's authority.

use std::sync::Arc;
use std::time::Duration;

use cheops_core::model::SiteId;
use quinn::VarInt;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;

use super::frame::LinkError;
use crate::mesh::{Identity, site_of};

const ALPN: &[u8] = b"cheops";
/// A connection that is silent for so long is dead. A new one is tried much earlier.
const SILENCE: Duration = Duration::from_secs(5);
const KEEP_ALIVE: Duration = Duration::from_millis(400);

pub(super) fn configs(
    identity: &Identity,
) -> Result<(quinn::ServerConfig, quinn::ClientConfig), String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let transport = Arc::new(transport());
    let (roots, chain) = (&identity.roots, &identity.chain);

    let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
        .build()
        .map_err(|error| text(&error))?;
    let mut server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| text(&error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain.clone(), identity.key.clone_key())
        .map_err(|error| text(&error))?;
    server.alpn_protocols = vec![ALPN.to_vec()];
    let server = QuicServerConfig::try_from(server).map_err(|error| text(&error))?;
    let mut server = quinn::ServerConfig::with_crypto(Arc::new(server));
    server.transport_config(transport.clone());

    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| text(&error))?
        .with_root_certificates(roots.clone())
        .with_client_auth_cert(chain.clone(), identity.key.clone_key())
        .map_err(|error| text(&error))?;
    client.alpn_protocols = vec![ALPN.to_vec()];
    let client = QuicClientConfig::try_from(client).map_err(|error| text(&error))?;
    let mut client = quinn::ClientConfig::new(Arc::new(client));
    client.transport_config(transport);
    Ok((server, client))
}

/// How many requests and files may be under way at once.
const STREAMS: u32 = 256;
/// What may arrive of one before somebody reads it.
const STREAM_WINDOW: u32 = 1024 * 1024;

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
        // Room for all of them at once and more: whoever does not read what it asked for must not
        // keep messages from arriving.
        .receive_window(VarInt::from_u32((STREAMS + 16) * STREAM_WINDOW))
        .send_window(16 * 1024 * 1024)
        .datagram_receive_buffer_size(None);
    transport
}

/// The site whose certificate the other side has shown.
pub(super) fn proven_site(connection: &quinn::Connection) -> Result<SiteId, LinkError> {
    let shown =
        connection.peer_identity().and_then(|any| any.downcast::<Vec<CertificateDer<'_>>>().ok());
    shown.as_deref().and_then(|chain| chain.first()).and_then(site_of).ok_or(LinkError::Nameless)
}
