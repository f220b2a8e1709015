//! `[[hooks]]`, which are the site's own, and `[webhooks]`.

use std::time::Duration;

use cheops_core::config::{Hook, HookAction, HookEvent, HookRun, MAX_HOOKS, url_fault};
use cheops_core::model::OperationType;

use super::allowed::Allowed;
use super::pattern::Pattern;
use super::problem::SettingPlace;
use super::reader::{ConfigReader, ConfigTable};
use super::values::{self, A_TIME, Secret, parsed};
use super::{SiteHook, WebhooksConfig};

const MOST_ATTEMPTS: usize = 20;

/// Reads both.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    root: &mut ConfigTable<'a>,
) -> (Vec<SiteHook>, WebhooksConfig) {
    let tables = reader.tables(root, "hooks");
    if tables.len() > MAX_HOOKS {
        let message = format!("there are {} hooks; at most {MAX_HOOKS} are allowed", tables.len());
        reader.report(&SettingPlace::File, "hooks", message);
    }
    let hooks = tables.into_iter().take(MAX_HOOKS).filter_map(|mut table| {
        let hook = hook(reader, &mut table);
        reader.end(&table);
        hook
    });
    let hooks = hooks.collect();
    let mut table = reader.table(root, "webhooks");
    let secret = secret(reader, &mut table);
    let time_limit = reader.value(&mut table, "time_limit", A_TIME, values::duration);
    let a_count = format!("a number from 1 to {MOST_ATTEMPTS}");
    let attempts = reader.value(&mut table, "attempts", &a_count, values::count(MOST_ATTEMPTS));
    let a_place = "an address such as `https://ops.example`, or `*`";
    let allow = reader.list(&mut table, "allow", a_place, Allowed::new);
    reader.end(&table);
    let webhooks = WebhooksConfig {
        secret,
        time_limit: time_limit.map_or(Duration::from_secs(10), |(limit, _)| limit),
        attempts: attempts.map_or(5, |(attempts, _)| attempts),
        allow: allow.map(|(allow, _)| allow).unwrap_or_default(),
    };
    (hooks, webhooks)
}

fn hook<'a>(reader: &mut ConfigReader<'a>, table: &mut ConfigTable<'a>) -> Option<SiteHook> {
    let events = HookEvent::ALL.map(|event| (event.word(), event));
    let places = [HookRun::EachSite, HookRun::Once].map(|run| (run.word(), run));
    let before = reader.problems.len();
    let on = reader.word(table, "on", &events);
    if on.is_none() && reader.problems.len() == before {
        let message = "is missing; expected an event such as `failed` or `converged`";
        reader.report(&table.place.clone(), &table.path_of("on"), message);
    }
    let action = action(reader, table);
    let run = reader.word(table, "run", &places).unwrap_or_default();
    let a_type = "an operation type such as `set`";
    let types = reader.list(table, "types", a_type, parsed::<OperationType>);
    let a_name = "a resource's id, in which `*` stands for anything";
    let resources = reader.list(table, "resources", a_name, Pattern::new);
    let secret = secret(reader, table);
    let on = on?;
    let means_nothing =
        |reader: &mut ConfigReader<'a>, place: &SettingPlace, key: &str, why: &str| {
            let message = format!("has no meaning with `on = \"{on}\"`: {why}");
            reader.report(place, &table.path_of(key), message);
        };
    if let Some(why) = on.why_not_once().filter(|_| run == HookRun::Once) {
        means_nothing(reader, &table.place, "run", why);
    }
    if let Some((_, place)) = types.as_ref().filter(|_| !on.is_of_an_operation()) {
        means_nothing(reader, place, "types", "no operation goes with it");
    }
    let of_a_site = matches!(on, HookEvent::SiteDown | HookEvent::SiteUp);
    if let Some((_, place)) = resources.as_ref().filter(|_| of_a_site) {
        means_nothing(reader, place, "resources", "it is about a site");
    }
    let types = types.map(|(types, _)| types).unwrap_or_default().into_iter().collect();
    let resources = resources.map(|(resources, _)| resources).unwrap_or_default();
    Some(SiteHook { hook: Hook { on, action: action?, run, types }, resources, secret })
}

fn action<'a>(reader: &mut ConfigReader<'a>, table: &mut ConfigTable<'a>) -> Option<HookAction> {
    let before = reader.problems.len();
    let not_empty = |text: &str| match text.trim() {
        "" => Err("is empty".to_owned()),
        _ => Ok(HookAction::Command(text.to_owned())),
    };
    let command = reader.value(table, "command", "a shell command", not_empty);
    let url = reader.value(table, "url", "an address such as `https://ops.example/x`", |text| {
        url_fault(text).map_or_else(
            || Ok(HookAction::Url(text.to_owned())),
            |fault| Err(format!("cannot be used: {fault}")),
        )
    });
    match (command, url) {
        (Some(_), Some(_)) => {
            let message = "there are both `command` and `url`; expected one, or two hooks";
            reader.report(&table.place, &table.path, message);
            None
        }
        (None, None) => {
            if reader.problems.len() == before {
                let message = "there is neither `command` nor `url`; expected one of them";
                reader.report(&table.place, &table.path, message);
            }
            None
        }
        (command, url) => command.or(url).map(|(action, _)| action),
    }
}

/// Given as it is, or as the file that holds it. Messages never show it.
fn secret<'a>(reader: &mut ConfigReader<'a>, table: &mut ConfigTable<'a>) -> Option<Secret> {
    let given = reader.value(table, "secret", "a text", |text| Ok(text.to_owned()));
    let file = reader.path(table, "secret_file");
    let (text, place, key) = match (given, file) {
        (None, None) => return None,
        (Some((_, place)), Some(_)) => {
            let message = "there is `secret_file` as well; expected one of them";
            reader.report(&place, &table.path_of("secret"), message);
            return None;
        }
        (Some((text, place)), None) => (text, place, "secret"),
        (None, Some(file)) => match std::fs::read_to_string(&file) {
            Ok(text) => (text, table.place.clone(), "secret_file"),
            Err(error) => {
                let message = format!("`{}` cannot be read: {error}", file.display());
                reader.report(&table.place.clone(), &table.path_of("secret_file"), message);
                return None;
            }
        },
    };
    match Secret::new(&text) {
        Ok(secret) => Some(secret),
        Err(message) => {
            reader.report(&place, &table.path_of(key), message);
            None
        }
    }
}
