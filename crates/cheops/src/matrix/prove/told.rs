//! What was found, for people and for programs.

use std::sync::Arc;

use cheops_core::config::prove::{
    ClaimVerdict, Counterexample, JudgedClaim, MatrixClaim, Mismatch, StepEnding, Trial,
    TrialResult, TrialSamples, TrialStep,
};
use cheops_core::config::{Concurrent, Config, Resolution, Rule};
use cheops_core::model::OperationType;
use serde::Serialize;
use serde_json::Value;

use super::counts;
use super::states::KeptTrialState;
use crate::failure::Failure;
use crate::look::{BAD, BOLD, DIM, GOOD, WARN, styled};
use crate::text::{columns, counted, cut, hanging, printable};

/// So many lines of a state are shown around the first difference.
const SHOWN_LINES: usize = 12;
/// So many lines before the first difference.
const LINES_BEFORE: usize = 2;
/// So much of a state is told to programs, in bytes.
const SHOWN_BYTES: usize = 64 * 1024;

/// All that was found.
pub(super) struct MatrixProof<'p> {
    pub(super) source: &'p str,
    pub(super) target: Option<&'p str>,
    pub(super) config: &'p Config,
    pub(super) samples: &'p TrialSamples,
    pub(super) starts: &'p [KeptTrialState],
    pub(super) trials: usize,
    pub(super) claims: &'p [JudgedClaim],
    /// The same config, with what is false put right.
    pub(super) better: &'p Config,
}

