//! The programs of sites that decide about operations which were made concurrently.
//!
//! `sorted` runs them by what they do, drops what does the same as the one before it, and runs something
//! else in the place of some; of some states it makes nothing. `odd` does the same, but for one site, which
//! has another program under that name.

use cheops_core::model::{Fingerprint, Outcome, SiteId};
use serde_json::{Value, json};

/// The site whose program `odd` is another one.
const ODD_SITE: &str = "lyon";

/// What a program answers to that question, with the state before the operations.
pub(crate) fn answer(program: &str, question: &str, state: &str, site: &SiteId) -> Outcome {
    let given = format!("{question}\n{state}");
    let input = Fingerprint::of(given.as_bytes());
    let Ok(question) = serde_json::from_str::<Value>(question) else {
        return Outcome::failure(format!("{input}\nwhat it was asked is no JSON"));
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let asked = question["operations"].as_array().into_iter().flatten();
    let asked = asked.map(|it| (text(&it["does"]["command"]), text(&it["id"])));
    match decide(asked.collect(), state) {
        None => Outcome::failure(format!("{input}\nit makes nothing of this state")),
        Some(mut list) => {
            if program == "odd" && site.as_str() == ODD_SITE {
                list.reverse();
            }
            let step = |(id, command): (String, Option<String>)| match command {
                Some(command) => json!({ "id": id, "command": command }),
                None => json!(id),
            };
            let list: Vec<Value> = list.into_iter().map(step).collect();
            Outcome::success(format!("{input}\n{}", json!(list)))
        }
    }
}

/// Which are run, in which order, and what instead of what they say; nothing for some states.
pub(crate) fn decide(
    mut asked: Vec<(String, String)>,
    state: &str,
) -> Option<Vec<(String, Option<String>)>> {
    if state.len() % 7 == 3 {
        return None;
    }
    asked.sort();
    asked.dedup_by(|(a, _), (b, _)| a == b);
    let instead = |command: &str| command.ends_with('9').then(|| "append 0".to_owned());
    Some(asked.into_iter().map(|(command, id)| (id, instead(&command))).collect())
}
