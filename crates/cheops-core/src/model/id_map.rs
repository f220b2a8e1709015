//! What sites call one resource of a service, which they keep under one id, whatever the own
//! instance of each calls it. Users know such a resource as a replicant.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Author, EntryId, LocalId, MetaId, RequestKind, ResourceId, SiteId};

/// How a request speaks of the resource that it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRef {
    /// What stands for the resource in the request, at every site.
    pub meta_id: MetaId,
    /// The path under which it is one of many.
    pub collection: String,
    /// What it does to the resource.
    pub act: Act,
}

impl ServiceRef {
    /// The resource that stands for a thing whose name a client chose: the same name may be given to
    /// others, in other collections and services.
    pub fn placed(service: &str, collection: &str, name: &str) -> String {
        // Else `a/b` below `/x` would be `b` below `/x/a`.
        let name = name.replace('%', "%25").replace('/', "%2F");
        format!("{service}{collection}/{name}")
    }

    /// Whether that resource stands for what this speaks of. Only then do requests that speak of it lead
    /// there: whoever makes a resource could else take any other's place in them.
    pub fn is_of(&self, service: &str, resource: &ResourceId) -> bool {
        stands_for(resource, service, &self.collection, &self.meta_id)
    }
}

/// A resource is called what users call the thing, where that was drawn for it; or by where it is.
fn stands_for(resource: &ResourceId, service: &str, collection: &str, meta_id: &MetaId) -> bool {
    // So that a name can be read in one way only.
    let is_clear = !service.contains('/') && (collection.is_empty() || collection.starts_with('/'));
    let name = meta_id.as_str();
    is_clear
        && (resource.as_str() == name
            || resource.as_str() == ServiceRef::placed(service, collection, name))
}

/// What a request does to the resource it speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Makes it; the service chooses an id, and says which in its answer.
    Creates,
    /// Makes it under the id that the request gives.
    CreatesAs,
    /// Changes it, or something below it.
    Changes,
    /// Ends it.
    Deletes,
}

impl Act {
    /// Whether a request of that kind can be made again where nobody knows whether it was carried
    /// out. Of what is of no kind that is known here, nobody can tell: so it is not.
    pub fn can_be_repeated(self, kind: Option<RequestKind>) -> bool {
        match self {
            Self::CreatesAs | Self::Deletes => true,
            Self::Changes => kind.is_some_and(RequestKind::may_be_sent_again),
            // Each time would make another.
            Self::Creates => false,
        }
    }

    /// Whether a service that answers so says that what was asked for is so already. `again`: the
    /// same was begun before, and may have been carried out.
    pub fn is_already_so(
        self,
        method: RequestMethod,
        again: bool,
        status: u16,
        says: &SaysAlready,
    ) -> bool {
        match (self, method) {
            (Self::Deletes, _) => says.gone.contains(&status),
            (Self::Changes, RequestMethod::Delete) => again && says.gone.contains(&status),
            (Self::CreatesAs, _) | (Self::Changes, RequestMethod::Put) => {
                again && says.done.contains(&status)
            }
            // A patch that is refused the second time may have been refused the first time.
            (Self::Changes, RequestMethod::Other) => false,
            // What was made before has an id, and this answer does not say which.
            (Self::Creates, _) => false,
        }
    }
}

/// A request's method, as far as it says what is so once the request was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestMethod {
    /// What it gives is there.
    Put,
    /// What it names is not there.
    Delete,
    /// Any other.
    Other,
}

impl From<&str> for RequestMethod {
    fn from(method: &str) -> Self {
        match method {
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            _ => Self::Other,
        }
    }
}

/// By which statuses a service says that what it is asked for is so already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaysAlready {
    /// That it was made or changed so before.
    pub done: Vec<u16>,
    /// That it is not there (any more).
    pub gone: Vec<u16>,
}

impl Default for SaysAlready {
    fn default() -> Self {
        Self { done: vec![409], gone: vec![404, 410] }
    }
}

/// What each site's instance of a service calls one resource.
///
/// An id belongs to the author that said it, a site in one incarnation of its disk: a site that was
/// rebuilt together with its service makes the thing anew, and the ids of the old service may be
/// those of strangers in the new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdMap {
    /// The service.
    pub service: String,
    /// What users call the resource.
    pub meta_id: MetaId,
    /// The path under which it is one of many.
    pub collection: String,
    /// What the sites call it, as far as it is known; `None` if all of them call it by its
    /// meta-id.
    pub local_ids: Option<BTreeMap<Author, LocalName>>,
}

/// What a site said its service calls a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalName {
    /// The id.
    pub id: LocalId,
    /// The number of the reply that said so. Whoever made the thing again says so later.
    pub n: u64,
}

impl IdMap {
    /// Of a request to that service.
    pub fn new(service: &str, service_ref: &ServiceRef) -> Self {
        let ServiceRef { meta_id, collection, .. } = service_ref.clone();
        let mut id_map = Self { service: service.into(), meta_id, collection, local_ids: None };
        id_map.see(service_ref);
        id_map
    }

    /// Whether it can be that resource's.
    pub fn is_of(&self, resource: &ResourceId) -> bool {
        stands_for(resource, &self.service, &self.collection, &self.meta_id)
    }

