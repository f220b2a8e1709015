//! The way to an agent: by TCP, with TLS or without, or by a socket of this machine.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::net::{TcpStream, UnixStream};
use tower_service::Service;

use super::error::Cause;

/// What connects to one agent.
#[derive(Debug, Clone)]
pub(super) enum AgentConnector {
    Web(HttpsConnector<HttpConnector>),
    Socket(Arc<Path>),
}

/// Whose certificates are trusted.
pub(super) enum Trusted<'a> {
    /// Nobody's: for plain HTTP.
    Nobody,
    /// Those of the system.
    System,
    /// Those that these certificates, as PEM, vouch for.
    These(&'a [u8]),
}

impl AgentConnector {
    pub(super) fn web(trusted: &Trusted<'_>, patience: Duration) -> Result<Self, String> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(patience));
        http.set_nodelay(true);
        let provider = rustls::crypto::ring::default_provider();
        let builder = HttpsConnectorBuilder::new();
        let builder = match trusted {
            Trusted::System => builder
                .with_provider_and_native_roots(provider)
                .map_err(|error| format!("the system's certificates cannot be read: {error}"))?,
            Trusted::Nobody => builder.with_tls_config(config(RootCertStore::empty())?),
            Trusted::These(pem) => builder.with_tls_config(config(roots(pem)?)?),
        };
        Ok(Self::Web(builder.https_or_http().enable_http1().wrap_connector(http)))
    }
}

fn config(roots: RootCertStore) -> Result<rustls::ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}"))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let wrong = |why: String| format!("the certificates to trust cannot be used: {why}");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(wrong("there is none in the file".to_owned())),
        false => Ok(roots),
    }
}

type Connecting = Pin<Box<dyn Future<Output = Result<Stream, Cause>> + Send>>;

impl Service<Uri> for AgentConnector {
    type Response = Stream;
    type Error = Cause;
    type Future = Connecting;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Cause>> {
        match self {
            Self::Web(web) => web.poll_ready(context),
            Self::Socket(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        match self {
            Self::Web(web) => {
                let connecting = web.call(uri);
                Box::pin(async move { Ok(Stream::Web(Box::new(connecting.await?))) })
            }
            Self::Socket(path) => {
                let path = path.clone();
                Box::pin(async move {
                    Ok(Stream::Socket(TokioIo::new(UnixStream::connect(path).await?)))
                })
            }
        }
    }
}

/// One connection.
pub(super) enum Stream {
    Web(Box<MaybeHttpsStream<TokioIo<TcpStream>>>),
    Socket(TokioIo<UnixStream>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self {
            Self::Web(stream) => stream.connected(),
            Self::Socket(_) => Connected::new(),
        }
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Web(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Socket(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Web(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Socket(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Web(stream) => Pin::new(stream).poll_flush(context),
            Self::Socket(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Web(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Socket(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Web(stream) => stream.is_write_vectored(),
            Self::Socket(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Web(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            Self::Socket(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
        }
    }
}
