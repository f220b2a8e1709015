//! Web hooks of resources that may not go where they say: the operator is told once of each.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use cheops_core::model::ResourceId;

use super::Fact;

/// How many are remembered: resources may name any number of addresses.
const MOST: usize = 256;

/// Those that were told of.
#[derive(Debug, Default)]
pub(super) struct NotAllowed(Mutex<BTreeSet<(Option<ResourceId>, String)>>);

impl NotAllowed {
    pub(super) fn note(&self, fact: &Fact, url: &str) {
        metrics::counter!("cheops_hooks_total", "kind" => "web", "ending" => "not-allowed")
            .increment(1);
        if self.is_news(fact.resource.clone(), url) {
            let resource = fact.resource.as_ref().map(ResourceId::as_str);
            tracing::warn!(
                resource,
                url,
                "a web hook of a resource is not told: no place in `webhooks.allow` covers it"
            );
        }
    }

    fn is_news(&self, resource: Option<ResourceId>, url: &str) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= MOST {
            told.clear();
        }
        told.insert((resource, url.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_is_news_once_and_any_number_takes_little_room() {
        let noted = NotAllowed::default();
        let resource = ResourceId::new("x").ok();
        assert!(noted.is_news(resource.clone(), "http://a"));
        assert!(!noted.is_news(resource.clone(), "http://a"));
        assert!(noted.is_news(None, "http://a"));
        (0..1_000).for_each(|n| _ = noted.is_news(resource.clone(), &format!("http://{n}")));
        assert!(noted.0.lock().unwrap().len() <= MOST);
    }
}
