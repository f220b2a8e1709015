//! One resource over several sites (`%`): a create is divided, a read is put together again.
//!
//! Each part is an ordinary resource of its site. The whole is known by an id that lists them, and
//! no site keeps anything of it.
//!
//! | file | what it does |
//! | --- | --- |
//! | `id` | the id of a whole |
//! | `divide`, `join` | bodies divided over sites, and answers made into one |
//! | `ask` | one request at several sites at once |
//! | `create` | what they made, or how it is undone |
//! | `answer` | what the client gets |
//! | `refused` | why there is no answer |
//! | `seen`, `read` | which there are, as far as this site has seen, and what they are now |

mod answer;
mod ask;
mod create;
mod divide;
mod id;
mod join;
mod read;
mod refused;
mod seen;

use bytes::Bytes;
use cheops_core::model::SiteId;
use cheops_services::Returned;
use cheops_services::body::Arriving;
use http::uri::PathAndQuery;
use http::{Method, Response, Uri};
use serde_json::Value;

use self::ask::{SiteQuestion, SiteResult};
use self::create::Made;
pub(super) use self::id::WholeIds;
use self::id::{ClaimedId, WholeResource};
pub use self::read::{PartRead, WholePlace, WholeRead, WholeUnread};
pub use self::seen::SeenWhole;
use super::local_service::LocalService;
use super::refusal::ProxyRefusal;
use super::{ProxiedRequest, Proxies};
use crate::id_directory::Renaming;

/// The parts of a resource over several sites, as its id says; `None` if it is no such id. Whether
/// it is true is looked at when it is used.
pub fn parts_of(id: &str) -> Option<Vec<(SiteId, String)>> {
    let said = ClaimedId::read(id)?;
    Some(said.parts().iter().map(|part| (part.site.clone(), part.id.clone())).collect())
}

/// What a request runs over.
#[derive(Debug)]
pub(super) enum Over {
    /// The sites of a scope.
    Sites(Vec<SiteId>),
    /// The parts of a resource.
    Whole(Box<WholeResource>),
}

impl Over {
    fn each(&self) -> Vec<&SiteId> {
        match self {
            Self::Sites(sites) => sites.iter().collect(),
            Self::Whole(whole) => whole.parts().iter().map(|part| &part.site).collect(),
        }
    }

    /// What the request is called at one site, in the place of what it is called here.
    fn renaming(&self, i: usize) -> Option<Renaming<'_>> {
        let Self::Whole(whole) = self else { return None };
        let part = whole.parts().get(i)?;
        Some(Renaming { from: whole.as_str(), to: &part.id })
    }

    /// The other way round, for what a site says.
    fn renaming_back(&self, site: &SiteId) -> Option<Renaming<'_>> {
        let Self::Whole(whole) = self else { return None };
        let part = whole.parts().iter().find(|part| part.site == *site)?;
        Some(Renaming { from: &part.id, to: whole.as_str() })
    }
}

impl Proxies {
    /// The resource that a path speaks of, if it is one over several sites.
    pub(super) fn whole(
        &self,
        service: &LocalService,
        asked: &Uri,
    ) -> Result<Option<Over>, ProxyRefusal> {
        let whole = self.0.whole_ids.in_path(service.name(), asked.path());
        let whole = whole.map_err(|why| refused::not_taken(&why))?;
        Ok(whole.map(|whole| Over::Whole(Box::new(whole))))
    }

    /// Answers a request that runs at several sites.
    pub(super) async fn cross(
        &self,
        service: &LocalService,
        asked: ProxiedRequest,
        body: Arriving,
        over: Over,
    ) -> Result<Response<Returned>, ProxyRefusal> {
        if let Some((protocol, _)) = &asked.upgrade {
            let protocol = String::from_utf8_lossy(protocol.as_bytes());
            return Err(ProxyRefusal::no_upgrade(&protocol));
        }
        let body = self.short_body(body).await?;
        let questions = questions(service, &asked, &body, &over)?;
        if asked.head.method.is_safe() {
            return self.run(service, &asked, questions, over).await;
        }
        // What has begun at several sites comes to its end, also when the client leaves: a part
        // that nobody knows of would be left behind.
        let (proxies, service) = (self.clone(), service.clone());
        let running =
            tokio::spawn(async move { proxies.run(&service, &asked, questions, over).await });
        running.await.unwrap_or_else(|_ended| Err(refused::ended_early()))
    }

    async fn run(
        &self,
        service: &LocalService,
        asked: &ProxiedRequest,
        questions: Vec<SiteQuestion>,
        over: Over,
    ) -> Result<Response<Returned>, ProxyRefusal> {
        let heard = self.ask_all(service, asked, questions).await;
        let mut over = over;
        if asked.head.method == Method::POST
            && matches!(over, Over::Sites(_))
            && !all_refused(&heard)
            && let Made::Whole(whole) = self.made(service, asked, &heard).await?
        {
            self.0.whole_ids.seen().note(service.name(), asked.head.uri.path(), whole.as_str());
            over = Over::Whole(Box::new(whole));
        }
        let answer = answer::put_together(service, &asked.head.method, &heard, &over)?;
        if let Over::Whole(whole) = &over
            && asked.head.method == Method::DELETE
            && answer.status().is_success()
            && asked.head.uri.path().trim_end_matches('/').ends_with(whole.as_str())
        {
            self.0.whole_ids.seen().forget(whole.as_str());
        }
        Ok(answer)
    }
}

/// Whether every service said no: there is nothing to undo then.
fn all_refused(heard: &[SiteResult]) -> bool {
    heard.iter().all(|heard| heard.answer().is_some() && heard.done().is_none())
}

/// What each site is asked: the body divided, the id of the whole replaced by that of the part.
fn questions(
    service: &LocalService,
    asked: &ProxiedRequest,
    body: &Bytes,
    over: &Over,
) -> Result<Vec<SiteQuestion>, ProxyRefusal> {
    let sites = over.each();
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    if parsed.is_none() && !body.is_empty() && !service.cross.divide.is_empty() {
        return Err(refused::not_divisible("it is not JSON"));
    }
    let bodies: Vec<Bytes> = match &parsed {
        None => vec![body.clone(); sites.len()],
        Some(whole) => {
            let parts = divide::divide(whole, &service.cross, &sites);
            let parts = parts.into_iter().enumerate().map(|(i, mut part)| {
                if let Some(renaming) = over.renaming(i) {
                    service.naming.rename(&mut part, renaming);
                }
                // What did not change is sent as it came.
                if part == *whole { body.clone() } else { part.to_string().into() }
            });
            parts.collect()
        }
    };
    let path = asked.head.uri.path_and_query().cloned();
    let path = path.unwrap_or(PathAndQuery::from_static("/"));
    let question = |(i, (site, body)): (usize, (&SiteId, Bytes))| {
        let renamed = over.renaming(i).and_then(|renaming| renaming.in_path(&path));
        SiteQuestion { site: site.clone(), path: renamed.unwrap_or_else(|| path.clone()), body }
    };
    Ok(sites.into_iter().zip(bodies).enumerate().map(question).collect())
}
