//! Reverse proxies in front of the application's services: each request runs where its scope says.
//!
//! | module | what it does |
//! | --- | --- |
//! | `requests` | requests of clients and of other sites: under which scope, where, at how many sites |
//! | `id_directory` | which resources of services are kept at several sites, and what they are called |
//! | [`config`] | what proxies are told of the services |
//! | `ports` | what they ask of the rest of an agent: they know neither mesh, engine nor store |

pub mod config;
mod id_directory;
mod ports;
mod requests;

pub use self::id_directory::{IdDirectory, Naming, Towards, is_json};
pub use self::ports::{
    AskedService, BodyPin, BodyStore, BodyWriter, NoReply, NotPassedOn, NotPassedOnReason,
    Operations, OtherSites, SignatureCheck, Signatures, StoredBody,
};
pub use self::requests::{
    Listening, Means, NoRoom, PartRead, Promise, Proxies, Remembered, Reserve, SeenWhole, Threads,
    WholePlace, WholeRead, WholeUnread, parts_of,
};
