//! What a config claims, and by which trials a claim would be found false.

use std::collections::BTreeSet;
use std::fmt;

use super::{SampleRun, Trial, TrialSamples, TrialStep};
use crate::config::{Config, Resolution, Rule};
use crate::ids::OperationType;

use TrialStep::{Check, Crash, Run, Undo};

/// One thing that a config says about commands, and that may be false.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatrixClaim {
    /// Two operations of these types give the same in either order.
    AnyOrder {
        /// One of them; the other has the same name or a later one.
        one: OperationType,
        /// The other.
        other: OperationType,
    },
    /// An operation of this type leaves nothing of one of the other before it.
    Overwrites {
        /// The one that overwrites.
        kind: OperationType,
        /// The one of which nothing stays.
        other: OperationType,
    },
    /// From the same state it leads to the same state: nobody says so, and all rests on it.
    SameEachTime {
        /// The type.
        kind: OperationType,
    },
    /// Where it fails, it changes nothing: nobody says so, and it is taken for granted.
    FailsWithoutTrace {
        /// The type.
        kind: OperationType,
    },
    /// Running it twice is as good as once, also if the first time ended half-way.
    Idempotent {
        /// The type.
        kind: OperationType,
    },
    /// Run again after one that should have come first, it gives what the right order gives.
    Assigns {
        /// The type.
        kind: OperationType,
    },
    /// `Undo` takes it back, also after another that may run in any order with it.
    Undo {
        /// The type.
        kind: OperationType,
    },
    /// `Check` tells whether it happened.
    Check {
        /// The type.
        kind: OperationType,
    },
}

impl MatrixClaim {
    /// The types it is about.
    pub fn kinds(&self) -> Vec<&OperationType> {
        match self {
            Self::AnyOrder { one, other } if one == other => vec![one],
            Self::AnyOrder { one, other } => vec![one, other],
            Self::Overwrites { kind, other } if kind == other => vec![kind],
            Self::Overwrites { kind, other } => vec![kind, other],
            Self::SameEachTime { kind }
            | Self::FailsWithoutTrace { kind }
            | Self::Idempotent { kind }
            | Self::Assigns { kind }
            | Self::Undo { kind }
            | Self::Check { kind } => vec![kind],
        }
    }

    /// Whether it is said in the config, and not taken for granted of every command.
    pub fn is_said(&self) -> bool {
        !matches!(self, Self::SameEachTime { .. } | Self::FailsWithoutTrace { .. })
    }

    /// A word for it, for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::AnyOrder { .. } => "any-order",
            Self::Overwrites { .. } => "overwrites",
            Self::SameEachTime { .. } => "same-each-time",
            Self::FailsWithoutTrace { .. } => "fails-without-trace",
            Self::Idempotent { .. } => "idempotent",
            Self::Assigns { .. } => "assigns",
            Self::Undo { .. } => "undo",
            Self::Check { .. } => "check",
        }
    }
}

impl fmt::Display for MatrixClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnyOrder { one, other } if one == other => {
                write!(f, "two `{one}` may run in any order")
            }
            Self::AnyOrder { one, other } => {
                write!(f, "`{one}` and `{other}` may run in any order")
            }
            Self::Overwrites { kind, other } if kind == other => {
                write!(f, "`{kind}` overwrites a `{other}` before it")
            }
            Self::Overwrites { kind, other } => write!(f, "`{kind}` overwrites `{other}`"),
            Self::SameEachTime { kind } => {
                write!(f, "`{kind}` does the same each time, from the same state")
            }
            Self::FailsWithoutTrace { kind } => {
                write!(f, "`{kind}` changes nothing where it fails")
            }
            Self::Idempotent { kind } => write!(f, "`{kind}` twice is as good as once"),
            Self::Assigns { kind } => {
                write!(f, "`{kind}` can be run again after what should have come first")
            }
            Self::Undo { kind } => write!(f, "`Undo` takes `{kind}` back"),
            Self::Check { kind } => write!(f, "`Check` tells whether `{kind}` happened"),
        }
    }
}

/// Two trials that must agree if a claim is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// What may happen, as the config has it.
    pub left: Trial,
    /// What it must be the same as.
    pub right: Trial,
    /// In which way.
    pub expects: Expectation,
}

/// In which way two trials must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// The same state, and every operation ends the same way.
    Same,
    /// The same state, where the last step of the right one succeeds, which then must that of the
    /// left one too. Where it fails, or what comes before it fails in only one of the two, there is
    /// nothing to compare.
    SameIfDone,
    /// The same state, where the last step of the left one failed.
    SameIfFailed,
    /// The same state, where what the left one begins with succeeds; then its last step must too.
    SameIfBegun,
    /// Its last step succeeds on the left, where the operation did, and fails on the right, where the
    /// operation would change something.
    TellsApart,
}

