//! The other sites: who may speak for one, where it is, and one link to each, over which messages of
//! the engine, files and requests travel.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`identity`] | the authority of a mesh, and the identities of its sites |
//! | [`owner`] | whose a file with a secret is |
//! | `seals` | what a site signs apart from entries |
//! | `peers` | the links |
//! | `ports` | what the mesh asks of the rest of an agent: it knows neither the engine nor the store |

pub mod identity;
pub mod owner;
mod peers;
mod ports;
mod seals;

pub use self::peers::{
    Border, FetchError, IncomingFiles, PassedOn, PeerRouter, PeerStatus, Peers, PeersError,
    SiteServices, ToService, TunnelError,
};
pub use self::ports::{
    Brought, CertificateStore, FileError, FilePin, FileStore, Inbox, InboxClosed, PartialFile,
    WholeFile,
};
pub use self::seals::{Checked, Seals};
