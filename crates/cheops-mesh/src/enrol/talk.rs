//! What the two sides say, byte by byte: one question, one answer, each with its length first. Later
//! versions may add to the end of either, and to the end of what can be refused.

use cheops_core::model::SiteId;
use quinn::{RecvStream, SendStream};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::invitations::RedeemRefusal;
use super::token::SECRET_BYTES;

const MAGIC: &[u8; 8] = b"CHEOPSJN";
/// The version spoken here; the first there is.
pub(super) const VERSION: u16 = 1;
/// A question is far shorter.
pub(super) const LONGEST_QUESTION: usize = 4 * 1024;
/// An answer brings all that is known of thousands of sites.
pub(super) const LONGEST_ANSWER: usize = 16 * 1024 * 1024;
/// What is signed to prove that the key is at hand begins so, like nothing else it signs.
const PROVES: &[u8] = b"cheops enrolment 1\0";
const EXPORTED_AS: &[u8] = b"EXPORTER-cheops-enrolment";

/// Why what arrives is of no use.
#[derive(Debug, thiserror::Error)]
pub(super) enum TalkError {
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error("it does not speak this protocol")]
    Stranger,
    #[error("it speaks version {0} of this protocol, and this agent version {VERSION}")]
    Version(u16),
    #[error("{0} bytes are more than it may say")]
    TooLong(usize),
    #[error("what it says cannot be read")]
    Unreadable,
}

/// What the new site says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EnrolQuestion {
    pub(super) id: [u8; 8],
    pub(super) secret: [u8; SECRET_BYTES],
    pub(super) key: [u8; 32],
    /// Of what only the two sides of this connection know, by that key.
    pub(super) signature: Vec<u8>,
    /// Where the others will find it, if it knows.
    pub(super) advertise: Option<String>,
    /// The port that it will listen at.
    pub(super) port: u16,
    /// For people: which release it is.
    pub(super) software: String,
}

/// What it is told. The order is that of the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EnrolAnswer {
    Welcome(Welcome),
    Refused(RedeemRefusal),
    /// Others join right now.
    Busy,
    /// For a reason that is none of the token's.
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Welcome {
    pub(super) site: SiteId,
    pub(super) certificate: Vec<u8>,
    /// Where the others will look for it.
    pub(super) address: String,
    pub(super) mesh: MeshAtHand,
}

/// What a site that joins is told of the mesh.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshAtHand {
    /// Sites to begin with; the one that has the authority is the first.
    pub sites: Vec<KnownSite>,
    /// All that is known of sites, as signed records.
    pub directory: Vec<u8>,
}

/// A site, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownSite {
    /// Its name.
    pub site: SiteId,
    /// Where its mesh port is.
    pub address: String,
}

/// What a key signs to prove that it is at hand on this very connection.
pub(super) fn to_prove(connection: &quinn::Connection) -> Option<Vec<u8>> {
    let mut exported = [0; 32];
    connection.export_keying_material(&mut exported, EXPORTED_AS, b"").ok()?;
    Some([PROVES, &exported].concat())
}

/// Says one thing, which is all that is said.
pub(super) async fn say(
    to: &mut SendStream,
    what: &impl Serialize,
    longest: usize,
) -> Result<(), TalkError> {
    let bytes = bytes_of(what, longest)?;
    let broken = |error: String| TalkError::Broken(error);
    to.write_all(&bytes).await.map_err(|error| broken(error.to_string()))?;
    to.finish().map_err(|error| broken(error.to_string()))
}

