//! How connections to servers are made, to services and for web hooks: no proxy from the
//! environment, and who is trusted.

use std::io;
use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;

/// Servers commonly close an idle connection after two seconds or more. Using one that is just
/// being closed would leave it open whether a request arrived, so ours are closed earlier.
pub const IDLE: Duration = Duration::from_secs(1);
/// Enough for the clients of a busy proxy; those that nobody needs are gone after [`IDLE`].
pub const IDLE_CONNECTIONS: usize = 1024;
const CONNECT: Duration = Duration::from_secs(10);

/// Whose certificates are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roots {
    /// Nobody's: for plain HTTP, without the time and memory that the system's take.
    None,
    /// Those of the system.
    Native,
}

/// Why no server can be asked.
#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    /// Nobody could be trusted.
    #[error("the system's certificates cannot be read")]
    Roots(#[source] io::Error),
    /// The library for TLS has not what it needs.
    #[error("TLS cannot be used")]
    Tls(#[source] rustls::Error),
}

/// What connects to servers.
pub type Connector = HttpsConnector<HttpConnector>;

/// What connects to servers whose certificates are trusted by these.
pub fn connector(roots: Roots) -> Result<Connector, ConnectorError> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    let provider = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new();
    let builder = match roots {
        Roots::Native => {
            builder.with_provider_and_native_roots(provider).map_err(ConnectorError::Roots)?
        }
        Roots::None => {
            let config = rustls::ClientConfig::builder_with_provider(provider.into())
                .with_safe_default_protocol_versions()
                .map_err(ConnectorError::Tls)?
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth();
            builder.with_tls_config(config)
        }
    };
    Ok(builder.https_or_http().enable_http1().wrap_connector(connector))
}