impl MatrixProof<'_> {
    /// Everything, in lines of at most that width.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let mut lines: Vec<String> =
            self.claims.iter().map(|judged| self.row(judged, width)).collect();
        for judged in self.claims {
            if let ClaimVerdict::False { against, compared, example } = &judged.verdict {
                lines.push(String::new());
                lines.extend(self.example(&judged.claim, (*against, *compared), example, width));
            }
        }
        lines.push(String::new());
        lines.push(self.conclusion(width));
        lines
    }

    fn row(&self, judged: &JudgedClaim, width: usize) -> String {
        let entry = self.entry(&judged.claim);
        let entry = entry.map(|entry| format!(" ({entry})")).unwrap_or_default();
        let text = format!("{}{entry}", judged.claim);
        let (style, word, text) = match &judged.verdict {
            ClaimVerdict::Holds { .. } => (GOOD, "holds      ", text),
            ClaimVerdict::False { .. } => (BAD, "false      ", text),
            ClaimVerdict::NotTried(why) => (WARN, "not tried  ", format!("{text}: {why}")),
        };
        hanging(word, &printable(&text), width).replacen(word, &styled(style, word), 1)
    }

    /// What the matrix says in so many words.
    fn entry(&self, claim: &MatrixClaim) -> Option<String> {
        let (one, other) = pair(claim)?;
        Some(match said(self.config, one, other) {
            Some(said) if one == other => format!("{one}, {one}: {said}"),
            Some(said) => format!("{one}, {other}: {said}"),
            None => format!("{one}, {other}: not listed"),
        })
    }

    /// What would be true instead.
    fn truth(&self, claim: &MatrixClaim) -> Option<String> {
        match claim {
            MatrixClaim::SameEachTime { .. } | MatrixClaim::FailsWithoutTrace { .. } => None,
            MatrixClaim::Idempotent { kind } => Some(format!("`{kind}` without `Idempotent`")),
            MatrixClaim::Assigns { kind } => Some(format!("`{kind}` without `Assigns`")),
            MatrixClaim::Undo { kind } => Some(format!("`{kind}` without `Undo`")),
            MatrixClaim::Check { kind } => Some(format!("`{kind}` without `Check`")),
            MatrixClaim::AnyOrder { .. } | MatrixClaim::Overwrites { .. } => {
                let (one, other) = pair(claim)?;
                let said = said(self.better, one, other)?;
                Some(format!("`{one}`, `{other}`: `{said}`"))
            }
        }
    }

    /// A claim that is false, with both trials side by side.
    fn example(
        &self,
        claim: &MatrixClaim,
        (against, compared): (usize, usize),
        example: &Counterexample,
        width: usize,
    ) -> Vec<String> {
        let head = hanging("false: ", &printable(&claim.to_string()), width);
        let mut lines = vec![head.replacen("false:", &styled(BAD, "false:"), 1)];
        let told = format!(
            "{} ({against} of {})",
            found(claim, example.mismatch),
            counted(compared, "comparison")
        );
        lines.push(hanging("  ", &told, width));
        if let Some(truth) = self.truth(claim) {
            lines.push(hanging("  true of the samples: ", &printable(&truth), width));
        }
        lines.push(String::new());
        lines.extend(self.side_by_side(example, width));
        lines
    }

    fn side_by_side(&self, example: &Counterexample, width: usize) -> Vec<String> {
        // Two blanks in front for a mark, and a line between.
        let half = width.saturating_sub(5) / 2;
        let (left, right) = (&example.compared.left, &example.compared.right);
        let start = match self.samples.starts.get(left.start) {
            Some(command) => printable(command),
            None => "the state as it was".to_owned(),
        };
        let mut lines = vec![styled(DIM, cut(&format!("  from: {start}"), width))];
        let steps = [self.steps(left, &example.left), self.steps(right, &example.right)];
        lines.extend(rows(&steps, half, |_, _| " "));
        let (one, other) = ("─".repeat(half), "─".repeat(half));
        lines.push(styled(DIM, format!("  {one}─┼─{other}")));
        let states = [text_lines(&example.left.state), text_lines(&example.right.state)];
        lines.extend(excerpt(&states, half));
        lines
    }

    /// What a trial did, a line each.
    fn steps(&self, trial: &Trial, result: &TrialResult) -> Vec<String> {
        let told = trial.steps.iter().zip(&result.endings).map(|(step, ending)| {
            let command = self.command(step);
            match ending {
                StepEnding::Done => command,
                StepEnding::Failed(_) => format!("{command}  (fails)"),
                StepEnding::Crashed => format!("{command}  (ended half-way)"),
            }
        });
        let told: Vec<String> = told.collect();
        if told.is_empty() { vec!["(nothing)".to_owned()] } else { told }
    }

    fn command(&self, step: &TrialStep) -> String {
        let sample = self.samples.samples.get(step.operation().sample);
        let command = sample.map(|it| printable(&it.command)).unwrap_or_default();
        match step {
            TrialStep::Run(_) | TrialStep::Crash(_) => command,
            TrialStep::Undo(_) => format!("Undo of: {command}"),
            TrialStep::Check(_) => format!("Check of: {command}"),
        }
    }

    fn conclusion(&self, width: usize) -> String {
        let count = |is: &dyn Fn(&ClaimVerdict) -> bool| {
            self.claims.iter().filter(|judged| is(&judged.verdict)).count()
        };
        let wrong = count(&|verdict| verdict.is_false());
        let untried = count(&|verdict| matches!(verdict, ClaimVerdict::NotTried(_)));
        let tried = counts(self.samples, self.starts.len(), self.trials);
        let untried = match untried {
            0 => String::new(),
            count => format!(", {} not tried", counted(count, "claim")),
        };
        let (style, word, rest) = match wrong {
            0 => (GOOD, "no claim was found false".to_owned(), String::new()),
            1 => (BAD, "1 claim is false".to_owned(), SUGGEST.to_owned()),
            count => (BAD, format!("{count} claims are false"), SUGGEST.to_owned()),
        };
        let text = format!("{}: {word}{untried} ({tried}){rest}", printable(self.source));
        hanging("", &text, width).replacen(&word, &styled(style, &word), 1)
    }

    /// The same for programs; `suggestion` is the matrix to use instead.
    pub(super) fn as_json(&self, suggestion: &Config) -> Result<ShownProof, Failure> {
        let suggestion: Value = serde_json::from_str(&suggestion.to_json())
            .map_err(|error| Failure::ours("the matrix is no JSON").because(error))?;
        let wrong = self.claims.iter().any(|judged| judged.verdict.is_false());
        Ok(ShownProof {
            ok: !wrong,
            source: self.source.to_owned(),
            target: self.target.map(str::to_owned),
            samples: self.samples.samples.len(),
            starts: self.starts.len(),
            trials: self.trials,
            claims: self.claims.iter().map(|judged| self.shown(judged)).collect(),
            suggestion: wrong.then_some(suggestion),
        })
    }

    fn shown(&self, judged: &JudgedClaim) -> ShownClaim {
        let claim = &judged.claim;
        let mut shown = ShownClaim {
            claim: claim.word(),
            types: claim.kinds().iter().map(ToString::to_string).collect(),
            entry: self.entry(claim),
            sentence: claim.to_string(),
            verdict: "holds",
            compared: 0,
            against: 0,
            why: None,
            truth: None,
            example: None,
        };
        match &judged.verdict {
            ClaimVerdict::Holds { compared } => shown.compared = *compared,
            ClaimVerdict::NotTried(why) => {
                shown.verdict = "not-tried";
                shown.why = Some(why.to_string());
            }
            ClaimVerdict::False { against, compared, example } => {
                (shown.verdict, shown.compared, shown.against) = ("false", *compared, *against);
                shown.why = Some(found(claim, example.mismatch).to_owned());
                shown.truth = self.truth(claim);
                let (left, right) = (&example.compared.left, &example.compared.right);
                shown.example = Some(ShownExample {
                    from: self.samples.starts.get(left.start).cloned(),
                    left: self.shown_trial(left, &example.left),
                    right: self.shown_trial(right, &example.right),
                });
            }
        }
        shown
    }

    fn shown_trial(&self, trial: &Trial, result: &TrialResult) -> ShownTrial {
        let step = |(step, ending): (&TrialStep, &StepEnding)| ShownStep {
            command: self.command(step),
            ended: match ending {
                StepEnding::Done => "done",
                StepEnding::Failed(_) => "failed",
                StepEnding::Crashed => "crashed",
            },
            printed: match ending {
                StepEnding::Failed(printed) => Some(printed.clone()),
                StepEnding::Done | StepEnding::Crashed => None,
            },
        };
        let state = &result.state[..result.state.len().min(SHOWN_BYTES)];
        ShownTrial {
            steps: trial.steps.iter().zip(&result.endings).map(step).collect(),
            state: String::from_utf8_lossy(state).into_owned(),
            state_bytes: result.state.len(),
        }
    }
}

