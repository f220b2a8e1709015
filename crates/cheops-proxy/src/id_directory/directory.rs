//! The replicas of one service, by what users and the service call them.

use std::collections::HashMap;
use std::sync::Arc;

use cheops_core::model::{IdMap, ResourceId, SiteId};
use percent_encoding::percent_decode_str;

use super::rename::Towards;

/// By which names a replica is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// That which users know, and that of this site's service.
    All,
    /// Only that which users know: at another site the other may be something else.
    Meta,
}

/// A replica, as this site knows it.
#[derive(Debug)]
pub(crate) struct KnownReplica {
    pub(crate) resource: ResourceId,
    pub(crate) replicant: Arc<IdMap>,
    /// What the service of this site calls it; `None` if it has not made it.
    pub(crate) here: Option<String>,
}

impl KnownReplica {
    pub(super) fn new(resource: ResourceId, replicant: Arc<IdMap>, me: &SiteId) -> Self {
        let here = replicant.at(me).map(str::to_owned);
        Self { resource, replicant, here }
    }

    pub(crate) fn meta_id(&self) -> &str {
        self.replicant.meta_id.as_str()
    }

    fn is_renamed(&self) -> bool {
        self.here.as_deref() != Some(self.meta_id())
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let here = self.here.as_deref().filter(|_| self.is_renamed());
        here.into_iter().chain([self.meta_id()])
    }

    /// Whether a name at that place means this one. One that was drawn for it does wherever it
    /// stands; another only where this resource would be, for it may be something else elsewhere.
    fn is_at(&self, name: &str, place: Option<&str>, prefix: &str) -> bool {
        let collection = self.replicant.collection.trim_end_matches('/');
        let is_in =
            |place: &str| place == collection || place.strip_prefix(prefix) == Some(collection);
        // An honest agent that calls a resource by no place has drawn the name.
        let is_claimed = self.claim_to(name) == NameClaim::WasDrawn;
        self.is_drawn(name) || !is_claimed && place.is_some_and(is_in)
    }

    /// How good it is, the best one first.
    fn claim_to(&self, name: &str) -> NameClaim {
        if name != self.meta_id() {
            NameClaim::ServiceGaveIt
        } else if name != self.resource.as_str() {
            NameClaim::IsItsPlace
        } else {
            NameClaim::WasDrawn
        }
    }

    /// Whether a name was drawn for this resource, so that it can mean nothing else: by an agent,
    /// then the resource itself is called so, or by the service. One that a client chose may be
    /// that of something else too, as the quotas of a project go by the project's id.
    fn is_drawn(&self, name: &str) -> bool {
        let is_chosen = name == self.meta_id() && name != self.resource.as_str();
        !is_chosen && uuid::Uuid::try_parse(name).is_ok()
    }
}

/// Why a name means a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NameClaim {
    /// This site's service calls it so, and knows best.
    ServiceGaveIt,
    /// The resource is called by where it is.
    IsItsPlace,
    /// It was drawn for it, and nothing else is called so unless somebody made it to be.
    WasDrawn,
}

/// A replica, and where a path speaks of it.
#[derive(Debug)]
pub(crate) struct Mentioned {
    pub(crate) known: Arc<KnownReplica>,
    /// How many segments are before the one that names it.
    pub(crate) depth: usize,
    pub(crate) below: Below,
}

/// Whether a path is that of a resource, or of something that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    Itself,
    Part,
}

#[derive(Debug, Default)]
pub(super) struct Directory {
    /// What stands before every path of the service, in its own links.
    prefix: String,
    by_name: HashMap<String, Vec<Arc<KnownReplica>>>,
    by_resource: HashMap<ResourceId, Arc<KnownReplica>>,
    renamed: usize,
}