/// Everything that a config claims about the types it names, in order: pairs first.
pub fn claims(config: &Config) -> Vec<MatrixClaim> {
    let kinds: Vec<&OperationType> = config.kinds().into_iter().collect();
    let mut claims = Vec::new();
    for (i, one) in kinds.iter().enumerate() {
        for other in &kinds[i..] {
            claims.extend(of_pair(config, one, other));
        }
    }
    for kind in kinds {
        let handling = config.handling(kind);
        let own = || OperationType::clone(kind);
        claims.push(MatrixClaim::SameEachTime { kind: own() });
        claims.push(MatrixClaim::FailsWithoutTrace { kind: own() });
        claims.extend(handling.idempotent.then(|| MatrixClaim::Idempotent { kind: own() }));
        claims.extend(handling.assigns.then(|| MatrixClaim::Assigns { kind: own() }));
        claims.extend(handling.undo.is_some().then(|| MatrixClaim::Undo { kind: own() }));
        claims.extend(handling.check.is_some().then(|| MatrixClaim::Check { kind: own() }));
    }
    claims
}

/// The entry that decides about two types, from whichever side it is given.
pub(super) fn entry(
    config: &Config,
    one: &OperationType,
    other: &OperationType,
) -> Option<Resolution> {
    let listed = config.listed(one, other).cloned();
    listed.or_else(|| config.listed(other, one).map(Resolution::mirror))
}

fn of_pair(config: &Config, one: &OperationType, other: &OperationType) -> Vec<MatrixClaim> {
    let any_order = || MatrixClaim::AnyOrder { one: one.clone(), other: other.clone() };
    let over = |kind: &OperationType, other: &OperationType| MatrixClaim::Overwrites {
        kind: kind.clone(),
        other: other.clone(),
    };
    match entry(config, one, other).map(|entry| entry.rule) {
        Some(Rule::TakeBoth) => vec![any_order()],
        Some(Rule::KeepOrder) => vec![over(one, other)],
        Some(Rule::ReverseOrder) => vec![over(other, one)],
        Some(Rule::TakeOne) if one == other => vec![over(one, other)],
        Some(Rule::TakeOne) => vec![over(one, other), over(other, one)],
        Some(Rule::Ordered | Rule::Logic(_)) => Vec::new(),
        None if config.commute(one, other) => vec![any_order()],
        // By silence: with a type that overwrites, it is taken to overwrite this one too.
        None => {
            let both = [(one, other), (other, one)];
            let distinct = if one == other { 1 } else { 2 };
            let said = |pair: &&(&OperationType, &OperationType)| config.overwrites(pair.0);
            both[..distinct].iter().filter(said).map(|(kind, other)| over(kind, other)).collect()
        }
    }
}

/// Everything to be tried: shorter trials first, so that what is slow or broken shows early.
pub fn trials(config: &Config, samples: &TrialSamples) -> Vec<Trial> {
    let kinds: BTreeSet<&OperationType> =
        samples.samples.iter().map(|sample| &sample.kind).collect();
    let kinds: Vec<_> = kinds.into_iter().collect();
    let mut wanted = BTreeSet::new();
    let mut want = |claim: &MatrixClaim| {
        let compared = comparisons(claim, config, samples);
        wanted.extend(compared.into_iter().flat_map(|it| [it.left, it.right]));
    };
    claims(config).iter().for_each(&mut want);
    // What is true instead of what is said: every pair, also of types that the matrix does not know.
    for (i, one) in kinds.iter().enumerate() {
        want(&MatrixClaim::SameEachTime { kind: OperationType::clone(one) });
        for other in &kinds[i..] {
            let (one, other) = (OperationType::clone(one), OperationType::clone(other));
            want(&MatrixClaim::Overwrites { kind: one.clone(), other: other.clone() });
            want(&MatrixClaim::Overwrites { kind: other.clone(), other: one.clone() });
            want(&MatrixClaim::AnyOrder { one, other });
        }
    }
    let mut trials: Vec<Trial> = wanted.into_iter().collect();
    trials.sort_by_key(|trial| (trial.steps.len(), trial.start));
    trials
}

/// The trials by which a claim would be found false.
pub(super) fn comparisons(
    claim: &MatrixClaim,
    config: &Config,
    samples: &TrialSamples,
) -> Vec<Comparison> {
    let mut found = Vec::new();
    for start in 0..samples.starts.len().max(1) {
        Comparing { config, samples, start, found: &mut found }.claim(claim);
    }
    found
}

struct Comparing<'a> {
    config: &'a Config,
    samples: &'a TrialSamples,
    start: usize,
    found: &'a mut Vec<Comparison>,
}

