//! Which hooks a fact concerns.

use cheops_core::config::{Hook, HookEvent, HookRun};

use super::{DueAction, Fact, HookSettings, Owner, Reach};
use crate::config::{Secret, SiteHook};

/// What is to be done about a fact.
pub(super) fn matching(hooks: &[SiteHook], settings: &HookSettings, fact: &Fact) -> Vec<DueAction> {
    let of_site = hooks.iter().enumerate().filter(|(_, hook)| concerns_site(hook, fact));
    let of_site = of_site.map(|(i, own)| {
        let secret = own.secret.as_ref().or(settings.secret.as_ref());
        (Owner::Site(i), &own.hook, secret)
    });
    let config = fact.config.as_deref().filter(|_| fact.resource.is_some());
    let of_resource = config.into_iter().flat_map(|config| config.hooks.iter().enumerate());
    // Whoever gets these, and can check them, can make none that another resource's would take.
    let secret = settings.secret.as_ref().zip(fact.resource.as_ref());
    let key = secret.map(|(secret, resource)| secret.of_resource(resource));
    let of_resource = of_resource.map(|(i, hook)| (Owner::Resource(i), hook, key.as_ref()));
    let told = of_site.chain(of_resource).filter(|(_, hook, _)| is_told(hook, settings, fact));
    let action = |(n, (owner, hook, secret)): (usize, (Owner, &Hook, Option<&Secret>))| DueAction {
        n,
        does: hook.action.clone(),
        run: hook.run,
        owner,
        secret: secret.cloned(),
    };
    told.enumerate().map(action).collect()
}

fn concerns_site(own: &SiteHook, fact: &Fact) -> bool {
    match &fact.resource {
        // That a site is down is told to the site's hooks once, and not for each resource.
        Some(_) if is_about_a_site(fact.event) => false,
        Some(resource) => {
            own.resources.is_empty()
                || own.resources.iter().any(|name| name.fits(resource.as_str()))
        }
        None => own.resources.is_empty(),
    }
}

fn is_about_a_site(event: HookEvent) -> bool {
    matches!(event, HookEvent::SiteDown | HookEvent::SiteUp)
}

fn is_told(hook: &Hook, settings: &HookSettings, fact: &Fact) -> bool {
    let fits = |kind| hook.types.contains(kind);
    // Of which type a pruned operation was is not known any more: told once too often is better.
    let unknown = fact.kind.is_none() && fact.operation.is_some();
    let of_type = hook.types.is_empty() || unknown || fact.kind.as_ref().is_some_and(fits);
    // Without an operation nobody can be singled out: told twice is better than never.
    let received_here =
        fact.operation.as_ref().is_none_or(|operation| *operation.site() == settings.site);
    let here = match (hook.run, fact.event) {
        (HookRun::EachSite, event) if is_about_a_site(event) => true,
        (HookRun::EachSite, _) => fact.site == settings.site && fact.reach == Reach::Here,
        (HookRun::Once, HookEvent::Converged) => received_here,
        (HookRun::Once, _) => received_here && fact.reach == Reach::All,
    };
    hook.on == fact.event && of_type && here
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cheops_core::config::Config;
    use cheops_core::model::{Incarnation, OperationType, ResourceId, SiteId};

    use super::*;
    use crate::config::AgentConfig;

    const SITE_HOOKS: &str = r#"
site = "here"
[[hooks]]
on = "failed"
command = "0"
[[hooks]]
on = "failed"
command = "1"
types = ["set"]
[[hooks]]
on = "failed"
command = "2"
resources = ["image/*", "x"]
secret = "the secret of number two"
[[hooks]]
on = "partial-error"
command = "3"
run = "once"
[[hooks]]
on = "site-down"
command = "4"
[[hooks]]
on = "converged"
command = "5"
run = "once"
"#;

    const RESOURCE_HOOKS: &str = r#"{"Hooks": [
        {"On": "failed", "Command": "a"},
        {"On": "failed", "Command": "b", "Types": ["inc"]},
        {"On": "partial-error", "Command": "c", "Run": "once"},
        {"On": "site-down", "Command": "d"},
        {"On": "converged", "Command": "e"},
        {"On": "failed", "Command": "f", "Run": "once"}]}"#;

    fn told(fact: &Fact) -> String {
        let path = std::path::Path::new("cheops.toml");
        let hooks = AgentConfig::parse(SITE_HOOKS, path, |_| None).unwrap().hooks;
        let mut settings = HookSettings::new(SiteId::new("here").unwrap(), Incarnation(1));
        settings.secret = Some(Secret::new("the secret of the site").unwrap());
        let actions = matching(&hooks, &settings, fact);
        assert!(actions.iter().enumerate().all(|(n, action)| action.n == n));
        assert!(actions.iter().all(|action| action.secret.is_some()));
        let name = |action: &DueAction| match &action.does {
            cheops_core::config::HookAction::Command(name) => name.clone(),
            cheops_core::config::HookAction::Url(url) => url.clone(),
        };
        actions.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_fact_concerns_its_hooks() {
        use HookEvent::{Applied, Converged, Failed, PartialError, SiteDown};
        use Reach::{All, Here};
        // event, reach, resource, who received the operation, its type, where it happened
        let cases = [
            (Failed, Here, "y", "here", "set", "here", "0 1 a"),
            (Failed, Here, "y", "there", "set", "here", "0 1 a"),
            (Failed, Here, "y", "here", "inc", "here", "0 a b"),
            (Failed, Here, "y", "here", "unheard-of", "here", "0 a"),
            // Nobody knows any more of which type it was.
            (Failed, Here, "y", "here", "", "here", "0 1 a b"),
            (Failed, Here, "image/7", "here", "del", "here", "0 2 a"),
            (Failed, Here, "x", "here", "del", "here", "0 2 a"),
            (Failed, Here, "y", "here", "set", "there", ""),
            (Failed, All, "y", "here", "set", "here", "f"),
            (Failed, All, "y", "there", "set", "here", ""),
            (PartialError, All, "y", "here", "set", "here", "3 c"),
            (PartialError, Here, "y", "here", "set", "here", ""),
            (PartialError, All, "y", "there", "set", "here", ""),
            (Converged, Here, "y", "here", "set", "here", "5 e"),
            (Converged, Here, "y", "there", "set", "here", "e"),
            (Converged, Here, "y", "", "", "here", "5 e"),
            (SiteDown, Here, "y", "", "", "there", "d"),
            (SiteDown, Here, "", "", "", "there", "4"),
            (Applied, Here, "y", "here", "set", "here", ""),
        ];
        let config = Arc::new(Config::parse(RESOURCE_HOOKS).unwrap().config);
        for (event, reach, resource, received, kind, site, expected) in cases {
            let fact = Fact {
                seq: 1,
                at_ms: 0,
                event,
                reach,
                resource: ResourceId::new(resource).ok(),
                operation: format!("{received}-1.1").parse().ok(),
                kind: OperationType::new(kind).ok(),
                site: SiteId::new(site).unwrap(),
                detail: serde_json::Value::Null,
                config: Some(Arc::clone(&config)),
            };
            assert_eq!(told(&fact), expected, "{fact:?}");
        }
    }
}
