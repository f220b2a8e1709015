//! Which resources of this site's services are replicas, and what they are called: by users, who
//! know their meta-ids, and by the service beside this agent, which may have chosen ids of its own.
//!
//! | file | what it does |
//! | --- | --- |
//! | `directory` | the replicas of one service, by name |
//! | `naming` | where ids are in a service's answers, and in links |
//! | `rename` | ids put in the place of others, in whole messages |

mod directory;
mod naming;
mod rename;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use cheops_core::model::{IdMap, ResourceId, SiteId};
use tokio::sync::Notify;

use self::directory::Directory;
pub(crate) use self::directory::{Below, KnownReplica, Mentioned, Names};
pub use self::naming::Naming;
pub(crate) use self::naming::{Renaming, encoded, id_text};
use self::rename::in_link;
pub(crate) use self::rename::{LONG, Named};
pub use self::rename::{Towards, is_json};

/// All of them. The driver writes into it, before it tells anyone or runs anything that may
/// speak of it; proxies and executors read.
#[derive(Debug, Clone)]
pub struct IdDirectory(Arc<IdDirectoryState>);

#[derive(Debug)]
struct IdDirectoryState {
    me: SiteId,
    /// How many there are, so that a site without any need not look.
    count: AtomicUsize,
    /// What stands before the paths of services in their own links.
    prefixes: HashMap<String, String>,
    services: RwLock<ServiceDirectories>,
    /// Whoever waits for one to be known.
    published: Notify,
}

#[derive(Debug, Default)]
struct ServiceDirectories {
    directories: HashMap<String, Directory>,
    /// In whose directory a resource is.
    of: HashMap<ResourceId, String>,
}

impl IdDirectory {
    /// None yet.
    pub fn new(me: SiteId) -> Self {
        Self::of(me, HashMap::new())
    }

    /// The same, for services whose own paths begin with these.
    pub fn of(me: SiteId, prefixes: HashMap<String, String>) -> Self {
        let (count, services) = (AtomicUsize::new(0), RwLock::default());
        Self(Arc::new(IdDirectoryState { me, count, prefixes, services, published: Notify::new() }))
    }

    /// From now on requests that speak of it are known; or, with `None`, no more.
    pub fn publish(&self, resource: &ResourceId, replicant: Option<Arc<IdMap>>) {
        let mut services = self.0.services.write().unwrap_or_else(PoisonError::into_inner);
        let services = &mut *services;
        if let Some(service) = services.of.remove(resource)
            && let Some(directory) = services.directories.get_mut(&service)
        {
            directory.remove(resource);
        }
        if let Some(replicant) = replicant {
            let service = replicant.service.clone();
            let prefix = self.0.prefixes.get(&service).map_or("", String::as_str);
            let directory = services.directories.entry(service.clone());
            let directory = directory.or_insert_with(|| Directory::new(prefix));
            directory.insert(KnownReplica::new(resource.clone(), replicant, &self.0.me));
            services.of.insert(resource.clone(), service);
        }
        self.0.count.store(services.of.len(), Ordering::Release);
        self.0.published.notify_waiters();
    }

    /// The replica that a path speaks of.
    pub(crate) fn find(&self, service: &str, path: &str, by: Names) -> Option<Mentioned> {
        let find = |directory: &Directory| {
            // What is below a replica is known by what users call that.
            let known = match by {
                Names::All if directory.renames() => in_link(&directory.names(Towards::User), path),
                _ => None,
            };
            directory.find(known.as_deref().unwrap_or(path), by)
        };
        self.with(service, find).flatten()
    }

    /// Whether the service beside this agent calls any of its replicas by another name than users
    /// do: then what passes has to be looked into.
    pub fn renames(&self, service: &str) -> bool {
        self.with(service, Directory::renames).unwrap_or(false)
    }

    /// The replica that users call so: in that service, or in another one, if the name was drawn for
    /// it and can mean nothing else.
    fn called(&self, service: &str, name: &str, place: Option<&str>) -> Option<ResourceId> {
        if self.is_empty() {
            return None;
        }
        let services = self.0.services.read().unwrap_or_else(PoisonError::into_inner);
        let here = services.directories.get(service);
        let here = here.and_then(|directory| directory.called(name, place));
        let others = || {
            let others = services.directories.iter().filter(|(other, _)| *other != service);
            others.filter_map(|(_, directory)| directory.called(name, None)).next()
        };
        here.or_else(others).cloned()
    }

    /// Whether users, or the service of this site, call any of them so.
    fn knows(&self, name: &str) -> bool {
        let services = self.0.services.read().unwrap_or_else(PoisonError::into_inner);
        services.directories.values().any(|directory| directory.knows(name))
    }

    /// Comes back once one of them is called so.
    pub(crate) async fn heard_of(&self, name: &str) {
        loop {
            let mut published = std::pin::pin!(self.0.published.notified());
            // From now on, so that nothing is missed between the look and the wait.
            published.as_mut().enable();
            if self.knows(name) {
                return;
            }
            published.await;
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.count.load(Ordering::Acquire) == 0
    }

    fn with<T>(&self, service: &str, look: impl FnOnce(&Directory) -> T) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let services = self.0.services.read().unwrap_or_else(PoisonError::into_inner);
        services.directories.get(service).map(look)
    }
}
