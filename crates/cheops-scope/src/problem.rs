//! What is wrong with a scope: as data, and as one line of text each.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::span::{SourcePosition, Span};

/// How many problems of one scope are reported; the rest are only counted.
pub const MAX_PROBLEMS: usize = 20;

/// How much of a user's text is repeated in a message.
const MAX_SHOWN_CHARS: usize = 40;

/// The kind of a problem, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Code {
    /// The text is longer than a scope may be.
    TooLong,
    /// There is no binding at all.
    Empty,
    /// Something else should stand here.
    Unexpected,
    /// Not a name, by its characters or its length.
    BadName,
    /// A bracket that is opened and never closed.
    Unclosed,
    /// A bracket that is closed and was never opened.
    Unopened,
    /// Not a round-trip time.
    BadDuration,
    /// A function that does not exist.
    UnknownFunction,
    /// An option that does not exist.
    UnknownOption,
    /// An option with a value it cannot have.
    BadOptionValue,
    /// An option given twice.
    RepeatedOption,
    /// A service bound twice.
    RepeatedService,
    /// A site twice in one `&` or `%` list.
    RepeatedSite,
    /// More nested parentheses than are read.
    TooDeep,
    /// A service nobody registered.
    UnknownService,
    /// A site nobody registered.
    UnknownSite,
    /// `around` over more pairs of sites than are compared.
    TooMuch,
}

/// One thing that is wrong, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeProblem {
    /// Its kind, for programs.
    pub code: Code,
    /// What is wrong, for people.
    pub message: String,
    /// Where it begins.
    #[serde(flatten)]
    pub position: SourcePosition,
    /// Which bytes of the text it is about.
    pub span: Span,
    /// What stands there, if anything does; shortened if long, control characters escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// What could stand there instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<String>,
    /// Known words close to what was found, the closest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub did_you_mean: Vec<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Other places that have to do with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
}

/// Another place that has to do with a [`ScopeProblem`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Related {
    /// What is there.
    pub message: String,
    /// Where it begins.
    #[serde(flatten)]
    pub position: SourcePosition,
    /// Which bytes of the text.
    pub span: Span,
}

impl ScopeProblem {
    pub(crate) fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            position: SourcePosition::default(),
            span,
            found: None,
            expected: Vec::new(),
            did_you_mean: Vec::new(),
            hint: None,
            related: Vec::new(),
        }
    }

    pub(crate) fn found(mut self, found: &str) -> Self {
        self.found = Some(shown(found));
        self
    }

    pub(crate) fn expected(mut self, expected: &[&str]) -> Self {
        self.expected = expected.iter().map(|&one| one.to_owned()).collect();
        self
    }

    pub(crate) fn did_you_mean(mut self, words: Vec<String>) -> Self {
        self.did_you_mean = words;
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn related(mut self, span: Span, message: impl Into<String>) -> Self {
        self.related.push(Related {
            message: message.into(),
            position: SourcePosition::default(),
            span,
        });
        self
    }

    /// Positions are worked out once, at the end: only reported problems need them.
    fn locate(&mut self, text: &str) {
        self.position = SourcePosition::of(text, self.span.start);
        for related in &mut self.related {
            related.position = SourcePosition::of(text, related.span.start);
        }
    }

    /// What belongs beside the carets: the likely correction, else what should stand there.
    pub(crate) fn correction(&self) -> Option<String> {
        if let Some(words) = listed(&self.did_you_mean, true) {
            return Some(format!("did you mean {words}?"));
        }
        listed(&self.expected, false).map(|words| format!("expected {words}"))
    }
}

impl fmt::Display for ScopeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SourcePosition { line, column } = self.position;
        write!(f, "line {line}, column {column}: {}", self.message)?;
        if let Some(correction) = self.correction() {
            write!(f, ", {correction}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// `a`, `b` or `c`.
fn listed(words: &[String], quoted: bool) -> Option<String> {
    let quote = |word: &String| match quoted {
        true => format!("`{word}`"),
        false => word.clone(),
    };
    let (last, rest) = words.split_last()?;
    if rest.is_empty() {
        return Some(quote(last));
    }
    let rest: Vec<String> = rest.iter().map(quote).collect();
    Some(format!("{} or {}", rest.join(", "), quote(last)))
}

/// All that is wrong with one scope, in the order of the text.
///
/// As JSON: `{"problems": […], "omitted": 0}`. The text itself is not part of that: whoever sent
/// the scope has it, and puts it back with [`Problems::with_text`] to render.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problems {
    problems: Vec<ScopeProblem>,
    /// How many more there are, beyond [`MAX_PROBLEMS`].
    #[serde(default)]
    omitted: usize,
    #[serde(skip)]
    text: String,
}

impl Problems {
    /// The same problems, to be rendered with this text.
    #[must_use]
    pub fn with_text(mut self, text: &str) -> Self {
        text.clone_into(&mut self.text);
        self
    }

    /// The same for whoever has to name a set of sites: only `&` makes one, so no other way to join
    /// them is spoken of.
    #[must_use]
    pub fn of_a_set(mut self) -> Self {
        let makes_a_set =
            |words: &String| !["%", ";", "around"].iter().any(|it| words.contains(it));
        for problem in &mut self.problems {
            problem.expected.retain(makes_a_set);
            problem.hint = problem.hint.take().filter(makes_a_set);
        }
        self
    }

    /// The problems reported, at most [`MAX_PROBLEMS`].
    #[must_use]
    pub fn as_slice(&self) -> &[ScopeProblem] {
        &self.problems
    }

    /// How many more there are.
    #[must_use]
    pub const fn omitted(&self) -> usize {
        self.omitted
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The one problem of a text too long to keep: reported without the text.
    pub(crate) fn of_too_long(problem: ScopeProblem) -> Self {
        let mut findings = Findings::default();
        findings.add(problem);
        findings.into_problems("")
    }
}

/// One problem a line.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        match self.omitted {
            0 => Ok(()),
            more => write!(f, "\n{}", and_more(more)),
        }
    }
}

impl std::error::Error for Problems {}

/// The line that stands for the problems left out.
pub(crate) fn and_more(omitted: usize) -> String {
    let plural = if omitted == 1 { "" } else { "s" };
    format!("and {omitted} more problem{plural}")
}

/// Problems while they are being found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    problems: Vec<ScopeProblem>,
    omitted: usize,
}

impl Findings {
    pub(crate) fn add(&mut self, problem: ScopeProblem) {
        if self.has_room() {
            self.problems.push(problem);
        } else {
            self.omitted += 1;
        }
    }

    /// Whether one more would be reported; if not, don't work out its hints.
    pub(crate) fn has_room(&self) -> bool {
        self.problems.len() < MAX_PROBLEMS
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    pub(crate) fn into_problems(mut self, text: &str) -> Problems {
        for problem in &mut self.problems {
            problem.locate(text);
        }
        self.problems.sort_by_key(|problem| problem.span);
        Problems { problems: self.problems, omitted: self.omitted, text: text.to_owned() }
    }
}

/// A user's text, fit for a message: short, and without control characters.
pub(crate) fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let mut shown: String =
        chars.by_ref().take(MAX_SHOWN_CHARS).flat_map(char::escape_debug).collect();
    // `escape_debug` is meant for string literals; here quotes are just characters.
    for (escaped, plain) in [("\\\"", "\""), ("\\'", "'")] {
        shown = shown.replace(escaped, plain);
    }
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}
