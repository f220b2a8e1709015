//! A problem with the line it is about, as compilers show it.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use cheops_core::config::{ConfigPlace, LineColumn};

use super::document::NamedText;
use crate::text::{printable, wrapped};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gravity {
    Error,
    Warning,
}

/// The message, the place in the document if it has one, and what to do.
pub(super) fn told(
    gravity: Gravity,
    message: &str,
    help: Option<&str>,
    place: &ConfigPlace,
    document: &NamedText,
    width: usize,
) -> String {
    let level = match gravity {
        Gravity::Error => Level::ERROR,
        Gravity::Warning => Level::WARNING,
    };
    let lines = |text: &str| wrapped(&printable(text), width.saturating_sub(12)).join("\n");
    let mut group = Group::with_title(level.primary_title(lines(message)));
    if let Some(at) = place.at {
        let (start, end) = span(&document.text, at);
        let path = (!place.path.is_empty()).then(|| printable(&place.path));
        let annotation = AnnotationKind::Primary.span(start..end).label(path);
        let origin = printable(&document.name);
        group = group
            .element(Snippet::source(document.text.as_str()).path(origin).annotation(annotation));
    }
    if let Some(help) = help {
        group = group.element(Level::HELP.message(lines(help)));
    }
    Renderer::styled().term_width(width).render(&[group])
}

/// The bytes of the word, text or bracket that stands there.
fn span(text: &str, at: LineColumn) -> (usize, usize) {
    let before = usize::try_from(at.line.saturating_sub(1)).unwrap_or(usize::MAX);
    let line_start = text.split_inclusive('\n').take(before).map(str::len).sum::<usize>();
    let line = text[line_start..].lines().next().unwrap_or_default();
    let column = usize::try_from(at.column.saturating_sub(1)).unwrap_or(usize::MAX);
    let offset = line.char_indices().nth(column).map_or(line.len(), |(offset, _)| offset);
    let start = line_start + offset;
    (start, start + token(&line[offset..]))
}

/// How many bytes the token at the beginning of that text has.
fn token(text: &str) -> usize {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    if let Some(quote) = quote {
        return text[1..].find(quote).map_or(text.len(), |end| end + 2);
    }
    let end = text.find(|c: char| c.is_whitespace() || ",:{}[]".contains(c));
    match end {
        Some(0) => text.chars().next().map_or(0, char::len_utf8),
        end => end.unwrap_or(text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spanned(text: &str, line: u64, column: u64) -> &str {
        let (start, end) = span(text, LineColumn { line, column });
        &text[start..end]
    }

    #[test]
    fn the_whole_word_is_meant() {
        let text = "{\"é\": \"take-won\",\n  Result: take-one, x: [1]}\n";
        assert_eq!(spanned(text, 1, 7), "\"take-won\"");
        assert_eq!(spanned(text, 2, 3), "Result");
        assert_eq!(spanned(text, 2, 11), "take-one");
        assert_eq!(spanned(text, 1, 1), "{");
    }

    #[test]
    fn a_place_beyond_the_text_is_its_end() {
        assert_eq!(spanned("a\nb", 9, 9), "");
        assert_eq!(spanned("a\nb", 1, 9), "");
        assert_eq!(spanned("", 1, 1), "");
        assert_eq!(spanned("\"open", 1, 1), "\"open");
    }
}
