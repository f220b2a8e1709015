//! Problems for terminals: the line of text, carets under what is meant, and the hint.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::problem::{Problems, ScopeProblem, and_more};

/// Longer lines are cut around the carets.
const WIDTH: usize = 100;

/// The name of the text in `--> scope:1:9`.
const ORIGIN: &str = "scope";

/// Whether to colour a rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Text only.
    Plain,
    /// With ANSI colours.
    Coloured,
}

impl Problems {
    /// All problems, each with its line and carets.
    #[must_use]
    pub fn render(&self, look: Look) -> String {
        let renderer = match look {
            Look::Plain => Renderer::plain(),
            Look::Coloured => Renderer::styled(),
        };
        let renderer = renderer.term_width(WIDTH);
        let mut blocks: Vec<String> = self
            .as_slice()
            .iter()
            .map(|problem| renderer.render(&[group(problem, self.text())]))
            .collect();
        if self.omitted() > 0 {
            blocks.push(and_more(self.omitted()));
        }
        blocks.join("\n\n")
    }
}

fn group<'a>(problem: &'a ScopeProblem, text: &'a str) -> Group<'a> {
    let mut group = Group::with_title(Level::ERROR.primary_title(&problem.message));
    if !text.is_empty() {
        group = group.element(snippet(problem, text));
    }
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.message(hint));
    }
    group
}

fn snippet<'a>(
    problem: &'a ScopeProblem,
    text: &'a str,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let span = problem.span.clamped(text);
    let primary = AnnotationKind::Primary.span(span.start..span.end).label(problem.correction());
    let related = problem.related.iter().map(|related| {
        let span = related.span.clamped(text);
        AnnotationKind::Context.span(span.start..span.end).label(&related.message)
    });
    Snippet::source(text).path(ORIGIN).annotation(primary).annotations(related)
}
