//! What goes over a link, byte by byte: the greeting, messages, and requests.
//!
//! Everything begins with its length. Lengths are bounded before anything is read into memory,
//! and nothing that arrives can make this panic.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use cheops_core::engine::Message;
use cheops_core::model::{BlobId, Incarnation, SiteId};
use cheops_record::{FormError, wire};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::link::{CLOSED_AS_SHARED, CLOSED_AS_SPARE};

/// The protocol spoken here, with those who speak it too.
const NEWEST: u16 = 3;
/// The oldest one understood.
pub(super) const OLDEST: u16 = 3;
const MAGIC: [u8; 6] = *b"CHEOPS";
/// The longest frame taken in. Messages are kept far below it by the engine's byte budget.
pub(super) const LONGEST: usize = 16 * 1024 * 1024;
/// The longest question on a stream of its own, and head of an answer: they hold headers, never a
/// body.
pub(super) const LONGEST_HEAD: usize = 256 * 1024;
/// Room for the beginning of a frame, whatever length it says.
const LEAST_ROOM: usize = 512;
const LONGEST_GREETING: usize = 4 * 1024;

/// Why a link is of no use.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the link broke")]
    Broken,
    #[error("{0}")]
    Quic(quinn::ConnectionError),
    #[error("its certificate is of another mesh; issue it anew with this mesh's authority")]
    OfAnotherMesh,
    #[error("to it, this site's certificate is of another mesh; issue it anew with its authority")]
    WeOfAnotherMesh,
    #[error("the other side did not greet in time")]
    NoGreeting,
    #[error("the other side does not speak Cheops' protocol")]
    Stranger,
    #[error(
        "`{site}` speaks version {theirs} of the protocol, and this agent no older one than {}: \
         upgrade the agent at `{site}`",
        OLDEST
    )]
    TooOld { site: SiteId, theirs: u16 },
    #[error(
        "`{site}` speaks no older version of the protocol than {theirs}, and this agent {}: \
         upgrade this agent, not the one at `{site}`",
        NEWEST
    )]
    TooNew { site: SiteId, theirs: u16 },
    #[error("something arrived that cannot be read: {0}")]
    Form(#[from] FormError),
    #[error("a frame of {0} bytes is longer than the limit")]
    TooLong(usize),
    #[error("something arrived that cannot be read: {0}")]
    Unreadable(#[from] postcard::Error),
    #[error("the certificate is `{certificate}`'s, yet it says it is `{says}`")]
    Impostor { certificate: SiteId, says: SiteId },
    #[error("`{0}` is not among the peers of this site")]
    NotAPeer(SiteId),
    #[error(
        "`{0}` is set apart: it signed two entries that cannot both be its word; find out who has \
         its identity, then issue it a new one"
    )]
    SetApart(SiteId),
    #[error("another agent shows the identity of this site, `{0}`: stop one of the two")]
    Ourselves(SiteId),
    #[error("its certificate cannot be used: {0}")]
    Certificate(String),
    #[error("the certificate names no site")]
    Nameless,
    #[error("no answer")]
    NoAnswer,
    #[error("too much is under way on the link")]
    NoRoom,
    #[error("`{0}` cannot be found: {1}")]
    NoAddress(String, String),
    #[error(
        "`{there}` cannot be called from `{from}`: `listen = \"[::]:{port}\"` in `[mesh]` is for IPv4 \
         and IPv6",
        port = from.port()
    )]
    OtherFamily { there: SocketAddr, from: SocketAddr },
    #[error("it cannot be called: {0}")]
    Call(#[from] quinn::ConnectError),
}

impl LinkError {
    /// Whether the other side went before the link was made, for a reason of its own.
    pub(super) fn is_hang_up(&self) -> bool {
        let Self::Quic(quinn::ConnectionError::ConnectionClosed(closed)) = self else {
            return false;
        };
        closed.error_code == quinn::TransportErrorCode::APPLICATION_ERROR
    }
}