impl Comparing<'_> {
    fn claim(&mut self, claim: &MatrixClaim) {
        match claim {
            MatrixClaim::AnyOrder { one, other } => {
                for (a, b) in self.pairs(one, other) {
                    // Two of one type meet each other twice.
                    if one != other || a <= b {
                        self.same(vec![Run(a), Run(b)], vec![Run(b), Run(a)], Expectation::Same);
                    }
                }
            }
            MatrixClaim::Overwrites { kind, other } => {
                for (a, b) in self.pairs(kind, other) {
                    let (left, right) = (vec![Run(b), Run(a)], vec![Run(a)]);
                    self.same(left, right, Expectation::SameIfDone);
                }
                // A crash in the middle of it is set right by running it again.
                for a in self.of(kind).into_iter().filter(|_| kind == other) {
                    self.same(vec![Crash(a), Run(a)], vec![Run(a)], Expectation::SameIfDone);
                }
            }
            MatrixClaim::SameEachTime { kind } => {
                for a in self.of(kind) {
                    let (left, mut right) = (self.trial(vec![Run(a)]), self.trial(vec![Run(a)]));
                    right.round = 1;
                    self.found.push(Comparison { left, right, expects: Expectation::Same });
                }
            }
            MatrixClaim::FailsWithoutTrace { kind } => {
                for a in self.of(kind) {
                    self.same(vec![Run(a)], vec![], Expectation::SameIfFailed);
                }
                for (a, x) in self.with_any(kind).into_iter().filter(|(_, x)| !x.twin) {
                    self.same(vec![Run(x), Run(a)], vec![Run(x)], Expectation::SameIfFailed);
                }
            }
            MatrixClaim::Idempotent { kind } => {
                for a in self.of(kind) {
                    self.same(vec![Run(a), Run(a)], vec![Run(a)], Expectation::SameIfDone);
                    self.same(vec![Crash(a), Run(a)], vec![Run(a)], Expectation::SameIfDone);
                }
            }
            MatrixClaim::Assigns { kind } => {
                for (a, x) in self.with_any(kind) {
                    // It is run again only where nothing in between made use of it.
                    if !self.may_read(x, kind) {
                        let (left, right) = (vec![Run(a), Run(x), Run(a)], vec![Run(x), Run(a)]);
                        self.same(left, right, Expectation::SameIfDone);
                    }
                }
            }
            MatrixClaim::Undo { kind } => {
                for a in self.of(kind) {
                    self.same(vec![Run(a), Undo(a)], vec![], Expectation::SameIfBegun);
                }
                for (a, x) in self.with_any(kind) {
                    if self.config.commute(kind, self.kind(x)) {
                        let left = vec![Run(a), Run(x), Undo(a)];
                        self.same(left, vec![Run(x)], Expectation::SameIfBegun);
                    }
                }
            }
            MatrixClaim::Check { kind } => {
                for a in self.of(kind) {
                    self.same(vec![Run(a), Check(a)], vec![Check(a)], Expectation::TellsApart);
                }
            }
        }
    }

    fn same(&mut self, left: Vec<TrialStep>, right: Vec<TrialStep>, expects: Expectation) {
        let (left, right) = (self.trial(left), self.trial(right));
        self.found.push(Comparison { left, right, expects });
    }

    fn trial(&self, steps: Vec<TrialStep>) -> Trial {
        Trial { start: self.start, steps, round: 0 }
    }

    fn kind(&self, run: SampleRun) -> &OperationType {
        &self.samples.samples[run.sample].kind
    }

    fn of(&self, kind: &OperationType) -> Vec<SampleRun> {
        let all = self.samples.samples.iter().enumerate();
        let of_kind = all.filter(|(_, sample)| sample.kind == *kind);
        of_kind.map(|(sample, _)| SampleRun { sample, twin: false }).collect()
    }

    /// Every two operations of these types; the second of one sample is another operation than the first.
    fn pairs(&self, one: &OperationType, other: &OperationType) -> Vec<(SampleRun, SampleRun)> {
        let others = self.of(other);
        self.of(one)
            .into_iter()
            .flat_map(|a| others.iter().map(move |b| (a, beside(a, *b))))
            .collect()
    }

    fn with_any(&self, kind: &OperationType) -> Vec<(SampleRun, SampleRun)> {
        let all = (0..self.samples.samples.len()).map(|sample| SampleRun { sample, twin: false });
        let all: Vec<_> = all.collect();
        self.of(kind)
            .into_iter()
            .flat_map(|a| all.iter().map(move |x| (a, beside(a, *x))))
            .collect()
    }

    /// Whether what an operation does may depend on what one of that type did before it, as
    /// planning sees it.
    fn may_read(&self, later: SampleRun, earlier: &OperationType) -> bool {
        let later = self.kind(later);
        let is_blind = self.config.handling(later).assigns || self.config.overwrites(later);
        !is_blind && !self.config.commute(later, earlier)
    }
}

/// The other operation, if it is of the same sample.
fn beside(one: SampleRun, other: SampleRun) -> SampleRun {
    SampleRun { twin: one.sample == other.sample, ..other }
}
