//! Matrices: those that come with Cheops, and what one would do before it is used.
//!
//! A trial is no second opinion: every pair of types becomes two concurrent operations, and what
//! resolves and explains real ones resolves and explains these.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::Request;
use cheops_api as wire;
use cheops_core::config::{Config, Meeting, PairRow, Parsed, Sequence, profiles};
use cheops_core::model::{
    Author, EntryId, IdError, Incarnation, Operation, OperationId, OperationType, Payload,
    Replaces, ResourceId, SiteId, Stamp,
};
use cheops_core::resolve::{MatrixEntry, OperationSet, explain, resolve};

use super::metered::whole;
use super::refusal::HttpRefusal;
use super::submit::parse;
use super::wire as on_wire;

pub(super) async fn all_profiles() -> Json<Vec<wire::Profile>> {
    let told = profiles().iter().map(|profile| wire::Profile {
        name: profile.name.to_owned(),
        about: profile.why.to_owned(),
        config: on_wire::config(&profile.config),
    });
    Json(told.collect())
}

pub(super) async fn try_one(request: Request) -> Result<Json<wire::MatrixTrial>, HttpRefusal> {
    let asked: wire::TryMatrix = parse(&whole(request).await?)?;
    let text = match asked.config {
        serde_json::Value::String(text) => text,
        config => config.to_string(),
    };
    // A matrix may have thousands of pairs.
    let tried = tokio::task::spawn_blocking(move || tried(&text)).await;
    tried.map_err(|_| HttpRefusal::from(crate::driver::Stopped))?.map(Json)
}

fn tried(text: &str) -> Result<wire::MatrixTrial, HttpRefusal> {
    trial(&Config::parse(text)?).map_err(|error| HttpRefusal::bad("bad config", error.to_string()))
}

fn trial(parsed: &Parsed) -> Result<wire::MatrixTrial, IdError> {
    let config = &parsed.config;
    let pairs = config.table().iter().map(|row| pair(config, row)).collect::<Result<_, _>>()?;
    let doubt = |warning: &cheops_core::config::Warning| {
        on_wire::finding(&warning.place, warning.doubt.to_string(), None)
    };
    Ok(wire::MatrixTrial {
        types: config.kinds().iter().map(ToString::to_string).collect(),
        pairs,
        warnings: parsed.warnings.iter().map(doubt).collect(),
        config: on_wire::config(config),
    })
}

fn pair(config: &Config, row: &PairRow) -> Result<wire::MatrixPair, IdError> {
    let (first, second) = (made("first", 1, &row.first)?, made("second", 2, &row.second)?);
    let which = |id: &OperationId| match *id == first.id {
        true => wire::Which::First,
        false => wire::Which::Second,
    };
    let mut operations = OperationSet::default();
    operations.insert(first.clone());
    operations.insert(second.clone());
    let config = about(config, [&row.first, &row.second]);
    let resolved = resolve(&operations, &config);
    let decided = explain(&operations, &config).decisions.into_iter().next();
    let entry = MatrixEntry {
        first: row.first.clone(),
        second: row.second.clone(),
        resolution: row.resolution.clone(),
    };
    let sentence = match decided {
        Some(decision) => decision.sentence,
        None => both_count(&first.id, &second.id, row, &entry),
    };
    let named = |operation: &Operation, nth: &str| {
        (operation.id.to_string(), format!("the {nth} `{}`", operation.kind))
    };
    let names = [named(&first, "first"), named(&second, "second")];
    let sentence = names.iter().fold(sentence, |text, (id, name)| text.replace(id, name));
    Ok(wire::MatrixPair {
        first: row.first.to_string(),
        second: row.second.to_string(),
        entry: entry.to_string(),
        listed: row.listed,
        in_sequence: match row.sequence {
            Sequence::Appended => wire::InSequence::Appended,
            Sequence::Replaces => wire::InSequence::Replaces,
        },
        kept: row.kept.iter().map(ToString::to_string).collect(),
        list: resolved.list.iter().map(which).collect(),
        loser: resolved.left_out.keys().next().map(which),
        any_order: row.concurrent == Meeting::AnyOrder,
        sentence,
        meaning: row.sentence(),
    })
}

/// What is not decided needs no explanation of the resolver's; here it does.
fn both_count(
    first: &OperationId,
    second: &OperationId,
    row: &PairRow,
    entry: &MatrixEntry,
) -> String {
    let how = match &row.concurrent {
        Meeting::AnyOrder => "in any order".to_owned(),
        Meeting::Merged => "merged".to_owned(),
        Meeting::ByProgram(name) => format!("as the program `{name}` says"),
        _ => "in the total order".to_owned(),
    };
    format!("{first} and {second} are concurrent and both count, {how}; {entry}")
}

