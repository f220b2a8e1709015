//! The API's certificate.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use cheops_mesh::owner;

/// Why the API cannot be served by TLS.
#[derive(Debug, thiserror::Error)]
#[error("`{}` cannot be used: {what}", .path.display())]
pub struct TlsError {
    /// The file.
    pub(super) path: PathBuf,
    /// What is wrong with it.
    pub(super) what: String,
}

/// What answers for the certificate in that file, which holds its key as well.
pub(crate) fn acceptor(path: &Path) -> Result<TlsAcceptor, TlsError> {
    let wrong = |what: String| TlsError { path: path.to_owned(), what };
    let found = fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    owner::check(&found).map_err(|owner| wrong(format!("it holds a key, and {owner}")))?;
    let mode = found.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(wrong(format!(
            "it holds a key, and its mode {mode:04o} lets others than its owner at it; `chmod 600` \
             it"
        )));
    }
    let text = fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong("it holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&text)
        .map_err(|error| wrong(format!("its key cannot be read: {error}")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong(error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
