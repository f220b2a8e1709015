//! The authority of a mesh: a folder with its certificate and its key. Who has it can speak for any
//! site, so it is at one site, or with the operator; the others get along without.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cheops_core::model::SiteId;
use cheops_directory::{SignedStatement, Statement};
use cheops_record::{Keyring, SiteKey, ed25519_key_of};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ED25519, PublicKeyData, SignatureAlgorithm,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, DnsName, PrivateKeyDer, UnixTime};

use crate::durable;
use crate::identity::{MeshError, failed};
use crate::owner;

const CERTIFICATE: &str = "authority.pem";
const KEY: &str = "authority.key";
const NAME: &str = "name";

/// How long the identity of a site that joined serves, unless it is renewed.
pub const SERVES: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Clocks differ: what is issued now is good at sites whose clocks are behind.
const CLOCKS_DIFFER: Duration = Duration::from_secs(24 * 60 * 60);

/// Makes a new mesh in that folder: its authority's certificate and key.
pub fn create(dir: &Path) -> Result<(), MeshError> {
    let file = |name: &str| dir.join(name);
    if file(CERTIFICATE).exists() {
        return Err(MeshError::Exists(dir.to_owned()));
    }
    fs::create_dir_all(dir).map_err(failed(dir, "made"))?;
    // The key comes first: if it is there without a certificate, an earlier attempt ended between.
    let key = match file(KEY).exists() {
        true => KeyPair::from_pem(&key_in(dir)?)?,
        false => {
            let key = KeyPair::generate()?;
            write_new(&file(KEY), &key.serialize_pem(), 0o600)?;
            key
        }
    };
    // Part of the authority's name, so that two meshes can be told apart by it.
    let hash = blake3::hash(key.public_key_raw()).to_hex();
    let name = format!("Cheops mesh {}", &hash[..16]);
    if !file(NAME).exists() {
        write_new(&file(NAME), &name, 0o644)?;
    }
    let certificate = of_authority(&name).self_signed(&key)?;
    write_new(&file(CERTIFICATE), &certificate.pem(), 0o644)
}

/// Makes the one file that a site needs, and writes it to `out`. It serves for ever.
pub fn issue(dir: &Path, site: &SiteId, out: &Path) -> Result<(), MeshError> {
    issue_for(dir, site, out, None)
}

/// The same, for so long.
pub fn issue_for(
    dir: &Path,
    site: &SiteId,
    out: &Path,
    serves: Option<Duration>,
) -> Result<(), MeshError> {
    check_name(site)?;
    let authority = Authority::open(dir)?;
    // The cheapest to check: every commit of this site is checked by all others.
    let key = KeyPair::generate_for(&PKCS_ED25519)?;
    let mut params = of_site(site)?;
    if let Some(serves) = serves {
        serve(&mut params, SystemTime::now(), serves);
    }
    let own = params.signed_by(&key, &authority.issuer)?;
    let identity = format!("{}{}{}", own.pem(), key.serialize_pem(), authority.pem);
    write_new(out, &identity, 0o600)
}

/// Signs what the mesh says of its sites, with the authority in that folder.
pub fn sign(dir: &Path, statement: &Statement) -> Result<SignedStatement, MeshError> {
    let wrong = |what: String| MeshError::NotAnIdentity { path: dir.join(KEY), what };
    let authority = Authority::open(dir)?;
    let key = PrivateKeyDer::from_pem_slice(key_in(dir)?.as_bytes())
        .map_err(|error| wrong(error.to_string()))?;
    let key = SiteKey::new(key.secret_der(), &authority.certificate).map_err(MeshError::Key)?;
    let signed = SignedStatement::new(statement, &[], |text| key.sign_text(text));
    signed.ok_or_else(|| wrong("what it would sign exceeds a limit".to_owned()))
}

/// Whether a certificate can name it.
pub fn check_name(site: &SiteId) -> Result<(), MeshError> {
    let is_address = site.as_str().parse::<std::net::IpAddr>().is_ok();
    if is_address || DnsName::try_from(site.as_str()).is_err() {
        return Err(MeshError::Name(site.clone()));
    }
    Ok(())
}

/// The public key of a site: Ed25519.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SitePublicKey(pub [u8; 32]);

impl PublicKeyData for SitePublicKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ED25519
    }
}