impl Directory {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), ..Self::default() }
    }

    pub(super) fn insert(&mut self, known: KnownReplica) {
        let known = Arc::new(known);
        self.renamed += usize::from(known.is_renamed());
        for name in known.names() {
            self.by_name.entry(name.to_owned()).or_default().push(known.clone());
        }
        self.by_resource.insert(known.resource.clone(), known);
    }

    pub(super) fn remove(&mut self, resource: &ResourceId) {
        let Some(known) = self.by_resource.remove(resource) else { return };
        self.renamed -= usize::from(known.is_renamed());
        for name in known.names() {
            if let Some(named) = self.by_name.get_mut(name) {
                named.retain(|other| other.resource != *resource);
                if named.is_empty() {
                    self.by_name.remove(name);
                }
            }
        }
    }

    pub(super) fn renames(&self) -> bool {
        self.renamed > 0
    }

    /// The replica that a path speaks of: the last one, for what is below a resource belongs to it.
    pub(super) fn find(&self, path: &str, by: Names) -> Option<Mentioned> {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let path = path.trim_end_matches('/');
        let mut end = path.len();
        loop {
            let start = path[..end].rfind('/')?;
            let segment = percent_decode_str(&path[start + 1..end]).decode_utf8();
            let place = &path[..start];
            if let Ok(name) = segment
                && let Some(known) = self.named(&name, Some(place))
                && (by == Names::All || known.meta_id() == name)
            {
                let before = place.trim_start_matches('/');
                return Some(Mentioned {
                    known: known.clone(),
                    depth: if before.is_empty() { 0 } else { before.split('/').count() },
                    below: if end == path.len() { Below::Itself } else { Below::Part },
                });
            }
            end = start;
        }
    }

    /// The replica that users call so at that place.
    pub(super) fn called(&self, name: &str, place: Option<&str>) -> Option<&ResourceId> {
        let known = self.named(name, place).filter(|known| known.meta_id() == name)?;
        Some(&known.resource)
    }

    /// Whether any replica is called so, by anyone.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Of several that are called so the same one always, whichever was heard of first: anybody in the mesh
    /// may make one that is called like another.
    fn named(&self, name: &str, place: Option<&str>) -> Option<&Arc<KnownReplica>> {
        let named = self.by_name.get(name)?.iter();
        let at_place = named.filter(|known| known.is_at(name, place, &self.prefix));
        at_place.min_by_key(|known| (known.claim_to(name), &known.resource))
    }

    /// What names become that way.
    pub(super) fn names(&self, way: Towards) -> impl Fn(&str, Option<&str>) -> Option<String> {
        move |name, place| self.new_name(name, place, way).map(str::to_owned)
    }

    /// What a name at that place becomes on its way; `None` if it stays.
    fn new_name(&self, name: &str, place: Option<&str>, towards: Towards) -> Option<&str> {
        let known = self.named(name, place).filter(|known| known.is_renamed())?;
        let (from, to) = match towards {
            Towards::Service => (known.meta_id(), known.here.as_deref()?),
            Towards::User => (known.here.as_deref()?, known.meta_id()),
        };
        (from == name).then_some(to)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use cheops_core::model::{Act, Author, EntryId, Incarnation, LocalId, MetaId, ServiceRef};

    pub(in super::super) const META: &str = "5a3f0000-aaaa-4bbb-8ccc-000000000001";

    pub(in super::super) fn known(
        collection: &str,
        meta: &str,
        local: Option<&str>,
    ) -> KnownReplica {
        let me = SiteId::new("paris").unwrap();
        let act = if local == Some(meta) { Act::CreatesAs } else { Act::Creates };
        let meta_id = MetaId::new(meta).unwrap();
        let replica = ServiceRef { meta_id, collection: collection.into(), act };
        let mut replicant = IdMap::new("image", &replica);
        if let Some(local) = local.filter(|local| *local != meta) {
            let author = Author { site: me.clone(), incarnation: Incarnation(1) };
            replicant.name(&EntryId { author, n: 2 }, &LocalId::new(local).unwrap());
        }
        let resource = match act {
            Act::CreatesAs => format!("{collection}/{meta}"),
            _ => meta.to_owned(),
        };
        KnownReplica::new(ResourceId::new(&resource).unwrap(), Arc::new(replicant), &me)
    }

    fn directory() -> Directory {
        let mut directory = Directory::new("/api");
        directory.insert(known("/v1/images", META, Some("7")));
        directory.insert(known("/v1/tags", "blue", Some("blue")));
        directory.insert(known("/v1/keys", "database", Some("database")));
        directory
    }

    #[test]
    fn a_path_speaks_of_a_replica_by_either_name_and_by_what_is_below_it() {
        let cases = [
            (format!("/v1/images/{META}"), Some(META)),
            (format!("/other/{META}/file?x=1"), Some(META)),
            ("/v1/images/7/file".to_owned(), Some(META)),
            ("/api/v1/images/7".to_owned(), Some(META)),
            ("/admin/v1/images/7".to_owned(), None),
            ("/v1/other/database".to_owned(), None),
            ("/v1/tags/7".to_owned(), None),
            ("/v1/tags/blue".to_owned(), Some("blue")),
            ("/v1/tags/%62lue".to_owned(), Some("blue")),
            ("/v1/blue".to_owned(), None),
            ("/v1/images".to_owned(), None),
            ("/".to_owned(), None),
            (String::new(), None),
            (format!("/v1/images/{META}/tags/blue"), Some(META)),
        ];
        for (path, expected) in cases {
            let found = directory().find(&path, Names::All);
            assert_eq!(found.as_ref().map(|found| found.known.meta_id()), expected, "{path}");
        }
    }

    #[test]
    fn it_is_told_where_in_a_path_the_replica_is() {
        let cases = [
            ("/v1/images/7", 2, Below::Itself),
            ("//v1/images/7/", 2, Below::Itself),
            ("/v1/images/7?force=7", 2, Below::Itself),
            ("/v1/images/7/file", 2, Below::Part),
            // A part that happens to be called what the resource is.
            ("/v1/images/7/tags/7", 2, Below::Part),
            ("/api/v1/images/7", 3, Below::Itself),
        ];
        for (path, depth, below) in cases {
            let mut directory = directory();
            directory.insert(known("//v1/images", "other", Some("7")));
            let found = directory.find(path, Names::All).unwrap();
            assert_eq!((found.depth, found.below), (depth, below), "{path}");
        }
    }

    #[test]
    fn an_id_that_a_client_chose_means_the_resource_only_where_that_is() {
        let mut directory = Directory::default();
        directory.insert(known("/v3/admin/quotas", META, Some(META)));
        let found = |path: &str| directory.find(path, Names::All).is_some();
        assert!(found(&format!("/v3/admin/quotas/{META}")));
        assert!(!found(&format!("/v3/{META}/volumes")));
    }

    #[test]
    fn a_resource_that_is_called_like_another_takes_no_request_from_it() {
        let me = SiteId::new("paris").unwrap();
        let claims = |resource: &str, collection: &str, meta: &str| {
            let meta_id = MetaId::new(meta).unwrap();
            let said = ServiceRef { meta_id, collection: collection.into(), act: Act::CreatesAs };
            let replicant = Arc::new(IdMap::new("image", &said));
            KnownReplica::new(ResourceId::new(resource).unwrap(), replicant, &me)
        };
        const LOCAL: &str = "5a3f0000-aaaa-4bbb-8ccc-000000000002";
        let honest = [
            known("/v1/images", META, Some(LOCAL)),
            claims(&format!("image/quotas/{META}"), "/quotas", META),
            claims("image/v1/keys/web", "/v1/keys", "web"),
        ];
        let captures = [
            claims(LOCAL, "/v1/images", LOCAL),
            claims(&format!("image/v1/images/{LOCAL}"), "/v1/images", LOCAL),
            claims(META, "/quotas", META),
            claims("web", "/v1/keys", "web"),
        ];
        let honest = honest.map(Arc::new);
        let captures = captures.map(Arc::new);
        let led = |order: Vec<&Arc<KnownReplica>>, path: &str| {
            let mut directory = Directory::default();
            for known in order {
                let (resource, replicant) = (known.resource.clone(), known.replicant.clone());
                directory.remove(&resource);
                directory.insert(KnownReplica::new(resource, replicant, &me));
            }
            directory.find(path, Names::All).map(|found| found.known.resource.to_string())
        };
        for (path, resource) in [
            (format!("/v1/images/{LOCAL}"), META.to_owned()),
            (format!("/quotas/{META}"), format!("image/quotas/{META}")),
            ("/v1/keys/web".to_owned(), "image/v1/keys/web".to_owned()),
        ] {
            // But for the one that has the same name as the honest one, and so is it.
            let others = captures.iter().filter(|known| known.resource != honest[0].resource);
            let late = honest.iter().chain(others.clone()).collect();
            let early = others.chain(&honest).collect();
            assert_eq!(led(late, &path).as_ref(), Some(&resource), "{path}");
            assert_eq!(led(early, &path).as_ref(), Some(&resource), "{path}");
        }
        // Nor does one take requests from what is not known here: names that nobody drew lead only to what
        // is called by its place.
        assert_eq!(led(vec![&captures[3]], "/v1/keys/web"), None);
    }

    #[test]
    fn for_another_site_only_the_name_that_users_know_counts() {
        let found = |path: &str| directory().find(path, Names::Meta).is_some();
        assert!(found(&format!("/v1/images/{META}")));
        assert!(!found("/v1/images/7"));
        assert!(found("/v1/tags/blue"));
    }

    #[test]
    fn what_is_gone_is_not_known_by_any_name() {
        let mut directory = directory();
        assert!(directory.renames());
        directory.remove(&known("/v1/images", META, None).resource);
        assert!(directory.find("/v1/images/7", Names::All).is_none());
        assert!(directory.find(&format!("/v1/images/{META}"), Names::All).is_none());
        assert!(!directory.renames(), "the other has one name only");
        assert!(directory.find("/v1/tags/blue", Names::All).is_some());
    }

    #[test]
    fn a_replica_that_is_not_made_here_yet_has_no_name_for_the_service() {
        let mut directory = Directory::default();
        directory.insert(known("/v1/images", META, None));
        assert!(directory.find(&format!("/v1/images/{META}"), Names::All).is_some());
        assert_eq!(directory.new_name(META, None, Towards::Service), None);
    }
}
