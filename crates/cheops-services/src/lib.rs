//! The services of this site, and the one way to them: for requests that pass through a proxy and
//! for those that are operations alike.
//!
//! This crate knows nothing of who asks, and uses no other of ours.
//!
//! | file | what it does |
//! | --- | --- |
//! | `endpoint` | one service: where it is, paths at it, requests made ready for it |
//! | `pool`, `connector` | kept connections, and how new ones are made |
//! | `body` | what is sent, and what comes back |
//! | `headers` | what belongs to one connection, and `Via` |
//! | `fate` | what came of sending something, and whether it may be sent again |
//! | `timer_pool`, `coalesce` | limits of time and small writes, made cheap |
//! | `under_way` | what is under way on a client's connection |

pub mod body;
pub mod coalesce;
pub mod connector;
mod endpoint;
mod fate;
pub mod headers;
mod pool;
pub mod timer_pool;
pub mod under_way;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::Uri;

pub use self::connector::ConnectorError;
pub use self::endpoint::Endpoint;
pub use self::fate::{Fate, Repeating};
pub use self::pool::{AnswerBody, HeldConnection, Returned, Unanswered};

use self::connector::Roots;

/// Where the services of this site are. Clones are the same, and share their connections.
#[derive(Clone, Default)]
pub struct Services(Arc<BTreeMap<String, Endpoint>>);

impl Services {
    /// Those of that site, by name, with the addresses at which they listen. Nobody is asked yet.
    ///
    /// # Errors
    ///
    /// When one is to be reached by TLS, and the system has not what that takes.
    pub fn new(
        site: &str,
        upstreams: impl IntoIterator<Item = (String, Uri)>,
    ) -> Result<Self, ConnectorError> {
        let upstreams: BTreeMap<String, Uri> = upstreams.into_iter().collect();
        let secure = upstreams.values().any(|uri| uri.scheme_str() == Some("https"));
        let roots = if secure { Roots::Native } else { Roots::None };
        let connector = connector::connector(roots)?;
        let endpoint = |(name, upstream): (String, Uri)| {
            let endpoint = Endpoint::new(site, &name, upstream, connector.clone());
            (name, endpoint)
        };
        Ok(Self(Arc::new(upstreams.into_iter().map(endpoint).collect())))
    }

    /// The service of that name.
    pub fn find(&self, name: &str) -> Option<&Endpoint> {
        self.0.get(name)
    }

    /// What they are called.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let upstreams = self.0.iter().map(|(name, endpoint)| (name, endpoint.upstream()));
        f.debug_map().entries(upstreams).finish()
    }
}