/// An authority at hand.
pub struct Authority {
    certificate: CertificateDer<'static>,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Opens the folder that [`create`] made.
    pub fn open(dir: &Path) -> Result<Self, MeshError> {
        let read = |name: &'static str| {
            let path = dir.join(name);
            fs::read_to_string(&path).map_err(|source| not_there(dir, name, source))
        };
        let (name, pem) = (read(NAME)?, read(CERTIFICATE)?);
        let path = dir.join(CERTIFICATE);
        let unreadable = |error: rustls::pki_types::pem::Error| MeshError::NotAnIdentity {
            path,
            what: error.to_string(),
        };
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(unreadable)?;
        let issuer = Issuer::new(of_authority(&name), KeyPair::from_pem(&key_in(dir)?)?);
        Ok(Self { certificate, pem, issuer })
    }

    /// Its certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The same certificate anew, for the site that this authority issued it to.
    pub fn renew(
        &self,
        site: &SiteId,
        certificate: &CertificateDer<'_>,
        now: SystemTime,
        serves: Duration,
    ) -> Result<CertificateDer<'static>, MeshError> {
        let wrong = |what: String| MeshError::NotRenewed { site: site.clone(), what };
        let keyring = Keyring::new([self.certificate.clone()]);
        let keyring = keyring.map_err(|error| wrong(error.to_string()))?;
        let (found, ..) =
            keyring.add(certificate, UnixTime::now()).map_err(|error| wrong(error.to_string()))?;
        if found != *site {
            return Err(wrong(format!("the certificate is for `{found}`")));
        }
        let key = ed25519_key_of(certificate)
            .ok_or_else(|| wrong("its key is of an older kind: issue it anew".to_owned()))?;
        self.certify(site, SitePublicKey(key), now, serves)
    }

    /// A certificate that says that who has the key to this one is that site, from now on.
    pub fn certify(
        &self,
        site: &SiteId,
        key: SitePublicKey,
        now: SystemTime,
        serves: Duration,
    ) -> Result<CertificateDer<'static>, MeshError> {
        check_name(site)?;
        let mut params = of_site(site)?;
        serve(&mut params, now, serves);
        Ok(params.signed_by(&key, &self.issuer)?.der().clone())
    }
}

/// The authority's key, which nobody else may have been able to read.
fn key_in(dir: &Path) -> Result<String, MeshError> {
    let path = dir.join(KEY);
    let mut file = File::open(&path).map_err(|source| not_there(dir, KEY, source))?;
    let found = file.metadata().map_err(failed(&path, "read"))?;
    owner::check(&found).map_err(|owner| MeshError::OfAnother { path: path.clone(), owner })?;
    let mode = found.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(MeshError::Readable { path, mode });
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed(&path, "read"))?;
    Ok(text)
}

fn not_there(dir: &Path, missing: &'static str, source: std::io::Error) -> MeshError {
    match source.kind() {
        std::io::ErrorKind::NotFound => MeshError::NoMesh { dir: dir.to_owned(), missing },
        _ => failed(&dir.join(missing), "read")(source),
    }
}

fn of_authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, name.trim());
    params
}

fn of_site(site: &SiteId) -> Result<CertificateParams, rcgen::Error> {
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

fn serve(params: &mut CertificateParams, now: SystemTime, serves: Duration) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    params.not_before = epoch + now.saturating_sub(CLOCKS_DIFFER);
    params.not_after = epoch + now + serves;
}

fn write_new(path: &Path, content: &str, mode: u32) -> Result<(), MeshError> {
    durable::write_new(path, content.as_bytes(), mode).map_err(failed(path, "written"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;

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

    #[test]
    fn an_authority_that_was_made_halfway_is_made_whole() {
        let dir = tempfile::tempdir().unwrap();
        create(dir.path()).unwrap();
        let key = fs::read(dir.path().join(KEY)).unwrap();
        for missing in [&[CERTIFICATE][..], &[CERTIFICATE, NAME]] {
            missing.iter().for_each(|name| fs::remove_file(dir.path().join(name)).unwrap());
            assert!(matches!(Authority::open(dir.path()), Err(MeshError::NoMesh { .. })));
            create(dir.path()).unwrap();
            Authority::open(dir.path()).unwrap();
            assert_eq!(fs::read(dir.path().join(KEY)).unwrap(), key);
        }
    }

    #[test]
    fn a_certificate_is_renewed_for_its_site_and_its_key_and_for_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let (mesh, other) = (dir.path().join("mesh"), dir.path().join("other"));
        create(&mesh).unwrap();
        create(&other).unwrap();
        let (paris, out) = (SiteId::new("paris").unwrap(), dir.path().join("paris.pem"));
        // Over by the time that it is renewed.
        issue_for(&mesh, &paris, &out, Some(Duration::ZERO)).unwrap();
        let identity = Identity::read(&out).unwrap();
        let shown = &identity.certificates()[0];
        let authority = Authority::open(&mesh).unwrap();
        let now = SystemTime::now();
        let hour = Duration::from_secs(3_600);
        let made = authority.renew(&paris, shown, now, hour).unwrap();

        durable::replace(&out, identity.renewed(&made).unwrap().as_bytes(), 0o600).unwrap();
        let renewed = Identity::read(&out).unwrap();
        let key = |identity: &Identity| identity.site_key().unwrap().id();
        assert_eq!(key(&renewed), key(&identity));
        let lasts = |identity: &Identity| identity.serves().unwrap().1;
        assert!(lasts(&renewed) >= lasts(&identity) + 3_600);

        let lyon = SiteId::new("lyon").unwrap();
        let of_another = Authority::open(&other).unwrap();
        assert!(authority.renew(&lyon, shown, now, hour).is_err(), "another site's");
        assert!(of_another.renew(&paris, shown, now, hour).is_err(), "another mesh's");
        issue(&mesh, &lyon, &dir.path().join("lyon.pem")).unwrap();
        let foreign = Identity::read(&dir.path().join("lyon.pem")).unwrap();
        assert!(foreign.renewed(&made).is_err(), "another key's");
    }

    #[test]
    fn an_authority_whose_key_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        create(dir.path()).unwrap();
        let key = dir.path().join(KEY);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
        let opened = Authority::open(dir.path()).err();
        assert!(matches!(opened, Some(MeshError::Readable { .. })), "{opened:?}");
    }
}
