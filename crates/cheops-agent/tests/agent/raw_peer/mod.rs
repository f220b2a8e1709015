//! A site of the mesh without an agent: it holds a valid identity, and speaks the wire by its own bytes.

pub(crate) mod honest;
mod lies;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cheops_agent::mesh::{self, Identity};
use cheops_core::engine::Message;
use cheops_core::model::{Author, Entry, Incarnation, SiteId};
use cheops_record::SiteKey;
use cheops_record::wire::{self, Frame, Received};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::cluster::{Cluster, PATIENCE};

pub(crate) use lies::Claim;

/// Its name. It comes before those of the agents, so it is the one that calls.
pub(crate) const RAW: &str = "raw";

/// Who holds the identity.
pub(crate) struct RawPeer {
    pub(crate) me: Author,
    key: SiteKey,
    endpoint: quinn::Endpoint,
    boot: u64,
}

/// What a side says of itself first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) newest: u16,
    pub(crate) oldest: u16,
    pub(crate) site: String,
    /// Added to the end of it.
    pub(crate) more: Vec<u8>,
}

/// A connection on which both sides have greeted.
pub(crate) struct RawLink {
    pub(crate) connection: quinn::Connection,
    pub(crate) send: quinn::SendStream,
    heard: Arc<Mutex<Vec<Received>>>,
}

/// Two agents that know a third site, and that site.
pub(crate) async fn two_agents_and_a_raw_peer() -> (Cluster, RawPeer) {
    // Bound before there are identities, since the agents have to know where it is.
    let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = endpoint.local_addr().unwrap();
    let peer = format!("[[peers]]\nsite = \"{RAW}\"\naddress = \"{address}\"\n");
    let cluster = Cluster::with(2, &peer).await;
    let raw = RawPeer::at(&cluster.dir(), endpoint);
    (cluster, raw)
}

impl RawPeer {
    fn at(dir: &Path, mut endpoint: quinn::Endpoint) -> Self {
        let (site, file) = (SiteId::new(RAW).unwrap(), dir.join("raw.pem"));
        mesh::issue(&dir.join("mesh"), &site, &file).unwrap();
        let (client, server) = configs(&file);
        endpoint.set_default_client_config(client);
        endpoint.set_server_config(Some(server));
        let key = Identity::read(&file).unwrap().site_key().unwrap();
        let me = Author { site, incarnation: Incarnation::drawn(0xbad) };
        Self { me, key, endpoint, boot: 1 }
    }

