//! Letting other sites join: only where the mesh's authority is. Who asked is in the feed and in the
//! invitation.

use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::{Path, State};
use cheops_api as wire;
use cheops_core::causes;
use cheops_core::model::SiteId;
use cheops_directory::Existence;
use cheops_mesh::enrol::{Invitation, InvitationError, InvitationId, InvitationOutcome};

use super::principal::{self, AskedBy};
use super::refusal::HttpRefusal;
use super::wire as on_wire;
use super::{Api, SharedApi};
use crate::config::HostPort;
use crate::driver::Stopped;
use crate::inviting::{Inviter, TOKEN_SERVES, TOKEN_SERVES_AT_MOST, leads_here};

pub(super) async fn invite(
    State(api): State<SharedApi>,
    AskedBy(by): AskedBy,
    Json(asked): Json<wire::Invite>,
) -> Result<Json<wire::Invited>, HttpRefusal> {
    inviter(&api)?;
    let (site, serves, address) = (new_site(&api, &asked)?, serves(&asked)?, at(&api, &asked)?);
    principal::record_of_site(&api, &by, &format!("invite {site}")).await?;
    let asked_by = by.principal.clone();
    let made = blocking(&api, move |inviter| inviter.invite(&site, serves, &asked_by, address));
    let (token, invitation) = made.await?;
    let invitation = invitation.ok_or_else(|| unknown(token.id))?;
    let invitation = shown(token.id, &invitation, SystemTime::now());
    Ok(Json(wire::Invited { token: token.to_string(), invitation }))
}

pub(super) async fn list(
    State(api): State<SharedApi>,
) -> Result<Json<Vec<wire::SiteInvitation>>, HttpRefusal> {
    let (all, now) = (inviter(&api)?.list(), SystemTime::now());
    Ok(Json(all.iter().map(|(id, invitation)| shown(*id, invitation, now)).collect()))
}

pub(super) async fn revoke(
    State(api): State<SharedApi>,
    AskedBy(by): AskedBy,
    Path(id): Path<String>,
) -> Result<Json<wire::SiteInvitation>, HttpRefusal> {
    inviter(&api)?;
    let id: InvitationId = id
        .parse()
        .map_err(|_| HttpRefusal::bad("no id", format!("`{id}` is no invitation's id")))?;
    principal::record_of_site(&api, &by, &format!("revoke invitation {id}")).await?;
    blocking(&api, move |inviter| inviter.revoke(id)).await?;
    let revoked = inviter(&api)?.list().into_iter().find(|(other, _)| *other == id);
    let (_, revoked) = revoked.ok_or_else(|| unknown(id))?;
    Ok(Json(shown(id, &revoked, SystemTime::now())))
}

/// It waits for the disk.
async fn blocking<T: Send + 'static>(
    api: &SharedApi,
    what: impl FnOnce(&Inviter) -> Result<T, InvitationError> + Send + 'static,
) -> Result<T, HttpRefusal> {
    let api = api.clone();
    let done =
        tokio::task::spawn_blocking(move || Ok(what(inviter(&api)?).map_err(refused)?)).await;
    done.unwrap_or_else(|_ended| Err(Stopped.into()))
}

pub(super) fn inviter(api: &Api) -> Result<&Inviter, HttpRefusal> {
    api.inviter.as_ref().ok_or_else(|| {
        let detail = format!("site `{}` does not have the mesh's authority", api.site);
        HttpRefusal::conflict("no authority here", detail).hint(
            "ask the site that was made by `cheops up`; where the folder of `cheops mesh new` is, \
             `authority` in `[mesh]` of the agent's config names it",
        )
    })
}

fn new_site(api: &Api, asked: &wire::Invite) -> Result<SiteId, HttpRefusal> {
    let bad = |error: String| HttpRefusal::bad("not a name for a site", error);
    let site = SiteId::new(&asked.site).map_err(|error| bad(error.to_string()))?;
    Inviter::check_name(&site).map_err(|error| bad(error.to_string()))?;
    if site == api.site {
        return Err(HttpRefusal::conflict("it is here", format!("this is site `{site}`")));
    }
    if matches!(api.peers.directory().existence(&site), Existence::Removed(_)) {
        let detail =
            format!("`{site}` was removed from the mesh, and nobody can be called so again");
        return Err(HttpRefusal::conflict("removed", detail).hint("choose another name"));
    }
    if !asked.again && api.peers.sites().contains(&site) {
        let detail = format!("there is a site `{site}` already");
        return Err(HttpRefusal::conflict("known already", detail).hint(
            "another site needs another name; `--again` gives this one a new identity, if it lost its \
             own",
        ));
    }
    Ok(site)
}

fn serves(asked: &wire::Invite) -> Result<Duration, HttpRefusal> {
    let serves = asked.seconds.map_or(TOKEN_SERVES, Duration::from_secs);
    if serves.is_zero() || serves > TOKEN_SERVES_AT_MOST {
        let most = TOKEN_SERVES_AT_MOST.as_secs() / 86_400;
        let detail = format!("a token serves for a second at least and {most} days at most");
        return Err(HttpRefusal::bad("no such time", detail));
    }
    Ok(serves)
}

/// Where the new site is to call.
fn at(api: &Api, asked: &wire::Invite) -> Result<String, HttpRefusal> {
    if let Some(at) = &asked.at {
        let parsed: Result<HostPort, String> = at.parse();
        let bad = |why: String| HttpRefusal::bad("no such address", format!("`{at}` {why}"));
        return Ok(parsed.map_err(bad)?.to_string());
    }
    let known = api.advertise.clone().filter(|address| leads_here(address));
    known.ok_or_else(|| {
        let detail = "this site does not know at which address others find it";
        HttpRefusal::conflict("not known where", detail).hint(
            "`--at HOST:PORT` says it for this token, `advertise` in `[mesh]` of the agent's config \
             for good",
        )
    })
}

fn unknown(id: InvitationId) -> HttpRefusal {
    HttpRefusal::not_found("no such invitation", format!("there is no invitation `{id}`"))
}

fn refused(error: InvitationError) -> HttpRefusal {
    match error {
        InvitationError::Unknown(id) => {
            unknown(id).hint("`cheops invite --list` lists those there are")
        }
        InvitationError::Over(..) => HttpRefusal::conflict("over already", error.to_string()),
        InvitationError::TooMany => HttpRefusal::conflict("too many", error.to_string()),
        InvitationError::File { .. } => {
            HttpRefusal::broken_disk(&std::io::Error::other(causes(&error)))
        }
    }
}

fn shown(id: InvitationId, invitation: &Invitation, now: SystemTime) -> wire::SiteInvitation {
    use wire::InvitationState as State;
    let (state, ended, used_from) = match &invitation.outcome {
        Some(InvitationOutcome::Used { at, from, .. }) => {
            (State::Used, Some(*at), Some(from.clone()))
        }
        Some(InvitationOutcome::Revoked { at }) => (State::Revoked, Some(*at), None),
        Some(InvitationOutcome::Guessed { at }) => (State::Guessed, Some(*at), None),
        None if invitation.is_open(now) => (State::Open, None, None),
        None => (State::Expired, None, None),
    };
    let time = |seconds: u64| on_wire::time(seconds.saturating_mul(1_000));
    wire::SiteInvitation {
        id: id.to_string(),
        site: invitation.site.to_string(),
        state,
        made: time(invitation.made),
        until: time(invitation.until),
        ended: ended.map(time),
        asked_by: invitation.asked_by.clone(),
        used_from,
    }
}
