//! Putting sites out of the mesh, in the name of its authority: only where that is.

use std::time::SystemTime;

use axum::Json;
use axum::extract::{Path, State};
use cheops_api as wire;
use cheops_core::causes;
use cheops_core::model::{Asker, SiteId};
use cheops_directory::{Existence, Removal, Revocation, Statement};
use cheops_mesh::authority;
use http::StatusCode;

use super::SharedApi;
use super::invitations::inviter;
use super::principal::{self, AskedBy};
use super::refusal::HttpRefusal;
use crate::driver::Stopped;

/// The site is out, for good.
pub(super) async fn remove(
    State(api): State<SharedApi>,
    AskedBy(by): AskedBy,
    Path(site): Path<String>,
    Json(asked): Json<wire::RemoveSite>,
) -> Result<StatusCode, HttpRefusal> {
    inviter(&api)?;
    let site = another_site(&api, &site)?;
    let asked_by = format!("{} at {}", by.principal, by.site);
    let removal = Removal { site: site.clone(), dead: asked.dead, when_ms: now_ms(), asked_by };
    say(api, &by, &format!("remove site {site}"), Statement::Removal(removal)).await
}

/// The key that the site shows speaks for it no longer; it may be given a new identity.
pub(super) async fn revoke(
    State(api): State<SharedApi>,
    AskedBy(by): AskedBy,
    Path(site): Path<String>,
) -> Result<StatusCode, HttpRefusal> {
    inviter(&api)?;
    let site = another_site(&api, &site)?;
    let key = api.peers.directory().key(&site).ok_or_else(|| {
        let detail = format!("no key of `{site}` is known here that could be revoked");
        HttpRefusal::conflict("no key is known", detail)
            .hint("a site shows its key when it is connected for the first time")
    })?;
    let revocation = Revocation { site: site.clone(), key, when_ms: now_ms() };
    say(api, &by, &format!("revoke the identity of {site}"), Statement::Revocation(revocation))
        .await
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A site that is there, and is not this one.
fn another_site(api: &SharedApi, name: &str) -> Result<SiteId, HttpRefusal> {
    let site = SiteId::new(name)
        .map_err(|error| HttpRefusal::bad("not a name for a site", error.to_string()))?;
    if site == api.site {
        let detail = format!("`{site}` has the authority, and cannot put itself out");
        return Err(HttpRefusal::conflict("it is here", detail));
    }
    if matches!(api.peers.directory().existence(&site), Existence::Removed(_)) {
        return Err(HttpRefusal::conflict("removed", format!("`{site}` was removed already")));
    }
    if !api.peers.sites().contains(&site) {
        let detail = format!("this agent knows no site `{site}`");
        return Err(HttpRefusal::not_found("no such site", detail)
            .hint("`cheops sites` lists those it knows"));
    }
    Ok(site)
}

/// Signs it, takes it in, and passes it on.
async fn say(
    api: SharedApi,
    by: &Asker,
    what: &str,
    statement: Statement,
) -> Result<StatusCode, HttpRefusal> {
    principal::record_of_site(&api, by, what).await?;
    let folder = inviter(&api)?.folder().to_owned();
    let signing = tokio::task::spawn_blocking(move || authority::sign(&folder, &statement));
    let signed = signing.await.map_err(|_ended| Stopped)?;
    let signed = signed.map_err(|error| HttpRefusal::conflict("not signed", causes(&error)))?;
    let taken = api.peers.hand_in(&signed);
    taken.map_err(|error| HttpRefusal::conflict("not taken in", error.to_string()))?;
    Ok(StatusCode::NO_CONTENT)
}
