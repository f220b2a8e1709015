//! What there is to say of a program that was checked.

use serde::Serialize;
use serde_json::Value;

use super::cases::{Case, as_answer};
use super::runner::{CaseAnswer, Variation};
use crate::look::{BAD, GOOD, styled};
use crate::text::{counted, hanging, printable};

/// All that was found, for programs.
#[derive(Serialize)]
pub(super) struct LogicReport {
    ok: bool,
    source: String,
    /// Whether the program was asked at another time.
    clock_changed: bool,
    cases: Vec<CheckedCase>,
}

/// What was found of one case.
#[derive(Serialize)]
struct CheckedCase {
    /// Which, counted from 1.
    case: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// What the program answered at first.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<AnswerProblem>,
}

/// What is wrong with what a program answered.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case", tag = "problem")]
enum AnswerProblem {
    /// What it said at first cannot be used.
    NoAnswer { why: String },
    /// It said something else when the same was asked otherwise.
    TwoAnswers { asked: &'static str, answer: OtherAnswer },
    /// It is not what was expected.
    NotExpected { expected: Value },
}

/// An answer, or why it is none.
#[derive(Serialize)]
#[serde(untagged)]
enum OtherAnswer {
    Answer(Value),
    None { none: String },
}

impl LogicReport {
    pub(super) fn new(
        source: String,
        cases: &[Case],
        variations: &[Variation],
        answers: &[Vec<CaseAnswer>],
    ) -> Self {
        let checked = cases.iter().zip(answers).enumerate();
        let cases: Vec<CheckedCase> = checked
            .map(|(n, (case, answers))| checked_case(n + 1, case, variations, answers))
            .collect();
        Self {
            ok: cases.iter().all(|case| case.problems.is_empty()),
            source,
            clock_changed: variations.contains(&Variation::Clock),
            cases,
        }
    }

    pub(super) fn is_well(&self) -> bool {
        self.ok
    }

    /// For people: what is wrong, and how many cases are well.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let wrong: Vec<&CheckedCase> =
            self.cases.iter().filter(|case| !case.problems.is_empty()).collect();
        let mut lines = Vec::new();
        for case in &wrong {
            lines.extend(case.lines(width));
            lines.push(String::new());
        }
        let source = printable(&self.source);
        let count = counted(self.cases.len(), "case");
        lines.push(match wrong.len() {
            0 => format!("{source}: {}, {count}", styled(GOOD, "ok")),
            wrong => {
                format!("{source}: {count}, {}", styled(BAD, format!("{wrong} with problems")))
            }
        });
        lines
    }
}

fn checked_case(
    n: usize,
    case: &Case,
    variations: &[Variation],
    answers: &[CaseAnswer],
) -> CheckedCase {
    let told = |answer: &CaseAnswer| match answer {
        Ok(steps) => OtherAnswer::Answer(as_answer(steps)),
        Err(why) => OtherAnswer::None { none: why.clone() },
    };
    let mut problems = Vec::new();
    let first = answers.first();
    if let Some(Err(why)) = first {
        problems.push(AnswerProblem::NoAnswer { why: why.clone() });
    }
    let others = variations.iter().zip(answers).skip(1);
    // Two that are none for different reasons do not disagree.
    let differs =
        |answer: &CaseAnswer| first.is_some_and(|it| it.as_ref().ok() != answer.as_ref().ok());
    if let Some((variation, answer)) = others.into_iter().find(|(_, answer)| differs(answer)) {
        let answer = told(answer);
        problems.push(AnswerProblem::TwoAnswers { asked: variation.told(), answer });
    }
    if let (Some(expected), Some(Ok(steps))) = (&case.expect, first)
        && expected != steps
    {
        problems.push(AnswerProblem::NotExpected { expected: as_answer(expected) });
    }
    let answer = first.and_then(|answer| answer.as_ref().ok()).map(|steps| as_answer(steps));
    CheckedCase { case: n, name: case.name.clone(), answer, problems }
}

impl CheckedCase {
    fn lines(&self, width: usize) -> Vec<String> {
        let name = self.name.as_ref().map(|name| format!(", `{name}`")).unwrap_or_default();
        let title = printable(&format!("case {}{name}", self.case));
        let mut lines = vec![hanging("", &title, width)];
        let mut say = |label: &str, text: &str| {
            lines.push(hanging(&format!("  {label}: "), &printable(text), width));
        };
        let answer = self.answer.as_ref().map(Value::to_string);
        for problem in &self.problems {
            match problem {
                AnswerProblem::NoAnswer { why } => say("its answer cannot be used", why),
                AnswerProblem::TwoAnswers { asked, answer: other } => {
                    let first = answer.as_deref().unwrap_or("none");
                    let other = match other {
                        OtherAnswer::Answer(answer) => answer.to_string(),
                        OtherAnswer::None { none } => format!("none: {none}"),
                    };
                    say("two answers to one question, at first", first);
                    say(asked, &other);
                }
                AnswerProblem::NotExpected { expected } => {
                    say("expected", &expected.to_string());
                    say("it said", answer.as_deref().unwrap_or("none"));
                }
            }
        }
        lines
    }
}
