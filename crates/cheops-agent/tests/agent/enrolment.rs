//! How a site becomes one of the mesh, and who does not.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cheops_agent::Agent;
use cheops_agent::config::AgentConfig;
use cheops_agent::mesh::{self, Identity, JoinError, JoinToken, Joined, JoinerKey};
use cheops_api::{Client, InvitationState, Invite};
use cheops_core::model::SiteId;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use crate::cluster::{Cluster, Network, PATIENCE, Way, replies, shell, until};

const ENROL: &[u8] = b"cheops-enrol";
const SITE: &[u8] = b"cheops";

/// A site with the authority of a mesh.
struct First {
    dir: tempfile::TempDir,
    agent: Agent,
}

impl First {
    async fn start() -> Self {
        Self::with("authority = \"mesh\"").await
    }

    async fn with(authority: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let identity = dir.path().join("paris.pem");
        mesh::create(&dir.path().join("mesh")).unwrap();
        mesh::issue(&dir.path().join("mesh"), &name("paris"), &identity).unwrap();
        let text = format!(
            "site = \"paris\"\n[api]\nlisten = \"127.0.0.1:0\"\nauth = \"none\"\n\
             [mesh]\nlisten = \"127.0.0.1:0\"\nidentity = \"paris.pem\"\n{authority}\n"
        );
        let config = AgentConfig::parse(&text, &dir.path().join("paris.toml"), |_| None).unwrap();
        Self { agent: Agent::start(config).await.unwrap(), dir }
    }

    fn client(&self) -> Client {
        Client::new(self.agent.api_url()).unwrap()
    }

    fn mesh_address(&self) -> SocketAddr {
        self.agent.mesh_address().unwrap()
    }

    async fn token(&self, invite: Invite) -> JoinToken {
        let invited = self.client().invite(&invite).await.unwrap();
        invited.token.parse().unwrap()
    }

    async fn invite(&self, site: &str) -> JoinToken {
        self.token(Invite { site: site.to_owned(), ..Invite::default() }).await
    }

    async fn state(&self, site: &str) -> InvitationState {
        let all = self.client().invitations().await.unwrap();
        all.into_iter().find(|invitation| invitation.site == site).unwrap().state
    }

    fn pem(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.dir.path().join(file)).unwrap()
    }
}

fn name(site: &str) -> SiteId {
    SiteId::new(site).unwrap()
}

async fn join(token: &JoinToken, key: &JoinerKey) -> Result<Joined, JoinError> {
    tokio::time::timeout(PATIENCE, mesh::join(token, key, None, 8078)).await.unwrap()
}

