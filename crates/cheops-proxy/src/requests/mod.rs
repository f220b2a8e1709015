//! Requests on their way: each runs where its scope says.
//!
//! A request without a scope goes to the service of this site, as if nothing were there. One with
//! a scope goes to the site that the scope names for the service, over the mesh if that is another
//! one, and carries marks by which the calls that the service makes for it are known again: they
//! run under the same scope.
//!
//! | file | what it does |
//! | --- | --- |
//! | `listen`, `threads` | connections of clients, and where they are served |
//! | `framing` | where their messages begin and end |
//! | `admission` | whom a service's proxy serves, and what nobody but agents may say |
//! | `route`, `scope`, `correlation`, `ids`, `key` | under which scope a request runs |
//! | `scope_cache`, `distances`, `attempts`, `run` | where that is, and trying elsewhere |
//! | `local_service` | the service of this site, by way of `cheops-services` |
//! | `cross` | requests that run at several sites, and come to one answer |
//! | `headers`, `upgrade` | what passes through, and how |
//! | `replicate`, `reserve` | requests for several sites, what they changed there, and room for them |
//! | `refusal` | answers of this proxy itself |
//! | `request_metrics` | how many requests there are, and how long they take |

mod admission;
mod attempts;
mod correlation;
mod cross;
mod distances;
mod framing;
mod headers;
mod ids;
mod key;
mod listen;
mod local_service;
mod refusal;
mod replicate;
mod request_metrics;
mod reserve;
mod route;
mod run;
mod scope;
mod scope_cache;
mod threads;
mod upgrade;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use cheops_core::model::SiteId;
use cheops_scope::MAX_SCOPE_BYTES;
use cheops_services::{Fate, Services};
use http::request::Parts;
use http::{HeaderValue, Response};
use hyper::upgrade::OnUpgrade;

use self::correlation::{Correlation, Holder};
use self::cross::WholeIds;
use self::headers::SITE;
use self::key::KeyFile;
use self::local_service::LocalService;
use self::refusal::ProxyRefusal;
use self::replicate::Strangers;
use self::scope::{Marks, Others, Replaced};
use self::scope_cache::ScopeCache;
use crate::config::{ProxyConfig, ServiceConfig};
use crate::id_directory::IdDirectory;
use crate::ports::{BodyStore, Operations, OtherSites, Signatures};

pub use self::cross::{PartRead, SeenWhole, WholePlace, WholeRead, WholeUnread, parts_of};
pub use self::listen::Listening;
pub use self::reserve::{NoRoom, Promise, Reserve};
pub use self::threads::Threads;

/// The proxies of a site.
#[derive(Clone)]
pub struct Proxies(Arc<ProxyState>);

struct ProxyState {
    me: SiteId,
    services: BTreeMap<String, Arc<LocalService>>,
    peers: Arc<dyn OtherSites>,
    operations: Arc<dyn Operations>,
    bodies: Arc<dyn BodyStore>,
    replicas: IdDirectory,
    scope_cache: ScopeCache,
    memory: Remembered,
    whole_ids: WholeIds,
    strangers: Strangers,
    reserve: Reserve,
    answer_limit: Duration,
}

/// What proxies are made of, beside their config.
pub struct Means {
    /// The other sites.
    pub peers: Arc<dyn OtherSites>,
    /// The engine.
    pub operations: Arc<dyn Operations>,
    /// Where bodies go that are too long for their operation.
    pub bodies: Arc<dyn BodyStore>,
    /// What is kept at several sites.
    pub replicas: IdDirectory,
    /// The scopes of requests that were seen.
    pub memory: Remembered,
    /// What ids over several sites are signed with.
    pub signatures: Arc<dyn Signatures>,
    /// Where the services are.
    pub services: Services,
    /// What bodies that are kept leave free.
    pub reserve: Reserve,
}

/// The scopes of requests that were seen at this site, for the calls that are made for them.
#[derive(Clone)]
pub struct Remembered {
    scopes: Arc<Correlation>,
    marks: Arc<Marks>,
}

impl Remembered {
    /// None yet.
    pub fn new(config: &ProxyConfig, data_dir: &Path) -> Self {
        let marks = Marks::new(&config.correlation_headers);
        let scopes = Correlation::new(config.remember, KeyFile::below(data_dir));
        Self { scopes: Arc::new(scopes), marks: Arc::new(marks) }
    }

    /// Gives a request that the agent itself sends to a service the marks by which calls that are
    /// made for it are known again.
    pub fn mark(&self, headers: &mut http::HeaderMap, trusts: bool) {
        self.mark_for(&Holder::Agent, headers, Others::of(trusts));
    }

    /// The same for a request that somebody else brought, whose scope was decided on already. What
    /// was replaced by it.
    fn mark_for(
        &self,
        by: &Holder,
        headers: &mut http::HeaderMap,
        others: Others,
    ) -> Vec<Replaced> {
        let now = Instant::now();
        let known = {
            let carried = scope::carried(headers).ok().flatten();
            let Some(scope) = carried.filter(|scope| scope.len() <= MAX_SCOPE_BYTES) else {
                return Vec::new();
            };
            let scope = scope.trim();
            // Mostly it is what another agent wrote.
            match self.scopes.known(scope, by, now) {
                Some(known) => known,
                None => match cheops_scope::parse(scope) {
                    Ok(parsed) => self.scopes.scope(&parsed.canonical(), by, now),
                    Err(_) => return Vec::new(),
                },
            }
        };
        let (name, chosen) = self.scopes.name(&self.marks.names(headers), &known, now);
        if others == Others::Stay && !chosen.is_empty() {
            self.scopes.keep(&chosen, &known, None, by, now);
        }
        self.marks.set(headers, None, name, others)
    }
}

/// A request on its way, without its body.
struct ProxiedRequest {
    head: Parts,
    /// What the client wants to go over to, and its end of that.
    upgrade: Option<(HeaderValue, OnUpgrade)>,
    /// The sites that are to keep what it makes, if another one than this is asked to see to it.
    among: Option<BTreeSet<SiteId>>,
}

/// Why an attempt came to nothing.
struct Failed {
    fate: Fate,
    refused: ProxyRefusal,
}

impl Proxies {
    /// For these services. Nobody is listened to yet.
    pub fn new(
        me: &SiteId,
        services: &[ServiceConfig],
        config: &ProxyConfig,
        means: Means,
    ) -> Self {
        let Means { peers, operations, bodies, replicas, .. } = means;
        let Means { memory, signatures, services: endpoints, reserve, .. } = means;
        let names = services.iter().map(|service| service.name.clone()).collect();
        let scope_cache = ScopeCache::new(me, names, peers.clone());
        // Both are made of the same config: one without the other is not.
        let service = |service: &ServiceConfig| {
            let name = service.name.to_string();
            let endpoint = endpoints.find(&name)?.clone();
            Some((name, Arc::new(LocalService::new(me, service, endpoint))))
        };
        Self(Arc::new(ProxyState {
            me: me.clone(),
            services: services.iter().filter_map(service).collect(),
            peers,
            operations,
            bodies,
            replicas,
            scope_cache,
            memory,
            whole_ids: WholeIds::new(signatures, config.unsigned_cross_ids),
            strangers: Strangers::default(),
            reserve,
            answer_limit: config.answer_limit,
        }))
    }

    fn refuse(&self, refused: ProxyRefusal) -> Response<Body> {
        let mut response = refused.into_response();
        if let Ok(site) = HeaderValue::try_from(self.0.me.as_str()) {
            response.headers_mut().insert(SITE, site);
        }
        response
    }
}
