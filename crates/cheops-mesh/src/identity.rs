//! Who may speak for a site: a mesh is an authority of its own, and each site has one file from
//! it with its certificate, its key and the authority's certificate.
//!
//! The authority's folder stays with the operator; nothing of it is needed while sites run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cheops_core::model::SiteId;
use cheops_record::{CertificateError, KeyError, Keyring, SiteKey, site_of};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, DnsName, PrivateKeyDer};

use crate::owner::{self, OfAnother};

const CERTIFICATE: &str = "authority.pem";
const KEY: &str = "authority.key";
const NAME: &str = "name";

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
    /// Its key cannot sign.
    #[error("the key of the identity cannot sign what this site writes")]
    Key(#[source] KeyError),
    /// The key or certificate could not be made.
    #[error("the certificate could not be made")]
    Crypto(#[from] rcgen::Error),
}

/// Makes a new mesh in that folder: its authority's certificate and key.
pub fn create(dir: &Path) -> Result<(), MeshError> {
    let file = |name: &str| dir.join(name);
    if file(KEY).exists() || file(CERTIFICATE).exists() {
        return Err(MeshError::Exists(dir.to_owned()));
    }
    fs::create_dir_all(dir).map_err(failed(dir, "made"))?;
    let key = KeyPair::generate()?;
    // Part of the authority's name, so that two meshes can be told apart by it.
    let name = format!("Cheops mesh {}", &hex(key.public_key_raw())[..16]);
    let certificate = authority(&name).self_signed(&key)?;
    write_new(&file(NAME), &name, 0o644)?;
    write_new(&file(KEY), &key.serialize_pem(), 0o600)?;
    write_new(&file(CERTIFICATE), &certificate.pem(), 0o644)
}

/// Makes the one file that a site needs, and writes it to `out`.
pub fn issue(dir: &Path, site: &SiteId, out: &Path) -> Result<(), MeshError> {
    let is_address = site.as_str().parse::<std::net::IpAddr>().is_ok();
    if is_address || DnsName::try_from(site.as_str()).is_err() {
        return Err(MeshError::Name(site.clone()));
    }
    let read = |missing: &'static str| {
        let path = dir.join(missing);
        if !path.exists() {
            return Err(MeshError::NoMesh { dir: dir.to_owned(), missing });
        }
        fs::read_to_string(&path).map_err(failed(&path, "read"))
    };
    let (name, certificate) = (read(NAME)?, read(CERTIFICATE)?);
    let issuer = Issuer::new(authority(&name), KeyPair::from_pem(&read(KEY)?)?);
    // The cheapest to check: every commit of this site is checked by all others.
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
    let own = site_certificate(site)?.signed_by(&key, &issuer)?;
    let identity = format!("{}{}{certificate}", own.pem(), key.serialize_pem());
    write_new(out, &identity, 0o600)
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, name.trim());
    params
}

fn site_certificate(site: &SiteId) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new([site.to_string()])?;
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, site.as_str());
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // A site both calls and is called.
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn write_new(path: &Path, content: &str, mode: u32) -> Result<(), MeshError> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(content.as_bytes())?;
        file.sync_all()
    });
    written.map_err(failed(path, "written"))
}

fn failed<'a>(path: &'a Path, doing: &'static str) -> impl FnOnce(io::Error) -> MeshError + 'a {
    move |source| MeshError::File { path: path.to_owned(), doing, source }
}

fn hex(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// What a site proves itself with, and whom it believes.
#[derive(Debug)]
pub struct Identity {
    /// Whose it is, as the certificate says.
    pub site: SiteId,
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    authority: CertificateDer<'static>,
    pub(crate) roots: Arc<rustls::RootCertStore>,
}

impl Identity {
    /// Reads the file that [`issue`] made.
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        create(dir.path()).unwrap();
        assert!(matches!(create(dir.path()), Err(MeshError::Exists(_))));
        let out = dir.path().join("paris.pem");
        let paris = SiteId::new("paris").unwrap();
        issue(dir.path(), &paris, &out).unwrap();
        assert!(matches!(issue(dir.path(), &paris, &out), Err(MeshError::File { .. })));
    }

    #[test]
    fn a_name_that_no_certificate_can_hold_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        create(dir.path()).unwrap();
        for name in ["127.0.0.1", "a..b", &"x".repeat(64)] {
            let issued = issue(dir.path(), &SiteId::new(name).unwrap(), &dir.path().join("x.pem"));
            assert!(matches!(issued, Err(MeshError::Name(_))), "{name}: {issued:?}");
        }
    }
}
