//! Who may speak for a site: each has one file with its certificate, its key and the certificate of
//! the mesh's authority.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cheops_core::model::SiteId;
use cheops_record::{CertificateError, KeyError, Keyring, SiteKey, site_of};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::owner::{self, OfAnother};

/// Why a mesh or an identity could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    /// There is one already.
    #[error("there is a mesh in `{}` already", .0.display())]
    Exists(PathBuf),
    /// There is none.
    #[error("there is no mesh in `{}`: `{}` is missing", .dir.display(), .missing)]
    NoMesh {
        /// Where it was looked for.
        dir: PathBuf,
        /// What is not there.
        missing: &'static str,
    },
    /// A file could not be read or written.
    #[error("`{}` could not be {doing}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What came of it.
        source: io::Error,
    },
    /// A site cannot have that name in a certificate.
    #[error(
        "`{0}` cannot stand in a certificate: a site's name must also be a valid DNS name, and no IP address"
    )]
    Name(SiteId),
    /// A file is not an identity.
    #[error("`{}` is not an identity: {what}", .path.display())]
    NotAnIdentity {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Others could have read it.
    #[error("`{}` has mode {mode:04o}: not only its owner can read the key in it", .path.display())]
    Readable {
        /// Which.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Somebody else could have read or changed it.
    #[error("`{}` holds a key, and {owner}", .path.display())]
    OfAnother {
        /// Which.
        path: PathBuf,
        /// Whose it is.
        owner: OfAnother,
    },
    /// It is not renewed.
    #[error("the identity of `{site}` cannot be renewed: {what}")]
    NotRenewed {
        /// Whose.
        site: SiteId,
        /// Why.
        what: String,
    },
    /// Its key cannot sign.
    #[error("the key of the identity cannot sign what this site writes")]
    Key(#[source] KeyError),
    /// The key or certificate could not be made.
    #[error("the certificate could not be made")]
    Crypto(#[from] rcgen::Error),
}

pub(crate) fn failed<'a>(
    path: &'a Path,
    doing: &'static str,
) -> impl FnOnce(io::Error) -> MeshError + 'a {
    move |source| MeshError::File { path: path.to_owned(), doing, source }
}

/// What a site proves itself with, and whom it believes.
#[derive(Debug)]
pub struct Identity {
    /// Whose it is, as the certificate says.
    pub site: SiteId,
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) authority: CertificateDer<'static>,
    pub(crate) roots: Arc<rustls::RootCertStore>,
}

impl Identity {
    /// Reads the file that [`crate::authority::issue`] made, or a site that joined.
    pub fn read(path: &Path) -> Result<Self, MeshError> {
        let mut file = File::open(path).map_err(failed(path, "read"))?;
        let found = file.metadata().map_err(failed(path, "read"))?;
        owner::check(&found)
            .map_err(|owner| MeshError::OfAnother { path: path.to_owned(), owner })?;
        let mode = found.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(MeshError::Readable { path: path.to_owned(), mode });
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed(path, "read"))?;
        let wrong = |what: &str| MeshError::NotAnIdentity { path: path.into(), what: what.into() };
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text)
            .collect::<Result<_, _>>()
            .map_err(|error| wrong(&error.to_string()))?;
        let [own, authority] = <[_; 2]>::try_from(certificates).map_err(|found| {
            wrong(&format!("it holds {} certificates where there should be two", found.len()))
        })?;
        let key = PrivateKeyDer::from_pem_slice(&text)
            .map_err(|error| wrong(&format!("its key cannot be read: {error}")))?;
        let site = site_of(&own).ok_or_else(|| wrong("its certificate names no site"))?;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(authority.clone()).map_err(|error| wrong(&error.to_string()))?;
        Ok(Self { site, chain: vec![own], key, authority, roots: Arc::new(roots) })
    }

    /// What it shows to others: its own certificate first.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// From when until when it serves, in seconds since 1970.
    pub fn serves(&self) -> Option<(u64, u64)> {
        cheops_record::validity_of(&self.chain[0])
    }

    /// The file of the same key with another certificate.
    pub fn renewed(&self, certificate: &CertificateDer<'_>) -> Result<String, MeshError> {
        // It could not be used: whoever made it did not look at the key.
        SiteKey::new(self.key.secret_der(), certificate).map_err(MeshError::Key)?;
        let [own, authority] = [certificate, &self.authority].map(|der| pem_of("CERTIFICATE", der));
        Ok(format!("{own}{}{authority}", pem_of("PRIVATE KEY", self.key.secret_der())))
    }

    /// The certificate of the mesh's authority.
    pub fn authority(&self) -> &CertificateDer<'static> {
        &self.authority
    }

    /// By which the mesh's sites are known.
    pub fn keyring(&self) -> Result<Keyring, CertificateError> {
        Keyring::new([self.authority.clone()])
    }

    /// What the site signs its entries with.
    pub fn site_key(&self) -> Result<SiteKey, MeshError> {
        // There is one: that is how an identity is read.
        SiteKey::new(self.key.secret_der(), &self.chain[0]).map_err(MeshError::Key)
    }
}

/// A certificate, or a key, as a file has it.
pub(crate) fn pem_of(kind: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy);
    let lines: String = lines.map(|line| line.into_owned() + "\n").collect();
    format!("-----BEGIN {kind}-----\n{lines}-----END {kind}-----\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::authority::{create, issue};

    #[test]
    fn an_identity_that_was_issued_can_be_read_and_names_its_site() {
        let dir = tempfile::tempdir().unwrap();
        let mesh = dir.path().join("mesh");
        create(&mesh).unwrap();
        let out = dir.path().join("paris.pem");
        issue(&mesh, &SiteId::new("Paris-1").unwrap(), &out).unwrap();
        assert_eq!(Identity::read(&out).unwrap().site.as_str(), "Paris-1");
    }

    #[test]
    fn an_identity_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (mesh, out) = (dir.path().join("mesh"), dir.path().join("paris.pem"));
        create(&mesh).unwrap();
        issue(&mesh, &SiteId::new("paris").unwrap(), &out).unwrap();
        for mode in [0o640, 0o604, 0o644, 0o660] {
            fs::set_permissions(&out, fs::Permissions::from_mode(mode)).unwrap();
            let read = Identity::read(&out);
            assert!(matches!(read, Err(MeshError::Readable { .. })), "{mode:o}: {read:?}");
        }
        fs::set_permissions(&out, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(Identity::read(&out).is_ok());
    }

    #[test]
    fn an_identity_that_belongs_to_somebody_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (mesh, out) = (dir.path().join("mesh"), dir.path().join("paris.pem"));
        create(&mesh).unwrap();
        issue(&mesh, &SiteId::new("paris").unwrap(), &out).unwrap();
        if owner::tests::given_away(&out) {
            let read = Identity::read(&out);
            assert!(matches!(read, Err(MeshError::OfAnother { .. })), "{read:?}");
        }
    }
}