impl LinkError {
    /// Whether the other side speaks another language, of which nobody can say more than this.
    pub(super) fn is_of_versions(&self) -> bool {
        matches!(self, Self::TooOld { .. } | Self::TooNew { .. })
    }

    /// Whether the other side had no need for the connection, which is no error to speak of.
    pub(super) fn is_spare(&self) -> bool {
        self.is_closed_as(CLOSED_AS_SPARE)
    }

    /// Whether the other side hears another agent with the identity of this site.
    pub(super) fn is_shared(&self) -> bool {
        self.is_closed_as(CLOSED_AS_SHARED)
    }

    fn is_closed_as(&self, code: u32) -> bool {
        let code = quinn::VarInt::from_u32(code);
        matches!(self, Self::Quic(quinn::ConnectionError::ApplicationClosed(closed))
            if closed.error_code == code)
    }
}

impl From<quinn::ConnectionError> for LinkError {
    fn from(error: quinn::ConnectionError) -> Self {
        // How TLS says that it does not know who issued a certificate (RFC 8446, 6.2).
        let unknown_ca = quinn::TransportErrorCode::crypto(48);
        match error {
            quinn::ConnectionError::TransportError(found) if found.code == unknown_ca => {
                Self::OfAnotherMesh
            }
            quinn::ConnectionError::ConnectionClosed(told) if told.error_code == unknown_ca => {
                Self::WeOfAnotherMesh
            }
            error => Self::Quic(error),
        }
    }
}

impl From<quinn::ReadExactError> for LinkError {
    fn from(_: quinn::ReadExactError) -> Self {
        Self::Broken
    }
}

impl From<quinn::WriteError> for LinkError {
    fn from(_: quinn::WriteError) -> Self {
        Self::Broken
    }
}

/// The first thing each side says, after the newest version that it speaks. Later versions may add
/// to the end of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The oldest version that it speaks.
    pub(super) oldest: u16,
    pub(super) site: SiteId,
    pub(super) incarnation: Incarnation,
    /// New with every start of the agent.
    pub(super) boot: u64,
    /// For people: which release it is.
    pub(super) software: String,
}

/// What a stream of its own is opened for. Its fields are in this order on the wire: later versions may
/// add to the end, and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StreamRequest {
    /// The content of a blob, from there on.
    Blob { blob: BlobId, offset: u64 },
    /// A request to the other agent's API, passed on by this one. The body follows.
    Http { method: String, path: String, headers: Vec<(String, Vec<u8>)> },
    /// A request to a service of the other site. The body follows.
    Service {
        service: String,
        /// Whether no body follows.
        is_empty: bool,
        /// What to go over to; then what follows is spoken after that.
        upgrade: Option<Vec<u8>>,
        /// The sites that are to keep what it makes, if that was decided.
        among: Option<BTreeSet<SiteId>>,
        method: String,
        path: String,
        headers: Vec<(String, Vec<u8>)>,
    },
}

/// What the answer to it begins with, in this order too. The content follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StreamReply {
    Blob { size: u64 },
    NoSuchBlob,
    Http { status: u16, headers: Vec<(String, Vec<u8>)> },
}

/// Appends a frame to a buffer.
pub(super) fn encode(value: &impl Serialize, into: &mut Vec<u8>) -> Result<(), LinkError> {
    encode_within(LONGEST, value, into)
}

/// The same, for a question on a stream of its own or the head of its answer.
pub(super) fn encode_head(value: &impl Serialize, into: &mut Vec<u8>) -> Result<(), LinkError> {
    encode_within(LONGEST_HEAD, value, into)
}

/// Appends a message, in the form that it has on a link.
pub(super) fn encode_message(message: &Message, into: &mut Vec<u8>) -> Result<(), LinkError> {
    framed(LONGEST, into, |into| {
        wire::encode_message(message, into);
        Ok(())
    })
}

/// Appends a certificate.
pub(super) fn encode_certificate(certificate: &[u8], into: &mut Vec<u8>) -> Result<(), LinkError> {
    framed(LONGEST, into, |into| {
        wire::encode_certificate(certificate, into);
        Ok(())
    })
}

