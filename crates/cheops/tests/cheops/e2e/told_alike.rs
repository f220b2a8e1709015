//! What is said of a resource, by every way to ask and at every site: it must be the same.

use cheops_api::{Resource, ResourceFilter, ResourceState, SiteStanding, Standing};

use crate::e2e::cluster::{Cluster, Site, until};

/// Waits until every site says the same of a resource: that it is in this state, and why, whichever way it is
/// asked. What it says of each of the resource's sites.
pub(crate) async fn told_alike(
    cluster: &Cluster,
    id: &str,
    state: ResourceState,
) -> Vec<SiteStanding> {
    let mut told: Vec<Resource> = Vec::new();
    until(&format!("every site says that {id} is {}", state.word()), async || {
        told.clear();
        for site in cluster.sites() {
            told.extend(site.resource(id).await);
        }
        let alike = told.windows(2).all(|pair| essence(&pair[0]) == essence(&pair[1]));
        alike && told.len() == cluster.sites().count() && told[0].summary.state == state
    })
    .await;
    let alike = &told[0];
    for site in cluster.sites() {
        the_api_says(site, alike).await;
        the_command_line_says(site, alike);
    }
    alike.standings.clone()
}

/// What all sites must agree on.
fn essence(told: &Resource) -> impl PartialEq {
    let Resource { summary, list, standings, .. } = told;
    let (list, standings, worst) = (list.clone(), standings.clone(), summary.standing.clone());
    (summary.state, summary.errors, worst, list, standings)
}

/// Its lists and numbers say of a resource what its page does.
async fn the_api_says(site: &Site, alike: &Resource) {
    let (id, state) = (&alike.summary.id, alike.summary.state);
    let here = &site.name;
    let filter = ResourceFilter { state: Some(state), ..ResourceFilter::default() };
    let listed = site.client().resources(&filter).await.unwrap().items;
    let listed = listed.iter().find(|listed| listed.id == *id);
    assert_eq!(listed.map(|it| &it.standing), Some(&alike.summary.standing), "{id} at {here}");
    let other = match state {
        ResourceState::Converged => ResourceState::Error,
        _ => ResourceState::Converged,
    };
    let filter = ResourceFilter { state: Some(other), ..ResourceFilter::default() };
    let others = site.client().resources(&filter).await.unwrap().items;
    assert!(others.iter().all(|listed| listed.id != *id), "{id} is {other:?}, too, at {here}");
    // It is counted every now and then, and the list asked for just now may be later.
    until(&format!("{here} counts {id} as {}", state.word()), async || {
        let summary = site.client().summary().await.unwrap();
        let troubled = alike.standings.iter().filter(|at| needs_somebody(at.standing));
        summary.by_state.contains_key(state.word())
            && troubled.into_iter().all(|at| summary.troubled.contains_key(&at.site))
    })
    .await;
}

fn the_command_line_says(site: &Site, alike: &Resource) {
    let Resource { summary, standings, .. } = alike;
    let id = summary.id.as_str();
    let says = |arguments: &[&str]| {
        let out = site.cheops(arguments);
        (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned())
    };
    let here = &site.name;
    let word = label(summary.state);
    let troubled = summary.standing.as_ref().filter(|worst| needs_somebody(worst.standing));
    let at = troubled.map(|worst| format!("{word} at {}", worst.site));
    let at = at.unwrap_or_else(|| word.to_owned());
    for arguments in [&["resources"][..], &["resources", "--state", &word.replace(' ', "-")]] {
        let (code, text) = says(arguments);
        let line = text.lines().find(|line| line.starts_with(&format!("{id} ")));
        assert!(
            code == Some(0) && line.is_some_and(|line| line.contains(&at)),
            "{arguments:?} at {here} does not say that {id} is {at}: {text}"
        );
    }
    let (code, text) = says(&["resource", id]);
    let first = text.lines().next().unwrap_or_default();
    // What is proven, or not, is told behind it.
    let said = first.split(", ").next();
    assert_eq!((code, said), (Some(0), Some(format!("{id}  {word}").as_str())), "{here}");
    for at in standings {
        let line = text.lines().find(|line| line.starts_with(&format!("{}: ", at.site)));
        let line = line.unwrap_or_default();
        let expected = said_of(at.standing);
        assert!(
            expected.map_or(line.is_empty(), |word| line.contains(word)),
            "resource {id} at {here} says of {}: {line:?}, of {at:?}",
            at.site
        );
    }
    let (code, text) = says(&["status"]);
    let need = text.lines().find(|line| line.starts_with(&format!("{id}  ")));
    match troubled {
        None => assert_eq!(need, None, "{here}: {text}"),
        Some(worst) => {
            assert_eq!(code, Some(1), "{here}: {text}");
            let at = format!(" at {}", worst.site);
            assert!(need.is_some_and(|need| need.contains(&at)), "{here}: {text}");
        }
    }
}

fn needs_somebody(standing: Standing) -> bool {
    matches!(standing, Standing::Failed | Standing::InDoubt | Standing::Diverged)
}

/// A state as `cheops` prints it.
fn label(state: ResourceState) -> &'static str {
    match state {
        ResourceState::Converged => "in sync",
        ResourceState::InDoubt => "unknown result",
        ResourceState::Error => "failed",
        state => state.word(),
    }
}

/// What `cheops resource` says of one site; nothing of one that is in sync.
fn said_of(standing: Standing) -> Option<&'static str> {
    match standing {
        Standing::InSync => None,
        Standing::Running => Some("running"),
        Standing::Waiting => Some("waiting"),
        Standing::Unknown => Some("unknown"),
        Standing::Failed => Some("failed"),
        Standing::InDoubt => Some("unknown result"),
        Standing::Diverged => Some("diverged"),
    }
}