const SUGGEST: &str = "; `--suggest` prints a matrix that is true of the samples";

/// What is said of two types, from whichever side.
fn said(config: &Config, one: &OperationType, other: &OperationType) -> Option<String> {
    let listed = config.listed(one, other).cloned();
    let entry = listed.or_else(|| config.listed(other, one).map(Resolution::mirror))?;
    Some(match entry {
        Resolution { rule, concurrent: Concurrent::KeepBoth } if rule != Rule::TakeBoth => {
            format!("{rule}, keep-both")
        }
        Resolution { rule, .. } => rule.to_string(),
    })
}

/// The two types that a claim of the matrix is about.
fn pair(claim: &MatrixClaim) -> Option<(&OperationType, &OperationType)> {
    match claim {
        MatrixClaim::AnyOrder { one, other } => Some((one, other)),
        MatrixClaim::Overwrites { kind, other } => Some((kind, other)),
        _ => None,
    }
}

/// What is so instead.
fn found(claim: &MatrixClaim, mismatch: Mismatch) -> &'static str {
    match (claim, mismatch) {
        (MatrixClaim::AnyOrder { .. }, Mismatch::States) => "the order matters",
        (_, Mismatch::Endings) => "which one fails depends on the order",
        (MatrixClaim::Overwrites { .. }, Mismatch::States) => "a trace stays",
        (MatrixClaim::Overwrites { .. }, _) => "it fails after the other",
        (MatrixClaim::SameEachTime { .. }, _) => "it gives something else each time",
        (MatrixClaim::FailsWithoutTrace { .. }, _) => "it failed and left a trace",
        (MatrixClaim::Idempotent { .. }, Mismatch::States) => "a second time changes something",
        (MatrixClaim::Idempotent { .. }, _) => "the second time fails, though it happened",
        (MatrixClaim::Assigns { .. }, _) => "what it leaves depends on what was there",
        (MatrixClaim::Undo { .. }, Mismatch::States) => "a trace stays",
        (MatrixClaim::Undo { .. }, _) => "`Undo` fails",
        (_, Mismatch::SaysItDidNot) => "it says no where it happened",
        (_, _) => "it says yes where it did not happen",
    }
}