fn encode_within(
    longest: usize,
    value: &impl Serialize,
    into: &mut Vec<u8>,
) -> Result<(), LinkError> {
    framed(longest, into, |into| {
        // Postcard writes to the end of what it is given.
        *into = postcard::to_extend(value, std::mem::take(into))?;
        Ok(())
    })
}

fn framed(
    longest: usize,
    into: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), LinkError>,
) -> Result<(), LinkError> {
    let start = into.len();
    into.extend_from_slice(&[0; 4]);
    write(into)?;
    let length = into.len() - start - 4;
    if length > longest {
        // The other side would have to close the link, or the stream, over it.
        into.truncate(start);
        return Err(LinkError::TooLong(length));
    }
    let length = u32::try_from(length).map_err(|_long| LinkError::TooLong(length))?;
    into[start..start + 4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Reads a frame.
pub(super) async fn read<T: DeserializeOwned>(
    from: &mut quinn::RecvStream,
    buffer: &mut Vec<u8>,
    longest: usize,
) -> Result<T, LinkError> {
    read_bytes(from, buffer, longest).await?;
    Ok(postcard::from_bytes(buffer)?)
}

/// Reads what the other side says on the link itself.
pub(super) async fn read_message(
    from: &mut quinn::RecvStream,
    buffer: &mut Vec<u8>,
) -> Result<wire::Received, LinkError> {
    read_bytes(from, buffer, LONGEST).await?;
    Ok(wire::decode(buffer)?)
}

async fn read_bytes(
    from: &mut quinn::RecvStream,
    buffer: &mut Vec<u8>,
    longest: usize,
) -> Result<(), LinkError> {
    let mut length = [0; 4];
    from.read_exact(&mut length).await?;
    let length = u32::from_le_bytes(length) as usize;
    if length > longest {
        return Err(LinkError::TooLong(length));
    }
    // Four bytes can say that much will follow: it takes memory as it comes, and not before.
    buffer.clear();
    while buffer.len() < length {
        let begun = buffer.len();
        buffer.resize(length.min(2 * begun.max(LEAST_ROOM)), 0);
        from.read_exact(&mut buffer[begun..]).await?;
    }
    Ok(())
}

/// The greeting: magic and newest version, then a frame that later versions may add to. The first
/// eight bytes are as they were in version 2, so that whoever speaks that can say what is wrong.
pub(super) fn greeting(hello: &Hello) -> Result<Vec<u8>, LinkError> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&NEWEST.to_le_bytes());
    encode(hello, &mut bytes)?;
    Ok(bytes)
}

/// Reads the greeting of that site, and says which version to speak with it.
pub(super) async fn read_greeting(
    from: &mut quinn::RecvStream,
    site: &SiteId,
) -> Result<(Hello, u16), LinkError> {
    let mut head = [0; 8];
    from.read_exact(&mut head).await?;
    let newest = newest_of(head, site)?;
    let hello: Hello = read(from, &mut Vec::new(), LONGEST_GREETING).await?;
    let spoken = spoken(hello.oldest, newest, site)?;
    Ok((hello, spoken))
}

/// The newest version that the other side speaks.
fn newest_of(head: [u8; 8], site: &SiteId) -> Result<u16, LinkError> {
    let [magic @ .., low, high] = head;
    if magic != MAGIC {
        return Err(LinkError::Stranger);
    }
    match u16::from_le_bytes([low, high]) {
        theirs if theirs < OLDEST => Err(LinkError::TooOld { site: site.clone(), theirs }),
        theirs => Ok(theirs),
    }
}

