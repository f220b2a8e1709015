//! Which sites exist, and which of them are alive.
//!
//! Nobody keeps a list for all. Each site says what it is in a signed [`SiteRecord`], and whom it hears in
//! a signed [`LinkState`]; the mesh's authority says who is out, in a [`Removal`] or a [`Revocation`].
//! These go from link to link until everybody has them, and everybody merges them alike: so who exists
//! is the same at all sites ([`SiteDirectory`]), and who is alive is what can be reached from here over pairs
//! of sites that hear each other. A site that is silent costs nothing, wherever it is, but for
//! the few that have a link to it.
//!
//! [`Member`] is one site's part in this: `event → effects`, with no clock, disk, network or task inside,
//! so that a thousand of them run in one thread under a simulator.
//!
//! | module | what it does |
//! | --- | --- |
//! | `statement` | what is said, its bytes, and its limits |
//! | `directory` | what all that was said comes to |
//! | `ring` | which few sites have a link to each other |
//! | `reach` | who is alive |
//! | `talk` | what goes over a link |
//! | `member` | one site's part |
//! | `wishes` | to whom it wants a link |

mod directory;
mod member;
mod reach;
mod ring;
mod statement;
mod talk;
mod wishes;

pub use directory::{Applied, Existence, SiteDirectory};
pub use member::{GossipEffect, GossipEvent, Member, MemberStart, Moment, OwnSite};
pub use reach::{Way, reachable};
pub use ring::Ring;
pub use statement::{
    Hears, LinkState, MOST_SITES, Membership, NotTakenIn, Notary, Removal, Revocation,
    SignedStatement, SiteRecord, Statement, said_for_tests,
};
pub use talk::{GossipMessage, Held};
