//! How a site becomes one of the mesh: somebody at a site with the authority invites it, and it joins
//! with the token that the invitation came with.
//!
//! It calls the mesh port like any site, under a protocol name of its own (ALPN), without a certificate:
//! it has none yet. It checks that who answers is of the mesh whose authority the token names before it
//! says anything; then it says the token's secret and its public key, signed for this very connection,
//! and gets its certificate. Such a connection can do nothing else: see [`EnrolHost`].
//!
//! | file | what it does |
//! | --- | --- |
//! | `token` | what is carried to the new site |
//! | `invitations` | which are open, and what became of the others |
//! | `talk` | what the two say to each other, byte by byte |
//! | `host` | the side that has the authority |
//! | `joiner` | the side that has the token |

mod host;
mod invitations;
mod joiner;
mod talk;
mod token;

pub use self::host::{EnrolHost, Newcomer, NewcomerRegistry};
pub use self::invitations::{
    Invitation, InvitationError, InvitationOutcome, Invitations, RedeemRefusal,
};
pub use self::joiner::{JoinError, Joined, JoinerKey, join};
pub use self::talk::{KnownSite, MeshAtHand};
pub use self::token::{BadJoinToken, InvitationId, JoinSecret, JoinToken};

/// How this protocol is called in the handshake.
pub(crate) const ALPN: &[u8] = b"cheops-enrol";

/// What the hash of an authority's certificate is taken by: whoever wants to compare it by hand has
/// `openssl x509 -fingerprint -sha256`.
pub fn fingerprint(certificate: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, certificate).as_ref());
    hash
}
