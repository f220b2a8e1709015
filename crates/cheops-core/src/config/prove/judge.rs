//! From what trials gave to verdicts.

use std::collections::BTreeSet;
use std::fmt;

use super::claims::{Comparison, Expectation, MatrixClaim, claims, comparisons};
use super::{SampleRun, StepEnding, Trial, TrialResult, TrialResults, TrialSamples, TrialStep};
use crate::config::Config;
use crate::ids::OperationType;

/// A claim, and what the trials say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedClaim {
    /// What is claimed.
    pub claim: MatrixClaim,
    /// What is so.
    pub verdict: ClaimVerdict,
}

/// What the trials say of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// No trial speaks against it.
    Holds {
        /// How many comparisons could have.
        compared: usize,
    },
    /// It is not so.
    False {
        /// How many comparisons speak against it.
        against: usize,
        /// Out of how many.
        compared: usize,
        /// The first of them.
        example: Box<Counterexample>,
    },
    /// Nothing was seen that could speak against it.
    NotTried(NotTried),
}

impl ClaimVerdict {
    /// Whether the claim is false.
    pub fn is_false(&self) -> bool {
        matches!(self, Self::False { .. })
    }
}

/// Why a claim could not be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotTried {
    /// There is no operation of this type.
    NoSample(OperationType),
    /// Its samples succeed nowhere.
    AlwaysFails(OperationType),
    /// Its samples never change the state that is read.
    ChangesNothing(OperationType),
    /// It never failed.
    NeverFails(OperationType),
}

impl fmt::Display for NotTried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSample(kind) => write!(f, "there is no sample of `{kind}`"),
            Self::AlwaysFails(kind) => {
                write!(
                    f,
                    "`{kind}` fails wherever it would count; `Start` can give a state where it does not"
                )
            }
            Self::ChangesNothing(kind) => {
                write!(
                    f,
                    "no sample of `{kind}` changes what `Read` gives; are they about the target?"
                )
            }
            Self::NeverFails(kind) => write!(f, "`{kind}` never failed"),
        }
    }
}

/// Two trials that differ and must not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterexample {
    /// The trials.
    pub compared: Comparison,
    /// What the left one gave.
    pub left: TrialResult,
    /// What the right one gave.
    pub right: TrialResult,
    /// What differs.
    pub mismatch: Mismatch,
}

/// What differs between two trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// The states.
    States,
    /// The same operation succeeds in the one and fails in the other.
    Endings,
    /// The last step fails on the left.
    LastFails,
    /// `Check` says that it happened where it did not.
    SaysItHappened,
    /// `Check` says that it did not happen where it did.
    SaysItDidNot,
}

/// What the trials say of everything that the config claims.
pub fn judge(config: &Config, samples: &TrialSamples, results: &TrialResults) -> Vec<JudgedClaim> {
    let moving = moving(samples, results);
    let judged = claims(config).into_iter().map(|claim| {
        let verdict = verdict(&claim, config, samples, results, &moving);
        JudgedClaim { claim, verdict }
    });
    // That nothing failed is no news.
    let is_news = |judged: &JudgedClaim| {
        judged.claim.is_said() || !matches!(judged.verdict, ClaimVerdict::NotTried(_))
    };
    judged.filter(is_news).collect()
}

/// What the trials say of one claim, whether or not the config makes it.
pub(super) fn verdict(
    claim: &MatrixClaim,
    config: &Config,
    samples: &TrialSamples,
    results: &TrialResults,
    moving: &BTreeSet<&OperationType>,
) -> ClaimVerdict {
    let sampled = |kind: &OperationType| samples.samples.iter().any(|it| it.kind == *kind);
    let kinds = claim.kinds();
    if let Some(kind) = kinds.iter().find(|kind| !sampled(kind)) {
        return ClaimVerdict::NotTried(NotTried::NoSample(OperationType::clone(kind)));
    }
    let (mut compared, mut against, mut example) = (0, 0, None);
    for comparison in comparisons(claim, config, samples) {
        let (Some(left), Some(right)) =
            (results.get(&comparison.left), results.get(&comparison.right))
        else {
            continue;
        };
        match compare(&comparison, left, right, results) {
            Compared::Nothing => {}
            Compared::Agree => compared += 1,
            Compared::Differ(mismatch) => {
                compared += 1;
                against += 1;
                let (left, right) = (left.clone(), right.clone());
                example.get_or_insert_with(|| {
                    Box::new(Counterexample { compared: comparison, left, right, mismatch })
                });
            }
        }
    }
    if let Some(example) = example {
        return ClaimVerdict::False { against, compared, example };
    }
    let idle = kinds.iter().find(|kind| !moving.contains(*kind)).copied().cloned();
    match (claim, idle, compared) {
        (MatrixClaim::FailsWithoutTrace { kind }, _, 0) => {
            ClaimVerdict::NotTried(NotTried::NeverFails(kind.clone()))
        }
        (_, Some(kind), 1..) => ClaimVerdict::NotTried(NotTried::ChangesNothing(kind)),
        (_, _, 0) => ClaimVerdict::NotTried(NotTried::AlwaysFails(kinds[0].clone())),
        (_, None, compared) => ClaimVerdict::Holds { compared },
    }
}

