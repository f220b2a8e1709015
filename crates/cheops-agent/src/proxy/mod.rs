//! Reverse proxies in front of the application's services: each request runs where its scope says.
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
//! | `route`, `scope`, `memory`, `ids`, `key` | under which scope a request runs |
//! | `atlas`, `distances`, `attempts`, `run` | where that is, and trying elsewhere |
//! | `here` | the service of this site, to which `services` leads |
//! | `cross` | requests that run at several sites, and come to one answer |
//! | `headers`, `upgrade` | what passes through, and how |
//! | `replicate`, `reserve` | requests for several sites, what they changed there, and room for them |
//! | `refusal` | answers of this proxy itself |
//! | `request_metrics` | how many requests there are, and how long they take |

mod admission;
mod atlas;
mod attempts;
mod cross;
mod distances;
mod framing;
mod headers;
mod here;
mod ids;
mod key;
mod listen;
mod memory;
mod refusal;
mod replicate;
mod request_metrics;
mod reserve;
mod route;
mod run;
mod scope;
mod threads;
mod upgrade;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use cheops_core::model::SiteId;
use cheops_scope::MAX_SCOPE_BYTES;
use cheops_store::Blobs;
use http::request::Parts;
use http::{HeaderValue, Response};
use hyper::upgrade::OnUpgrade;

use self::atlas::Atlas;
use self::cross::WholeIds;
use self::headers::SITE;
use self::here::LocalService;
use self::key::KeyFile;
use self::memory::{Holder, Memory};
use self::refusal::ProxyRefusal;
use self::replicate::Strangers;
use self::scope::{Marks, Others, Replaced};
use crate::config::{ProxyConfig, ServiceConfig};
use crate::driver::Driver;
use crate::peers::Peers;
use crate::replicas::Replicas;
use crate::seals::Seals;
use crate::services::Fate;
use crate::services::Services;

pub(crate) use self::cross::parts_of;
pub(crate) use self::listen::Listening;
pub(crate) use self::reserve::Reserve;
pub(crate) use self::threads::Threads;

/// The proxies of a site.
#[derive(Clone)]
pub(crate) struct Proxies(Arc<ProxyState>);

struct ProxyState {
    me: SiteId,
    services: BTreeMap<String, Arc<LocalService>>,
    peers: Peers,
    driver: Driver,
    blobs: Blobs,
    replicas: Replicas,
    atlas: Atlas,
    memory: Remembered,
    whole_ids: WholeIds,
    strangers: Strangers,
    reserve: Reserve,
    answer_limit: Duration,
}

/// What proxies are made of, beside their config.
pub(crate) struct Means {
    pub(crate) peers: Peers,
    pub(crate) driver: Driver,
    pub(crate) blobs: Blobs,
    pub(crate) replicas: Replicas,
    pub(crate) memory: Remembered,
    pub(crate) seals: Seals,
    /// Where the services are.
    pub(crate) services: Services,
    /// What bodies that are kept leave free.
    pub(crate) reserve: Reserve,
}

/// The scopes of requests that were seen at this site, for the calls that are made for them.
#[derive(Clone)]
pub(crate) struct Remembered {
    scopes: Arc<Memory>,
    marks: Arc<Marks>,
}

impl Remembered {
    pub(crate) fn new(config: &ProxyConfig, data_dir: &Path) -> Self {
        let marks = Marks::new(&config.correlation_headers);
        let scopes = Memory::new(config.remember, KeyFile::below(data_dir));
        Self { scopes: Arc::new(scopes), marks: Arc::new(marks) }
    }

    /// Gives a request that the agent itself sends to a service the marks by which calls that are
    /// made for it are known again.
    pub(crate) fn mark(&self, headers: &mut http::HeaderMap, trusts: bool) {
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
    pub(crate) fn new(
        me: &SiteId,
        services: &[ServiceConfig],
        config: &ProxyConfig,
        means: Means,
    ) -> Self {
        let Means { peers, driver, blobs, replicas, memory, seals, services: endpoints, reserve } =
            means;
        let names = services.iter().map(|service| service.name.clone()).collect();
        let atlas = Atlas::new(me, names, peers.clone());
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
            driver,
            blobs,
            replicas,
            atlas,
            memory,
            whole_ids: WholeIds::new(seals, config.unsigned_cross_ids),
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