    /// Whether a request to that service speaks of what this stands for. Under a name that was drawn
    /// somebody may have made another kind of thing too.
    pub fn is_spoken_of(&self, service: &str, service_ref: &ServiceRef) -> bool {
        self.service == service && self.collection == service_ref.collection
    }

    /// Takes in how another request speaks of it; whether that is new.
    pub fn see(&mut self, service_ref: &ServiceRef) -> bool {
        let is_new = service_ref.act == Act::Creates && self.local_ids.is_none();
        if is_new {
            self.local_ids = Some(BTreeMap::new());
        }
        is_new
    }

    /// Takes in what the author of a reply calls it; whether that is new. The last word of an
    /// author stands: it made the thing again, and the one before is not what requests mean any
    /// more.
    pub fn name(&mut self, reply: &EntryId, local_id: &LocalId) -> bool {
        let said = LocalName { id: local_id.clone(), n: reply.n };
        self.keep_later(&reply.author, said)
    }

    fn keep_later(&mut self, author: &Author, said: LocalName) -> bool {
        let ids = self.local_ids.get_or_insert_default();
        if ids.get(author).is_some_and(|known| known.n >= said.n) {
            return false;
        }
        ids.insert(author.clone(), said);
        true
    }

    /// Takes in what another site knows of it, if it is the same that both know.
    pub fn join(&mut self, other: &Self) {
        if (&self.service, &self.collection) != (&other.service, &other.collection) {
            return;
        }
        for (author, said) in other.local_ids.iter().flatten() {
            self.keep_later(author, said.clone());
        }
        if other.local_ids.is_some() {
            self.local_ids.get_or_insert_default();
        }
    }

    /// The same with the words of those authors only that count.
    #[must_use]
    pub fn counting(&self, counts: impl Fn(&Author) -> bool) -> Self {
        let counted = |ids: &BTreeMap<Author, LocalName>| {
            let counted = ids.iter().filter(|(author, _)| counts(author));
            counted.map(|(author, said)| (author.clone(), said.clone())).collect()
        };
        Self { local_ids: self.local_ids.as_ref().map(counted), ..self.clone() }
    }

    /// Who said what its service calls it.
    pub fn named_by(&self) -> impl Iterator<Item = &Author> {
        self.local_ids.iter().flat_map(BTreeMap::keys)
    }

    /// What a site calls it; `None` if it has not made it, as far as is known. To be asked of one
    /// in which one incarnation of each site counts, see [`IdMap::counting`].
    pub fn at(&self, site: &SiteId) -> Option<&str> {
        match &self.local_ids {
            None => Some(self.meta_id.as_str()),
            Some(ids) => {
                let mut by_site = ids.iter().filter(|(author, _)| author.site == *site);
                by_site.next_back().map(|(_, said)| said.id.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Incarnation;

    fn service_ref(act: Act) -> ServiceRef {
        ServiceRef { meta_id: MetaId::new("m").unwrap(), collection: "/v1".into(), act }
    }

    fn author(site: &str, incarnation: u64) -> Author {
        Author { site: SiteId::new(site).unwrap(), incarnation: Incarnation(incarnation) }
    }

    fn said(id_map: &mut IdMap, by: &Author, n: u64, id: &str) -> bool {
        let reply = EntryId { author: by.clone(), n };
        id_map.name(&reply, &LocalId::new(id).unwrap())
    }

    #[test]
    fn a_site_calls_it_by_the_meta_id_unless_services_choose_ids() {
        let (paris, lyon) = (author("paris", 1), author("lyon", 1));
        let given = IdMap::new("image", &service_ref(Act::Changes));
        assert_eq!(given.at(&paris.site), Some("m"));
        let mut chosen = IdMap::new("image", &service_ref(Act::Creates));
        assert_eq!(chosen.at(&paris.site), None, "it is not made there yet");
        assert!(said(&mut chosen, &paris, 2, "7"));
        let mut heard = given;
        heard.join(&chosen);
        assert_eq!((heard.at(&paris.site), heard.at(&lyon.site)), (Some("7"), None));
    }

    #[test]
    fn who_made_it_again_calls_it_by_the_new_id_whatever_is_heard_first() {
        let paris = author("paris", 1);
        let mut one = IdMap::new("image", &service_ref(Act::Creates));
        assert!(said(&mut one, &paris, 5, "8"));
        assert!(!said(&mut one, &paris, 2, "7"), "that was before");
        let mut other = IdMap::new("image", &service_ref(Act::Creates));
        assert!(said(&mut other, &paris, 2, "7"));
        other.join(&one);
        assert_eq!(other.at(&paris.site), Some("8"));
    }

    #[test]
    fn ids_of_another_incarnation_do_not_count_where_they_are_not_asked_for() {
        let (dead, alive) = (author("paris", 9), author("paris", 3));
        let mut id_map = IdMap::new("image", &service_ref(Act::Creates));
        said(&mut id_map, &dead, 2, "7");
        let now = |id_map: &IdMap| {
            let counted = id_map.counting(|author| *author == alive);
            counted.at(&alive.site).map(str::to_owned)
        };
        assert_eq!(now(&id_map), None);
        said(&mut id_map, &alive, 1, "1");
        assert_eq!(now(&id_map).as_deref(), Some("1"));
    }
}