/// An operation that knows of no other.
fn made(site: &str, wall_ms: u64, kind: &OperationType) -> Result<Operation, IdError> {
    let author = Author { site: SiteId::new(site)?, incarnation: Incarnation(1) };
    Ok(Operation {
        id: OperationId(EntryId { author, n: 1 }),
        resource: ResourceId::new("trial")?,
        stamp: Stamp { wall_ms, counter: 0 },
        claimed: Stamp { wall_ms, counter: 0 },
        parents: Vec::new(),
        kind: kind.clone(),
        payload: Payload::shell(":"),
        replaces: Replaces::Nothing,
        declares: None,
        needs: Default::default(),
        asked_by: None,
    })
}

/// What a config says of these types: a matrix of thousands of pairs is not gone through for each.
fn about(config: &Config, kinds: [&OperationType; 2]) -> Config {
    let matrix: BTreeMap<_, _> = kinds
        .into_iter()
        .flat_map(|first| kinds.map(|second| (first.clone(), second.clone())))
        .filter_map(|pair| config.matrix.get(&pair).cloned().map(|entry| (pair, entry)))
        .collect();
    Config { matrix, ..Config::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn told(text: &str) -> String {
        let trial = tried(text).unwrap();
        let line = |pair: &wire::MatrixPair| {
            let wire::MatrixPair { list, loser, any_order, sentence, .. } = pair;
            format!("{list:?} loser {loser:?} any {any_order}: {sentence}\n")
        };
        trial.pairs.iter().map(line).collect()
    }

    #[test]
    fn a_trial_tells_of_every_pair_what_the_resolver_makes_of_it() {
        expect![[r#"
            [First, Second] loser None any true: the first `inc` and the second `inc` are concurrent and both count, in any order; (inc, inc): take-both
            [Second] loser Some(First) any false: the first `inc` is overridden: the second `set` is concurrent and of the replacing kind; (inc, set): take-both-reverse-order, replace-wins
            [First] loser Some(Second) any false: the second `inc` is overridden: the first `set` is concurrent and of the replacing kind; (set, inc): take-both-keep-order, replace-wins
            [Second] loser Some(First) any false: the first `set` is overridden: the second `set` is concurrent and was written last; (set, set): take-one
        "#]]
        .assert_eq(&told(
            r#"{"ResolutionMatrix": [
                {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
                {"Before": "inc", "After": "set", "Result": "take-both-reverse-order"},
                {"Before": "inc", "After": "inc", "Result": "take-both"},
                {"Before": "set", "After": "set", "Result": "take-one"}]}"#,
        ));
    }

    #[test]
    fn both_may_count_in_an_order_that_is_not_that_of_their_stamps() {
        expect![[r#"
            [First, Second] loser None any false: the first `a` and the second `a` are concurrent and both count, in the total order; (a, a): logic:exec
            [Second, First] loser None any false: the second `b` and the first `a` are concurrent and both count, the second `b` first; (a, b): take-both-reverse-order, keep-both
            [First, Second] loser None any false: the first `b` and the second `a` are concurrent and both count, the first `b` first; (b, a): take-both-keep-order, keep-both
            [First, Second] loser None any false: the first `b` and the second `b` are concurrent and both count, in the total order; (b, b): ordered
        "#]]
        .assert_eq(&told(
            r#"{"ResolutionMatrix": [
                {"Before": "b", "After": "a", "Result": "take-both-keep-order", "Concurrent": "keep-both"},
                {"Before": "a", "After": "b", "Result": "take-both-reverse-order", "Concurrent": "keep-both"},
                {"Before": "a", "After": "a", "Result": "logic:exec"},
                {"Before": "b", "After": "b", "Result": "ordered"}]}"#,
        ));
    }

    #[test]
    fn a_trial_and_the_table_agree_whatever_the_profile() {
        for profile in profiles() {
            let parsed = Parsed { config: profile.config.clone(), warnings: Vec::new() };
            let trial = trial(&parsed).unwrap();
            for (pair, row) in trial.pairs.iter().zip(profile.config.table()) {
                let want = match row.concurrent {
                    Meeting::OnlyFirst => vec![wire::Which::First],
                    Meeting::OnlySecond => vec![wire::Which::Second],
                    Meeting::SecondThenFirst => vec![wire::Which::Second, wire::Which::First],
                    _ => vec![wire::Which::First, wire::Which::Second],
                };
                assert_eq!(pair.list, want, "{row:?}");
            }
        }
    }
}