    /// Calls an agent, whatever it makes of that.
    pub(crate) async fn connect(&self, mesh: SocketAddr) -> quinn::Connection {
        let calling = async {
            loop {
                // There may be too many calls under way, or the agent just starts.
                match self.endpoint.connect(mesh, "site").unwrap().await {
                    Ok(connection) => return connection,
                    Err(error) => eprintln!("not yet: {error}"),
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, calling).await.expect("the agent answers")
    }

    /// Calls an agent and greets as it does, in another run than before.
    pub(crate) async fn link(&mut self, mesh: SocketAddr) -> RawLink {
        self.link_as(mesh, |theirs| Greeting { site: RAW.to_owned(), ..theirs }).await
    }

    /// The same with another greeting, given theirs.
    pub(crate) async fn link_as(
        &mut self,
        mesh: SocketAddr,
        ours: impl Fn(Greeting) -> Greeting,
    ) -> RawLink {
        let connecting = async {
            loop {
                let connection = self.connect(mesh).await;
                match self.greet(connection.clone(), &ours).await {
                    Some(link) => return link,
                    // The agent had a call of its own under way.
                    None => eprintln!("not greeted: {:?}", connection.close_reason()),
                }
            }
        };
        tokio::time::timeout(PATIENCE, connecting).await.expect("the agent greets")
    }

    /// Waits for an agent's call, and greets.
    pub(crate) async fn is_called(&mut self, ours: impl Fn(Greeting) -> Greeting) -> RawLink {
        let called = async {
            loop {
                let incoming = self.endpoint.accept().await.unwrap();
                // Of several calls at once the agent goes on with one.
                if let Ok(connection) = incoming.await
                    && let Some(link) = self.greet(connection, &ours).await
                {
                    return link;
                }
            }
        };
        tokio::time::timeout(PATIENCE, called).await.expect("an agent calls")
    }

    async fn greet(
        &mut self,
        connection: quinn::Connection,
        ours: &impl Fn(Greeting) -> Greeting,
    ) -> Option<RawLink> {
        let (theirs, receive) = hear_greeting(&connection).await?;
        let mut send = connection.open_uni().await.ok()?;
        self.boot += 1;
        let greeting = ours(Greeting { site: RAW.to_owned(), ..theirs });
        send.write_all(&greeting.bytes(self.me.incarnation, self.boot)).await.ok()?;
        let heard = Arc::<Mutex<Vec<Received>>>::default();
        tokio::spawn(hear(receive, heard.clone()));
        Some(RawLink { connection, send, heard })
    }

    /// Signs what it says, whoever it says it is of.
    pub(crate) fn signed(&self, entry: Entry) -> Arc<Entry> {
        use cheops_core::engine::Sealer;
        self.key.seal(&[&entry]);
        Arc::new(entry)
    }
}

impl Greeting {
    fn bytes(&self, incarnation: Incarnation, boot: u64) -> Vec<u8> {
        let mut hello = Vec::new();
        number(self.oldest.into(), &mut hello);
        text(&self.site, &mut hello);
        number(incarnation.0, &mut hello);
        number(boot, &mut hello);
        text("raw bytes", &mut hello);
        hello.extend(&self.more);
        let mut bytes = b"CHEOPS".to_vec();
        bytes.extend(self.newest.to_le_bytes());
        bytes.extend(framed(&hello));
        bytes
    }
}

async fn hear_greeting(connection: &quinn::Connection) -> Option<(Greeting, quinn::RecvStream)> {
    let mut receive = connection.accept_uni().await.ok()?;
    let mut head = [0; 12];
    receive.read_exact(&mut head).await.ok()?;
    assert_eq!(&head[..6], b"CHEOPS");
    let newest = u16::from_le_bytes([head[6], head[7]]);
    let mut hello = vec![0; u32::from_le_bytes(head[8..].try_into().unwrap()) as usize];
    receive.read_exact(&mut hello).await.ok()?;
    // These numbers take one byte each for a long time to come.
    let (oldest, length) = (hello[0].into(), usize::from(hello[1]));
    let site = String::from_utf8(hello[2..2 + length].to_vec()).unwrap();
    Some((Greeting { newest, oldest, site, more: Vec::new() }, receive))
}

async fn hear(mut receive: quinn::RecvStream, heard: Arc<Mutex<Vec<Received>>>) {
    let mut length = [0; 4];
    while receive.read_exact(&mut length).await.is_ok() {
        let mut frame = vec![0; u32::from_le_bytes(length) as usize];
        if receive.read_exact(&mut frame).await.is_err() {
            return;
        }
        heard.lock().unwrap().push(wire::decode(&frame).unwrap());
    }
}

impl RawLink {
    /// Sends bytes as they are; whether the other side still takes any.
    pub(crate) async fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.send.write_all(bytes).await.is_ok()
    }

    /// Sends a frame of these bytes.
    pub(crate) async fn frame(&mut self, bytes: &[u8]) -> bool {
        self.bytes(&framed(bytes)).await
    }

    pub(crate) async fn say(&mut self, message: &Message) -> bool {
        self.frame(&written(message)).await
    }

    /// Why the other side closed it.
    pub(crate) async fn is_closed(&self) -> String {
        closed(&self.connection).await
    }

    /// The entries that the other side sent so far.
    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        let heard = self.heard.lock().unwrap();
        let updates = heard.iter().filter_map(|received| match &received.frame {
            Some(Frame::Message(Message::Update(update))) => Some(update.entries.clone()),
            _ => None,
        });
        updates.flatten().collect()
    }
}

/// Why a connection is closed, by and by.
pub(crate) async fn closed(connection: &quinn::Connection) -> String {
    let why = tokio::time::timeout(PATIENCE, connection.closed()).await;
    why.expect("the connection is closed").to_string()
}

/// A message as it stands on the wire, without its length.
pub(crate) fn written(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::encode_message(message, &mut bytes);
    bytes
}

/// A frame: the length, and so many bytes.
pub(crate) fn framed(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    [&length, bytes].concat()
}

fn number(mut n: u64, into: &mut Vec<u8>) {
    while n >= 0x80 {
        into.push(n.to_le_bytes()[0] | 0x80);
        n >>= 7;
    }
    into.push(n.to_le_bytes()[0]);
}

fn text(text: &str, into: &mut Vec<u8>) {
    number(text.len() as u64, into);
    into.extend(text.as_bytes());
}

fn configs(identity: &Path) -> (quinn::ClientConfig, quinn::ServerConfig) {
    let pem = std::fs::read(identity).unwrap();
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().unwrap();
    let [own, authority] = <[_; 2]>::try_from(certificates).unwrap();
    let key = || PrivateKeyDer::from_pem_slice(&pem).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority).unwrap();
    let (roots, provider) = (Arc::new(roots), Arc::new(rustls::crypto::ring::default_provider()));

    let mut client = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyAgent(provider.clone())))
        .with_client_auth_cert(vec![own.clone()], key())
        .unwrap();
    client.alpn_protocols = vec![b"cheops".to_vec()];
    let client = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(client).unwrap()));

    let verifier =
        rustls::server::WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
    let mut server = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![own], key())
        .unwrap();
    server.alpn_protocols = vec![b"cheops".to_vec()];
    let server = QuicServerConfig::try_from(server).unwrap();
    (client, quinn::ServerConfig::with_crypto(Arc::new(server)))
}

/// Whoever is called may be any of the agents: it is they who have to know whom they talk to.
#[derive(Debug)]
struct AnyAgent(Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for AnyAgent {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.3 only".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