/// What is in the identity that somebody got.
fn identity(dir: &Path, joined: &Joined) -> Identity {
    let path = dir.join(format!("{}.pem", joined.site));
    let _earlier = std::fs::remove_file(&path);
    mesh::durable::write_new(&path, joined.identity.as_bytes(), 0o600).unwrap();
    Identity::read(&path).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_was_invited_gets_an_identity_and_is_told_where_the_others_are() {
    let first = First::start().await;
    let token = first.invite("lyon").await;
    assert_eq!(first.state("lyon").await, InvitationState::Open);
    assert_eq!(token.address, first.mesh_address().to_string());

    let key = JoinerKey::new().unwrap();
    let joined = join(&token, &key).await.unwrap();

    assert_eq!(joined.site, name("lyon"));
    assert_eq!(joined.address, "127.0.0.1:8078");
    let known: Vec<_> = joined.mesh.sites.iter().map(|known| known.site.as_str()).collect();
    assert_eq!(known, ["paris"]);
    assert_eq!(joined.mesh.sites[0].address, first.mesh_address().to_string());
    let own = identity(first.dir.path(), &joined);
    assert_eq!(own.site, name("lyon"));
    own.site_key().unwrap();
    let used = &first.client().invitations().await.unwrap()[0];
    assert_eq!((used.state, used.used_from.as_deref()), (InvitationState::Used, Some("127.0.0.1")));
    assert_eq!(used.asked_by, "anyone");

    // Who lost the answer asks again, with the key that it wrote down.
    let written = JoinerKey::from_pem(&key.to_pem()).unwrap();
    let again = join(&token, &written).await.unwrap();
    assert_eq!(identity(first.dir.path(), &again).site, name("lyon"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_used_revoked_or_is_over_says_which() {
    let first = First::start().await;
    let (used, revoked) = (first.invite("used").await, first.invite("revoked").await);
    let site = "over".to_owned();
    let over = first.token(Invite { site, seconds: Some(1), ..Invite::default() }).await;
    let key = JoinerKey::new().unwrap();
    join(&used, &key).await.unwrap();
    let taken_back = first.client().revoke_invitation(&revoked.id.to_string()).await.unwrap();
    assert_eq!(taken_back.state, InvitationState::Revoked);
    until("its time is over", async || first.state("over").await == InvitationState::Expired).await;
    let mistyped = {
        let (mut text, other) = (used.to_string(), revoked.to_string());
        let secret = |text: &str| text.split('.').nth(3).unwrap()[..27].to_owned();
        text = text.replace(&secret(&text), &secret(&other));
        text.parse::<JoinToken>().unwrap()
    };
    for (token, words) in [
        (&used, "the token was used already, and serves once"),
        (&revoked, "the token was revoked"),
        (&over, "the token's time is over"),
        (&mistyped, "the token is not known there: was it copied whole, and made by that site?"),
    ] {
        let another = JoinerKey::new().unwrap();
        let error = join(token, &another).await.unwrap_err();
        assert_eq!(error.to_string(), words);
    }
    let revoked = first.client().revoke_invitation(&used.id.to_string()).await.unwrap_err();
    assert!(revoked.to_string().contains("it was used"), "{revoked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_site_with_the_authority_invites_and_nobody_else_lets_anybody_in() {
    let (first, other) = (First::start().await, First::with("").await);
    let invite = Invite { site: "lyon".to_owned(), ..Invite::default() };
    let refused = other.client().invite(&invite).await.unwrap_err().to_string();
    assert!(refused.contains("does not have the mesh's authority"), "{refused}");
    for (site, want) in [("paris", "this is site"), ("127.0.0.1", "cannot stand in a certificate")]
    {
        let invite = Invite { site: site.to_owned(), ..Invite::default() };
        let refused = first.client().invite(&invite).await.unwrap_err().to_string();
        assert!(refused.contains(want), "{refused}");
    }
    let token = first.invite("lyon").await;
    let token = JoinToken { address: other.mesh_address().to_string(), ..token };
    let error = join(&token, &JoinerKey::new().unwrap()).await.unwrap_err();
    assert!(matches!(error, JoinError::NoHost(_)), "{error:?}");
}

/// All that went over a network.
#[derive(Debug, Clone, Default)]
struct Wiretap(Arc<Mutex<Vec<u8>>>);

impl Network for Wiretap {
    fn crossing(&mut self, _: Way, datagram: &[u8]) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().extend_from_slice(datagram);
        vec![datagram.to_vec()]
    }
}

impl Wiretap {
    /// Whether these bytes went by, in whatever form a text has them.
    fn heard(&self, bytes: &[u8]) -> bool {
        let heard = self.0.lock().unwrap();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        // What base64 makes of them depends on where they begin.
        let encoded = (0..3).flat_map(|before| {
            let shifted = [&vec![0; before][..], bytes].concat();
            [STANDARD.encode(&shifted), URL_SAFE_NO_PAD.encode(&shifted)]
                .map(|text| text[4..text.len() - 5].as_bytes().to_vec())
        });
        let upper = hex.to_uppercase().into_bytes();
        let forms = encoded.chain([bytes.to_vec(), hex.into_bytes(), upper]);
        let mut forms = forms.collect::<Vec<_>>().into_iter();
        forms.any(|form| heard.windows(form.len()).any(|window| window == form))
    }
}

fn secret_of(token: &JoinToken) -> Vec<u8> {
    let text = token.to_string();
    let secret = text.split('.').nth(3).unwrap().split('@').next().unwrap();
    URL_SAFE_NO_PAD.decode(secret).unwrap()
}

#[test]
fn a_wiretap_hears_a_secret_in_every_form() {
    let secret = [0x5a; 20];
    let said = |what: &[u8]| {
        let tap = Wiretap::default();
        tap.0.lock().unwrap().extend_from_slice(what);
        tap.heard(&secret)
    };
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let json = STANDARD.encode([&b"{\"secret\":\""[..], &secret].concat());
    for form in
        [&secret[..], hex.as_bytes(), json.as_bytes(), URL_SAFE_NO_PAD.encode(secret).as_bytes()]
    {
        assert!(said(&[b"before", form, b"after"].concat()), "{form:?}");
    }
    assert!(!said(&[0x5a; 19]));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_secret_is_on_the_wire_and_nothing_at_all_is_said_to_another_mesh() {
    let (first, other) = (First::start().await, First::start().await);
    let token = first.invite("lyon").await;
    let secret = secret_of(&token);
    let tapped = |to: SocketAddr| {
        let tap = Wiretap::default();
        let at = tap.clone().to(to);
        (tap, JoinToken { address: at.to_string(), ..token.clone() })
    };
    let key = JoinerKey::new().unwrap();

    let (tap, elsewhere) = tapped(other.mesh_address());
    let error = join(&elsewhere, &key).await.unwrap_err();
    assert!(matches!(error, JoinError::OfAnotherMesh { .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("Nothing was told to it") && said.contains("the token says"), "{said}");
    assert!(!tap.0.lock().unwrap().is_empty() && !tap.heard(&secret));
    assert_eq!(first.state("lyon").await, InvitationState::Open);

    let (tap, here) = tapped(first.mesh_address());
    join(&here, &key).await.unwrap();
    assert!(!tap.heard(&secret));
}

/// Somebody who answers at an address and shows these certificates; whether anything was said to it.
fn impostor(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Impostor {
    let provider = rustls::crypto::ring::default_provider();
    let key = provider.key_provider.load_private_key(key).unwrap();
    let shown = rustls::sign::CertifiedKey::new(chain, key);
    let mut server = rustls::ServerConfig::builder_with_provider(provider.into())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(shown)));
    server.alpn_protocols = vec![ENROL.to_vec()];
    let server = QuicServerConfig::try_from(server).unwrap();
    let server = quinn::ServerConfig::with_crypto(Arc::new(server));
    let endpoint = quinn::Endpoint::server(server, "127.0.0.1:0".parse().unwrap()).unwrap();
    let (address, heard) = (endpoint.local_addr().unwrap(), Arc::new(Mutex::new(0)));
    let ear = heard.clone();
    tokio::spawn(async move {
        while let Some(call) = endpoint.accept().await {
            let Ok(connection) = call.await else { continue };
            while let Ok((_, mut receive)) = connection.accept_bi().await {
                *ear.lock().unwrap() += receive.read_to_end(65_536).await.map_or(1, |it| it.len());
            }
        }
    });
    Impostor { address, heard }
}

struct Impostor {
    address: SocketAddr,
    heard: Arc<Mutex<usize>>,
}

#[tokio::test(flavor = "multi_thread")]
async fn who_shows_the_right_authority_and_is_not_of_its_mesh_hears_nothing() {
    let (first, other) = (First::start().await, First::start().await);
    let token = first.invite("lyon").await;
    let certificates = |of: &First| {
        let of: Vec<_> = CertificateDer::pem_slice_iter(&of.pem("paris.pem")).collect();
        of.into_iter().map(Result::unwrap).collect::<Vec<_>>()
    };
    let [right, wrong] = [&first, &other].map(certificates);
    let key = || PrivateKeyDer::from_pem_slice(&other.pem("paris.pem")).unwrap();
    for (chain, why) in [
        // Of its own mesh, honestly.
        (vec![wrong[0].clone(), wrong[1].clone()], "the hash of its authority's certificate is"),
        // With the certificate of the right authority, which anybody can have.
        (vec![wrong[0].clone(), right[1].clone()], "its certificate is not good"),
        // With all that the right site shows, and not its key.
        (vec![right[0].clone(), right[1].clone()], "it does not have the key of its certificate"),
        (vec![wrong[0].clone()], "it shows no authority"),
        // The authority speaks for no site.
        (vec![right[1].clone(), right[1].clone()], "its certificate"),
    ] {
        let there = impostor(chain, key());
        let token = JoinToken { address: there.address.to_string(), ..token.clone() };
        let error = join(&token, &JoinerKey::new().unwrap()).await.unwrap_err();
        assert!(matches!(error, JoinError::OfAnotherMesh { .. }), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(*there.heard.lock().unwrap(), 0);
    }
    assert_eq!(first.state("lyon").await, InvitationState::Open);
}

/// Believes whoever answers.
#[derive(Debug)]
struct Gullible;

impl ServerCertVerifier for Gullible {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519, SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

/// Somebody without a certificate.
fn stranger(protocols: &[&[u8]]) -> (quinn::Endpoint, quinn::ClientConfig) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Gullible))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).unwrap()));
    (quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap(), config)
}

async fn call(
    at: SocketAddr,
    protocols: &[&[u8]],
) -> Result<quinn::Connection, quinn::ConnectionError> {
    let (endpoint, config) = stranger(protocols);
    endpoint.connect_with(config, at, "paris").unwrap().await
}

/// Why the other side hung up.
async fn closed(connection: &quinn::Connection) -> String {
    tokio::time::timeout(PATIENCE, connection.closed()).await.unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_shows_no_certificate_is_no_site_whatever_it_says() {
    let first = First::start().await;
    let strict = First::with("").await;
    for protocols in [&[SITE][..], &[SITE, ENROL], &[ENROL, SITE]] {
        let connection = call(first.mesh_address(), protocols).await.unwrap();
        // As a site would begin.
        if let Ok(mut greeting) = connection.open_uni().await {
            let _closed =
                greeting.write_all(b"CHEOPS\x03\x00\x0e\0\0\0\x03\x04lyon\x05\x09\x050.1.0").await;
        }
        let why = closed(&connection).await;
        assert!(why.contains("it shows no certificate"), "{protocols:?}: {why}");
    }
    // Where nobody can enrol, not even the handshake comes to its end.
    for protocols in [&[SITE][..], &[ENROL]] {
        let called = match call(strict.mesh_address(), protocols).await {
            Ok(connection) => closed(&connection).await,
            Err(error) => error.to_string(),
        };
        assert!(called.contains("aborted by peer"), "{protocols:?}: {called}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_enrols_has_one_stream_and_some_kib_and_is_refused_with_garbage() {
    let first = First::start().await;
    let connection = call(first.mesh_address(), &[ENROL]).await.unwrap();
    let (mut send, _receive) = connection.open_bi().await.unwrap();
    let one_more = tokio::time::timeout(Duration::from_millis(300), connection.open_bi()).await;
    assert!(one_more.is_err(), "a second stream");
    // It may say less than what is held of it, and more is not taken.
    let flood = tokio::time::timeout(Duration::from_secs(2), async {
        let _closed = send.write_all(b"CHEOPSJN\x01\x00\x00\x10\x00\x00").await;
        let mut taken = 0;
        while let Ok(bytes) = send.write(&[0; 1024]).await {
            taken += bytes;
            if taken > 256 * 1024 {
                break;
            }
        }
        taken
    });
    let taken = flood.await.unwrap_or_default();
    assert!(taken <= 64 * 1024, "{taken}");

    for said in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"CHEOPSJN\x02\x00\x01\x00\x00\x00\x00",
        b"CHEOPSJN\x01\x00\xff\xff\xff\x7f\x00",
        b"CHEOPSJN\x01\x00\x04\x00\x00\x00\xff\xff\xff\xff",
        &[&b"CHEOPSJN\x01\x00\x40\x00\x00\x00"[..], &[0; 64]].concat(),
        b"CHEOPS",
        b"",
    ] {
        let connection = call(first.mesh_address(), &[ENROL]).await.unwrap();
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        let _closed = send.write_all(said).await;
        let _closed = send.finish();
        let answer = receive.read_to_end(4096).await;
        assert!(answer.is_err(), "{said:?}: {answer:?}");
        closed(&connection).await;
    }
    // It goes on.
    let token = first.invite("lyon").await;
    join(&token, &JoinerKey::new().unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_enrol_and_say_nothing_leave_room_for_others() {
    let first = First::start().await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..60 {
        calls.spawn(call(first.mesh_address(), &[ENROL]));
    }
    let mut silent = Vec::new();
    while let Some(called) = calls.join_next().await {
        silent.extend(called.unwrap());
    }
    assert!((1..=16).contains(&silent.len()), "{} of one address at once", silent.len());
    let token = first.invite("lyon").await;
    let key = JoinerKey::new().unwrap();
    until("they are hung up on", async || join(&token, &key).await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_is_renewed_before_it_ends_and_shown_without_a_restart() {
    let authority = |site| if site == 0 { "authority = \"mesh\"" } else { "" }.to_owned();
    let mut cluster = Cluster::each(2, authority).await;
    let file = cluster.dir().join("site2.pem");
    cluster.stop(1).await;
    std::fs::remove_file(&file).unwrap();
    let serves = Some(Duration::from_secs(12));
    mesh::issue_for(&cluster.dir().join("mesh"), &name("site2"), &file, serves).unwrap();
    let until_when = || Identity::read(&file).unwrap().serves().unwrap().1;
    let first = until_when();
    cluster.start(1).await;

    let days = |days: u64| days * 24 * 60 * 60;
    until("it is renewed", async || until_when() > first + days(80)).await;
    let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    until("the first one is over", async || now() > first + 1).await;
    // Links are made anew, and entries that were signed before are still its word.
    cluster.stop(0).await;
    cluster.start(0).await;
    let events = cluster.submit(1, "renewed", &shell("site1 & site2", "add", "true")).await;
    assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")]);
}
