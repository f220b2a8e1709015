//! The config with what is false put right.

use super::claims::{MatrixClaim, entry};
use super::judge::{ClaimVerdict, JudgedClaim, judge, moving, verdict};
use super::{TrialResults, TrialSamples};
use crate::config::{Concurrent, Config, Resolution, Rule};
use crate::ids::OperationType;

/// What is put right for one pair can make another claim of one that nobody listed; there is an end to
/// that, since each time one pair more is listed.
const ROUNDS: usize = 8;

/// A config of which no claim is false by these trials: `config`, where none is.
///
/// What it says in addition is never more than `config` says: samples can show that something is
/// false, and not that it is true.
pub fn suggestion(config: &Config, samples: &TrialSamples, results: &TrialResults) -> Config {
    let mut better = config.clone();
    for _ in 0..ROUNDS {
        let judged = judge(&better, samples, results);
        let wrong: Vec<_> = judged.iter().filter(|it| it.verdict.is_false()).collect();
        if wrong.iter().all(|it| !it.claim.is_said()) {
            break;
        }
        for JudgedClaim { claim, .. } in wrong {
            mend(&mut better, claim, samples, results);
        }
    }
    better
}

fn mend(config: &mut Config, claim: &MatrixClaim, samples: &TrialSamples, results: &TrialResults) {
    match claim {
        MatrixClaim::AnyOrder { one, other } | MatrixClaim::Overwrites { kind: one, other } => {
            let (one, other) = if one <= other { (one, other) } else { (other, one) };
            let was = entry(config, one, other);
            let truth = truth(config, was.as_ref(), (one, other), samples, results);
            config.matrix.insert((other.clone(), one.clone()), truth.mirror());
            config.matrix.insert((one.clone(), other.clone()), truth);
        }
        MatrixClaim::Idempotent { kind } => {
            config.types.entry(kind.clone()).or_default().idempotent = false;
        }
        MatrixClaim::Assigns { kind } => {
            config.types.entry(kind.clone()).or_default().assigns = false;
        }
        MatrixClaim::Undo { kind } => config.types.entry(kind.clone()).or_default().undo = None,
        MatrixClaim::Check { kind } => config.types.entry(kind.clone()).or_default().check = None,
        // Nothing that a config could say makes these right.
        MatrixClaim::SameEachTime { .. } | MatrixClaim::FailsWithoutTrace { .. } => {}
    }
}

/// What can be said of two types, as near as possible to what was.
fn truth(
    config: &Config,
    was: Option<&Resolution>,
    (one, other): (&OperationType, &OperationType),
    samples: &TrialSamples,
    results: &TrialResults,
) -> Resolution {
    let moving = moving(samples, results);
    let holds = |claim: MatrixClaim| {
        let verdict = verdict(&claim, config, samples, results, &moving);
        matches!(verdict, ClaimVerdict::Holds { .. })
    };
    let overwrites = |kind: &OperationType, other: &OperationType| {
        holds(MatrixClaim::Overwrites { kind: kind.clone(), other: other.clone() })
    };
    let any_order = || holds(MatrixClaim::AnyOrder { one: one.clone(), other: other.clone() });
    let rule = match (overwrites(one, other), overwrites(other, one)) {
        (true, true) => Rule::TakeOne,
        _ if any_order() => Rule::TakeBoth,
        (true, false) => Rule::KeepOrder,
        (false, true) => Rule::ReverseOrder,
        (false, false) => Rule::Ordered,
    };
    // Whoever wanted both to count does so still.
    let wanted_both =
        was.is_none_or(|was| was.rule == Rule::TakeBoth || was.concurrent == Concurrent::KeepBoth);
    let concurrent = match wanted_both && rule.has_order() {
        true => Concurrent::KeepBoth,
        false => Concurrent::ReplaceWins,
    };
    Resolution { rule, concurrent }
}