/// The highest version that both speak.
fn spoken(oldest: u16, newest: u16, site: &SiteId) -> Result<u16, LinkError> {
    if oldest > NEWEST {
        return Err(LinkError::TooNew { site: site.clone(), theirs: oldest });
    }
    Ok(newest.min(NEWEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            oldest: OLDEST,
            site: SiteId::new("lyon").unwrap(),
            incarnation: Incarnation(5),
            boot: 9,
            software: "0.1.0".into(),
        }
    }

    fn head(bytes: &[u8]) -> [u8; 8] {
        *bytes.first_chunk().unwrap()
    }

    #[test]
    fn a_greeting_is_these_bytes() {
        let bytes = greeting(&hello()).unwrap();
        assert_eq!(head(&bytes), *b"CHEOPS\x03\x00");
        assert_eq!(&bytes[8..], b"\x0e\0\0\0\x03\x04lyon\x05\x09\x050.1.0");
    }

    #[test]
    fn who_speaks_the_version_before_is_told_that_it_is_the_one_to_upgrade() {
        let error = newest_of(*b"CHEOPS\x02\x00", &hello().site).unwrap_err();
        assert!(error.is_of_versions());
        assert_eq!(
            error.to_string(),
            "`lyon` speaks version 2 of the protocol, and this agent no older one than 3: upgrade \
             the agent at `lyon`"
        );
        assert!(matches!(newest_of(*b"GET / HT", &hello().site), Err(LinkError::Stranger)));
    }

    #[test]
    fn a_later_version_that_still_speaks_this_one_is_spoken_with() {
        let site = hello().site;
        // A greeting of a version 4 that added something to its end.
        let mut bytes = b"CHEOPS\x04\x00".to_vec();
        bytes.extend(b"\x14\0\0\0\x03\x04lyon\x05\x09\x051.0.0\x05later");
        let newest = newest_of(head(&bytes), &site).unwrap();
        let hello: Hello = postcard::from_bytes(&bytes[12..]).unwrap();
        assert_eq!((hello.site.as_str(), hello.software.as_str()), ("lyon", "1.0.0"));
        assert_eq!(spoken(hello.oldest, newest, &site).unwrap(), 3);
        let error = spoken(4, 5, &site).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`lyon` speaks no older version of the protocol than 4, and this agent 3: upgrade this \
             agent, not the one at `lyon`"
        );
    }

    /// As written, and read with what a later version may add to the end.
    fn is_written_as<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
        head: &T,
        bytes: &[u8],
    ) {
        let mut written = Vec::new();
        encode_head(head, &mut written).unwrap();
        assert_eq!(&written[4..], bytes, "{head:?}");
        let later = [bytes, b"\x05later"].concat();
        assert_eq!(&postcard::from_bytes::<T>(&later).unwrap(), head);
    }

    #[test]
    fn what_a_stream_is_opened_for_is_these_bytes() {
        let blob = BlobId([7; 32]);
        let bytes = [&[0][..], &[7; 32], &[0xac, 0x02]].concat();
        is_written_as(&StreamRequest::Blob { blob, offset: 300 }, &bytes);
        let (method, path) = ("GET".to_owned(), "/p".to_owned());
        let headers = vec![("h".to_owned(), b"v".to_vec())];
        let http = StreamRequest::Http { method, path, headers };
        is_written_as(&http, b"\x01\x03GET\x02/p\x01\x01h\x01v");
        let service = StreamRequest::Service {
            service: "image".to_owned(),
            is_empty: true,
            upgrade: Some(b"ws".to_vec()),
            among: Some(BTreeSet::from([SiteId::new("lyon").unwrap()])),
            method: "PUT".to_owned(),
            path: "/".to_owned(),
            headers: Vec::new(),
        };
        is_written_as(&service, b"\x02\x05image\x01\x01\x02ws\x01\x01\x04lyon\x03PUT\x01/\x00");
    }

    #[test]
    fn what_an_answer_on_a_stream_begins_with_is_these_bytes() {
        is_written_as(&StreamReply::Blob { size: 300 }, b"\x00\xac\x02");
        is_written_as(&StreamReply::NoSuchBlob, b"\x01");
        let headers = vec![("h".to_owned(), b"v".to_vec())];
        is_written_as(&StreamReply::Http { status: 204, headers }, b"\x02\xcc\x01\x01\x01h\x01v");
    }
}