/// The types of which some sample changed the state that is read, wherever it ran.
pub(super) fn moving<'s>(
    samples: &'s TrialSamples,
    results: &TrialResults,
) -> BTreeSet<&'s OperationType> {
    let mut moving = BTreeSet::new();
    for (trial, result) in results {
        let Some((TrialStep::Run(last), before)) = trial.steps.split_last() else { continue };
        let before = Trial { start: trial.start, steps: before.to_vec(), round: 0 };
        if results.get(&before).is_some_and(|before| before.state != result.state) {
            moving.extend(samples.samples.get(last.sample).map(|sample| &sample.kind));
        }
    }
    moving
}

enum Compared {
    /// There was nothing to compare.
    Nothing,
    Agree,
    Differ(Mismatch),
}

fn compare(
    comparison: &Comparison,
    left: &TrialResult,
    right: &TrialResult,
    results: &TrialResults,
) -> Compared {
    let last = |result: &TrialResult| result.endings.last().is_none_or(StepEnding::is_done);
    let states = match left.state == right.state {
        true => Compared::Agree,
        false => Compared::Differ(Mismatch::States),
    };
    let begun = left.endings.first().is_some_and(StepEnding::is_done);
    match comparison.expects {
        Expectation::Same => match states {
            Compared::Agree if !end_alike(comparison, left, right) => {
                Compared::Differ(Mismatch::Endings)
            }
            states => states,
        },
        Expectation::SameIfDone if !last(right) || !others_end_alike(comparison, left, right) => {
            Compared::Nothing
        }
        Expectation::SameIfFailed if last(left) => Compared::Nothing,
        Expectation::SameIfBegun | Expectation::TellsApart if !begun => Compared::Nothing,
        Expectation::SameIfDone | Expectation::SameIfBegun if !last(left) => {
            Compared::Differ(Mismatch::LastFails)
        }
        Expectation::SameIfDone | Expectation::SameIfFailed | Expectation::SameIfBegun => states,
        Expectation::TellsApart if !last(left) => Compared::Differ(Mismatch::SaysItDidNot),
        Expectation::TellsApart => {
            let untouched = Trial { steps: Vec::new(), ..comparison.right.clone() };
            let untouched = results.get(&untouched).unwrap_or(right);
            match last(right) && untouched.state != left.state {
                true => Compared::Differ(Mismatch::SaysItHappened),
                false => Compared::Agree,
            }
        }
    }
}

/// Whether each operation ends in one trial as it does in the other.
fn end_alike(comparison: &Comparison, left: &TrialResult, right: &TrialResult) -> bool {
    ended(&comparison.left, left) == ended(&comparison.right, right)
}

/// Whether what is in both trials, but for what comes last, ends the same way: where a change finds the
/// thing that it changes in one of them only, there is nothing to compare.
fn others_end_alike(comparison: &Comparison, left: &TrialResult, right: &TrialResult) -> bool {
    let last = comparison.left.steps.last().map(TrialStep::operation);
    let (one, other) = (ended(&comparison.left, left), ended(&comparison.right, right));
    let shared = other.iter().filter(|(operation, _)| Some(*operation) != last);
    shared.into_iter().all(|ending| one.contains(ending))
}

fn ended(trial: &Trial, result: &TrialResult) -> BTreeSet<(SampleRun, bool)> {
    let steps = trial.steps.iter().map(TrialStep::operation);
    steps.zip(result.endings.iter().map(StepEnding::is_done)).collect()
}
