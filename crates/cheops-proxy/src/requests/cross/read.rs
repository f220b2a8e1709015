//! A whole read for whoever looks at this site: each part as its service gives it now, and what a client
//! would get.

use bytes::Bytes;
use cheops_core::model::SiteId;
use http::{Method, Request, Uri};
use serde_json::Value;

use super::super::{ProxiedRequest, Proxies};
use super::join::{AnswerPiece, Joiner, Missing};
use super::seen::SeenWhole;
use super::{ClaimedId, Over, questions};

/// Where a whole is to be looked for, if it was not seen here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholePlace {
    /// The service.
    pub service: String,
    /// The path of the collection.
    pub collection: String,
}

/// What was read of a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct WholeRead {
    /// Where it is.
    pub place: WholePlace,
    /// What a client gets, but for what each part says; none if the answers cannot be made into one.
    pub whole: Option<Value>,
    /// In the order of its id.
    pub parts: Vec<PartRead>,
}

/// What was read of one part.
#[derive(Debug, Clone, PartialEq)]
pub struct PartRead {
    /// Where.
    pub site: SiteId,
    /// What that site's service calls it.
    pub id: String,
    /// What the service said, or why it said nothing.
    pub value: Result<Value, String>,
}

/// Why a whole cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum WholeUnread {
    /// The id is none.
    #[error("`{0}` is no id of a resource over several sites, or was cut off")]
    NoSuchId(String),
    /// Nobody used it here.
    #[error("of which service `{0}` is was not seen here since this agent started")]
    PlaceUnknown(String),
    /// There is no such service here.
    #[error("this site has no service `{0}`")]
    NoSuchService(String),
    /// The collection is no path.
    #[error("`{0}` is no path of a collection, such as `/v1/servers`")]
    NoSuchPath(String),
    /// It was not made there, or nobody can tell.
    #[error("{0}")]
    NotTaken(String),
}

impl Proxies {
    /// The wholes that were made or asked for here since the agent started, the latest first.
    pub fn seen_wholes(&self) -> Vec<SeenWhole> {
        self.0.whole_ids.seen().all()
    }

    /// Reads a whole, where it was seen or in that place.
    ///
    /// # Errors
    ///
    /// If it is not known where to look, or the id was not made there.
    pub async fn read_whole(
        &self,
        id: &str,
        place: Option<WholePlace>,
    ) -> Result<WholeRead, WholeUnread> {
        if ClaimedId::read(id).is_none() {
            return Err(WholeUnread::NoSuchId(id.to_owned()));
        }
        let place = place.or_else(|| {
            let SeenWhole { service, collection, .. } = self.0.whole_ids.seen().find(id)?;
            Some(WholePlace { service, collection })
        });
        let place = place.ok_or_else(|| WholeUnread::PlaceUnknown(id.to_owned()))?;
        let service = self.0.services.get(&place.service);
        let service = service.ok_or_else(|| WholeUnread::NoSuchService(place.service.clone()))?;
        let no_path = || WholeUnread::NoSuchPath(place.collection.clone());
        if !place.collection.starts_with('/') {
            return Err(no_path());
        }
        let path = format!("{}/{id}", place.collection.trim_end_matches('/'));
        let uri: Uri = path.parse().map_err(|_invalid| no_path())?;
        let not_taken = |detail: &str| WholeUnread::NotTaken(detail.to_owned());
        let over = self.whole(service, &uri).map_err(|refused| not_taken(refused.detail()))?;
        let Some(Over::Whole(whole)) = over else { return Err(no_path()) };

        let mut head = Request::new(()).into_parts().0;
        (head.method, head.uri) = (Method::GET, uri);
        let asked = ProxiedRequest { head, upgrade: None, among: None };
        let ids: Vec<String> = whole.parts().iter().map(|part| part.id.clone()).collect();
        let over = Over::Whole(whole);
        let questions = questions(service, &asked, &Bytes::new(), &over);
        let questions = questions.map_err(|refused| not_taken(refused.detail()))?;
        let heard = self.ask_all(service, &asked, questions).await;
        let said = heard.iter().map(|heard| match heard.done() {
            Some(answer) => Ok(answer.content.json().cloned().unwrap_or_default()),
            None => Err(heard.missing()),
        });
        let said: Vec<Result<Value, Missing>> = said.collect();
        let pieces: Vec<AnswerPiece> = heard
            .iter()
            .zip(&said)
            .filter_map(|(heard, said)| {
                Some(AnswerPiece { site: heard.site.clone(), body: said.clone().ok()? })
            })
            .collect();
        let missing: Vec<Missing> = said.iter().filter_map(|said| said.clone().err()).collect();
        let joiner = Joiner { naming: &service.naming, cross: &service.cross, over: &over };
        let joined = if pieces.is_empty() { None } else { joiner.join(&pieces, &missing).ok() };
        let mut whole = joined.flatten();
        if let Some(members) = whole.as_mut().and_then(Value::as_object_mut) {
            // That is what the parts say.
            members.remove("sites");
        }
        let parts = heard.into_iter().zip(ids).zip(said).map(|((heard, id), said)| PartRead {
            site: heard.site,
            id,
            value: said.map_err(|missing| missing.detail),
        });
        Ok(WholeRead { parts: parts.collect(), place, whole })
    }
}