fn bytes_of(what: &impl Serialize, longest: usize) -> Result<Vec<u8>, TalkError> {
    let said = postcard::to_stdvec(what).map_err(|_| TalkError::Unreadable)?;
    let too_long = || TalkError::TooLong(said.len());
    let length = u32::try_from(said.len()).map_err(|_| too_long())?;
    if said.len() > longest {
        return Err(too_long());
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(said);
    Ok(bytes)
}

/// Hears one thing.
pub(super) async fn hear<T: DeserializeOwned>(
    from: &mut RecvStream,
    longest: usize,
) -> Result<T, TalkError> {
    let broken = |error: quinn::ReadExactError| TalkError::Broken(error.to_string());
    let mut head = [0; 14];
    from.read_exact(&mut head).await.map_err(broken)?;
    let length = length_of(head, longest)?;
    let mut said = vec![0; length];
    from.read_exact(&mut said).await.map_err(broken)?;
    postcard::from_bytes(&said).map_err(|_| TalkError::Unreadable)
}

fn length_of(head: [u8; 14], longest: usize) -> Result<usize, TalkError> {
    let [magic @ .., v0, v1, l0, l1, l2, l3] = head;
    if magic != *MAGIC {
        return Err(TalkError::Stranger);
    }
    match u16::from_le_bytes([v0, v1]) {
        0 => return Err(TalkError::Stranger),
        VERSION => {}
        other => return Err(TalkError::Version(other)),
    }
    match u32::from_le_bytes([l0, l1, l2, l3]) as usize {
        length if length > longest => Err(TalkError::TooLong(length)),
        length => Ok(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_written_as<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
        what: &T,
        bytes: &[u8],
    ) {
        assert_eq!(postcard::to_stdvec(what).unwrap(), bytes, "{what:?}");
        let later = [bytes, b"\x05later"].concat();
        assert_eq!(&postcard::from_bytes::<T>(&later).unwrap(), what);
    }

    #[test]
    fn what_is_said_is_these_bytes() {
        let question = EnrolQuestion {
            id: [1; 8],
            secret: [2; SECRET_BYTES],
            key: [3; 32],
            signature: vec![4; 3],
            advertise: Some("a:1".to_owned()),
            port: 8078,
            software: "0.1.0".to_owned(),
        };
        let said =
            [&[1; 8][..], &[2; 20], &[3; 32], b"\x03\x04\x04\x04\x01\x03a:1\x8e\x3f\x050.1.0"];
        is_written_as(&question, &said.concat());
        let site = |name| SiteId::new(name).unwrap();
        let welcome = Welcome {
            site: site("lyon"),
            certificate: vec![5; 2],
            address: "b:2".to_owned(),
            mesh: MeshAtHand {
                sites: vec![KnownSite { site: site("paris"), address: "c:3".to_owned() }],
                directory: vec![6],
            },
        };
        is_written_as(
            &EnrolAnswer::Welcome(welcome),
            b"\x00\x04lyon\x02\x05\x05\x03b:2\x01\x05paris\x03c:3\x01\x06",
        );
        is_written_as(&EnrolAnswer::Refused(RedeemRefusal::Unknown), b"\x01\x00");
        is_written_as(&EnrolAnswer::Refused(RedeemRefusal::Used(300)), b"\x01\x01\xac\x02");
        is_written_as(&EnrolAnswer::Refused(RedeemRefusal::Expired(1)), b"\x01\x02\x01");
        is_written_as(&EnrolAnswer::Refused(RedeemRefusal::Revoked(1)), b"\x01\x03\x01");
        is_written_as(&EnrolAnswer::Refused(RedeemRefusal::Guessed(1)), b"\x01\x04\x01");
        is_written_as(&EnrolAnswer::Busy, b"\x02");
        is_written_as(&EnrolAnswer::Failed("no".to_owned()), b"\x03\x02no");
        assert_eq!(
            bytes_of(&EnrolAnswer::Busy, 1).unwrap(),
            b"CHEOPSJN\x01\x00\x01\x00\x00\x00\x02"
        );
        assert!(matches!(bytes_of(&[0_u8; 2], 1), Err(TalkError::TooLong(2))));
    }

    #[test]
    fn what_is_not_of_this_protocol_is_refused_before_it_is_read() {
        let head = |text: &[u8]| *text.first_chunk::<14>().unwrap();
        assert_eq!(length_of(head(b"CHEOPSJN\x01\x00\x10\x00\x00\x00"), 16).unwrap(), 16);
        for (said, longest) in [
            (&b"GET / HTTP/1.1\r\n"[..], 16),
            (b"CHEOPSJN\x00\x00\x10\x00\x00\x00", 16),
            (b"CHEOPSJN\x02\x00\x10\x00\x00\x00", 16),
            (b"CHEOPSJN\x01\x00\x11\x00\x00\x00", 16),
            (b"CHEOPSJN\x01\x00\xff\xff\xff\xff", LONGEST_ANSWER),
        ] {
            assert!(length_of(head(said), longest).is_err(), "{said:?}");
        }
    }
}
