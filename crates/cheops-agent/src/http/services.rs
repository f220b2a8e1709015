//! Whether any site of a resource has the service that an operation is for.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use cheops_api as wire;
use cheops_core::model::{ResourceId, SiteId};
use futures_util::future::join_all;

use super::refusal::HttpRefusal;
use super::{Api, LARGEST_BODY};

/// How long a site may take to say which services it has. Whoever hands in waits for it.
const ASKING: Duration = Duration::from_secs(3);

/// Refuses an operation for a service that none of its sites has: every one would fail. A site that
/// does not say so may have it.
pub(super) async fn check(
    api: &Api,
    id: &ResourceId,
    sites: Option<&BTreeSet<SiteId>>,
    service: &str,
) -> Result<(), HttpRefusal> {
    if api.services.iter().any(|known| known == service) {
        return Ok(());
    }
    let sites = match sites {
        Some(sites) => Some(sites.clone()),
        None => {
            let wanted = id.clone();
            let held = api.driver.ask(move |engine| engine.holding(&wanted)).await?;
            held.map(|held| held.sites.into_iter().collect())
        }
    };
    // Of what is not known here, another site is asked, which looks for itself.
    let Some(sites) = sites.filter(|sites| sites.contains(&api.site)) else { return Ok(()) };
    let others = sites.iter().filter(|site| **site != api.site);
    let said = join_all(others.map(|site| of_site(api, site))).await;
    let Some(said) = said.into_iter().collect::<Option<Vec<_>>>() else { return Ok(()) };
    let known: BTreeSet<String> = said.into_iter().flatten().chain(api.services.clone()).collect();
    if known.contains(service) {
        return Ok(());
    }
    let there = match known.is_empty() {
        true => "they have none".to_owned(),
        false => {
            let known: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("they have {}", known.join(", "))
        }
    };
    let sites: Vec<_> = sites.iter().map(ToString::to_string).collect();
    let detail = format!("none of {} has a service `{service}`; {there}", sites.join(", "));
    Err(HttpRefusal::bad("no such service", detail)
        .hint("`[[services]]` in a site's config names one; nothing was written"))
}

/// The services of another site, if it says so.
async fn of_site(api: &Api, site: &SiteId) -> Option<Vec<String>> {
    let mut question = Request::new(Body::empty());
    *question.uri_mut() = http::Uri::from_static(wire::paths::SITES);
    let asked = async {
        let answer = api.peers.pass_on(site, question).await.ok()?;
        let body = axum::body::to_bytes(answer.into_body(), LARGEST_BODY).await.ok()?;
        serde_json::from_slice::<wire::Sites>(&body).ok()?.services
    };
    tokio::time::timeout(ASKING, asked).await.ok()?
}