/// A state in lines. What is no text is shown as well as it can be.
fn text_lines(state: &Arc<[u8]>) -> Vec<String> {
    let text = String::from_utf8_lossy(state);
    let mut lines: Vec<String> = text.lines().map(printable).collect();
    if lines.is_empty() {
        lines.push("(empty)".to_owned());
    } else if !text.ends_with('\n') {
        lines.push("(no line end)".to_owned());
    }
    lines
}

/// Both states from shortly before the first line that differs.
fn excerpt(states: &[Vec<String>; 2], half: usize) -> Vec<String> {
    let [left, right] = states;
    let same = left.iter().zip(right).take_while(|(one, other)| one == other).count();
    let from = same.saturating_sub(LINES_BEFORE);
    let shown = |lines: &[String]| -> Vec<String> {
        lines.iter().skip(from).take(SHOWN_LINES).cloned().collect()
    };
    let mut lines = Vec::new();
    if from > 0 {
        lines.push(styled(DIM, format!("  … {} the same", counted(from, "line"))));
    }
    let parts = [shown(left), shown(right)];
    lines.extend(rows(&parts, half, |one, other| if one == other { " " } else { "≠" }));
    let longest = left.len().max(right.len());
    if longest > from + SHOWN_LINES {
        let more = longest - from - SHOWN_LINES;
        lines.push(styled(DIM, format!("  … {} more", counted(more, "line"))));
    }
    lines
}

/// Lines of two texts beside each other, with a mark in front.
fn rows(
    sides: &[Vec<String>; 2],
    half: usize,
    mark: impl Fn(Option<&String>, Option<&String>) -> &'static str,
) -> Vec<String> {
    let [left, right] = sides;
    let row = |n: usize| {
        let (one, other) = (left.get(n), right.get(n));
        let cell = |line: Option<&String>| cut(line.map_or("", String::as_str), half);
        let (first, second) = (cell(one), cell(other));
        let gap = " ".repeat(half.saturating_sub(columns(&first)));
        let mark = mark(one, other);
        let told = format!("{mark} {first}{gap} │ {second}");
        if mark == " " { told.trim_end().to_owned() } else { styled(BOLD, told.trim_end()) }
    };
    (0..left.len().max(right.len())).map(row).collect()
}

/// What was found, for programs.
#[derive(Serialize)]
pub(super) struct ShownProof {
    ok: bool,
    source: String,
    target: Option<String>,
    samples: usize,
    starts: usize,
    trials: usize,
    claims: Vec<ShownClaim>,
    /// A matrix of which nothing is false, where something is.
    suggestion: Option<Value>,
}

#[derive(Serialize)]
struct ShownClaim {
    claim: &'static str,
    types: Vec<String>,
    /// As the matrix says it, if it is about a pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    sentence: String,
    verdict: &'static str,
    compared: usize,
    against: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// What would be true.
    #[serde(skip_serializing_if = "Option::is_none")]
    truth: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<ShownExample>,
}

#[derive(Serialize)]
struct ShownExample {
    /// The command that made the state before both; if there is none, it is as it was.
    from: Option<String>,
    left: ShownTrial,
    right: ShownTrial,
}

#[derive(Serialize)]
struct ShownTrial {
    steps: Vec<ShownStep>,
    state: String,
    state_bytes: usize,
}

#[derive(Serialize)]
struct ShownStep {
    command: String,
    ended: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    printed: Option<String>,
}
