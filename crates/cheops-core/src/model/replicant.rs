//! Replicants: one resource of a service, kept at several sites under one id, whatever each
//! site's own instance calls it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{LocalId, MetaId, SiteId};

/// How a request speaks of the resource that it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replica {
    /// What stands for the resource in the request, at every site.
    pub meta_id: MetaId,
    /// The path under which it is one of many.
    pub collection: String,
    /// What it does to the resource.
    pub act: Act,
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

/// What each site's instance of a service calls one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replicant {
    /// The service.
    pub service: String,
    /// What users call the resource.
    pub meta_id: MetaId,
    /// The path under which it is one of many.
    pub collection: String,
    /// What the sites call it, as far as it is known; `None` if all of them call it by its
    /// meta-id.
    pub local_ids: Option<BTreeMap<SiteId, LocalId>>,
}

impl Replicant {
    /// Of a request to that service.
    pub fn new(service: &str, replica: &Replica) -> Self {
        let Replica { meta_id, collection, .. } = replica.clone();
        let mut replicant = Self { service: service.into(), meta_id, collection, local_ids: None };
        replicant.see(replica);
        replicant
    }

    /// Takes in how another request speaks of it; whether that is new.
    pub fn see(&mut self, replica: &Replica) -> bool {
        let is_new = replica.act == Act::Creates && self.local_ids.is_none();
        if is_new {
            self.local_ids = Some(BTreeMap::new());
        }
        is_new
    }

    /// Takes in what a site calls it; whether that is new. The first word stands: a service does
    /// not rename what it has made.
    pub fn name(&mut self, site: &SiteId, local_id: &LocalId) -> bool {
        let ids = self.local_ids.get_or_insert_default();
        if ids.contains_key(site) {
            return false;
        }
        ids.insert(site.clone(), local_id.clone());
        true
    }

    /// Takes in what another site knows of it.
    pub fn join(&mut self, other: &Self) {
        for (site, id) in other.local_ids.iter().flatten() {
            self.name(site, id);
        }
        if other.local_ids.is_some() {
            self.local_ids.get_or_insert_default();
        }
    }

    /// What a site calls it; `None` if it has not made it, as far as is known.
    pub fn at(&self, site: &SiteId) -> Option<&str> {
        match &self.local_ids {
            None => Some(self.meta_id.as_str()),
            Some(ids) => ids.get(site).map(LocalId::as_str),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(act: Act) -> Replica {
        Replica { meta_id: MetaId::new("m").unwrap(), collection: "/v1".into(), act }
    }

    #[test]
    fn a_site_calls_it_by_the_meta_id_unless_services_choose_ids() {
        let (paris, lyon) = (SiteId::new("paris").unwrap(), SiteId::new("lyon").unwrap());
        let given = Replicant::new("image", &replica(Act::Changes));
        assert_eq!(given.at(&paris), Some("m"));
        let mut chosen = Replicant::new("image", &replica(Act::Creates));
        assert_eq!(chosen.at(&paris), None, "it is not made there yet");
        assert!(chosen.name(&paris, &LocalId::new("7").unwrap()));
        assert!(!chosen.name(&paris, &LocalId::new("8").unwrap()));
        let mut heard = given;
        heard.join(&chosen);
        assert_eq!((heard.at(&paris), heard.at(&lyon)), (Some("7"), None));
    }
}
