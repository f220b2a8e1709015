//! What the proxies of a site are told of its services. It is read elsewhere, from the agent's config
//! file.

mod host_rule;
mod path_pattern;
mod pointer;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use cheops_core::model::SiteId;
use cheops_scope::ServiceName;
use http::{HeaderName, Uri};

pub use self::host_rule::HostRule;
pub use self::path_pattern::PathPattern;
pub use self::pointer::Pointer;

/// One of `[[services]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceConfig {
    /// Its name in scopes.
    pub name: ServiceName,
    /// Where the proxy for it listens.
    pub listen: Option<SocketAddr>,
    /// Where it listens itself.
    pub upstream: Uri,
    /// Whether other sites may use it: if nothing is said, if there is a proxy for it.
    pub offer: bool,
    /// By which hosts clients may ask for it; empty for any.
    pub hosts: Vec<HostRule>,
    /// Pages of which origins may ask for it; empty for any.
    pub origins: Vec<String>,
    /// Whether ids that clients choose for their requests count whoever brings them.
    pub trust_correlation: bool,
    /// Where the id of a new resource is in the answer; empty for where it usually is.
    pub id: Vec<Pointer>,
    /// How its resources are kept at several sites.
    pub replication: ReplicationConfig,
    /// How its resources span sites.
    pub cross: CrossConfig,
}

/// What replication (`&`) has to know of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicationConfig {
    /// Where the service takes an id in a request that makes something, if it does.
    pub client_chosen_id: Option<Pointer>,
    /// Paths below a resource under which there are resources of their own, with `*` for any id.
    pub collections: Vec<PathPattern>,
    /// Answers to a request that is made again, which say that it was carried out before.
    pub already_done: Vec<u16>,
    /// Answers to a deletion which say that there is nothing to delete.
    pub already_gone: Vec<u16>,
}

impl Default for ReplicationConfig {
    fn default() -> Self {
        Self {
            client_chosen_id: None,
            collections: Vec::new(),
            already_done: vec![409],
            already_gone: vec![404, 410],
        }
    }
}

/// `[services.cross]`: resources that span sites (`%`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CrossConfig {
    /// Numbers that are divided over the sites, and summed again.
    pub divide: Vec<Pointer>,
    /// Numbers that are only summed.
    pub sum: Vec<Pointer>,
    /// Who gets how much; a site that is not listed counts as 1.
    pub weights: BTreeMap<SiteId, u64>,
}

/// `[proxy]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyConfig {
    /// How long a service may take to begin its answer.
    pub answer_limit: Duration,
    /// How long the calls that a service makes for a request are known again, after it was last
    /// spoken of.
    pub remember: Duration,
    /// Headers in which this application's services name the request they work on, beside those that
    /// are usual.
    pub correlation_headers: Vec<HeaderName>,
    /// Whether ids of resources over several sites are taken that nobody signed, as earlier versions
    /// made them.
    pub unsigned_cross_ids: bool,
}
