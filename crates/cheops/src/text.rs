//! Text for terminals: wrapped, without control characters, in tables.

use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::look::{BOLD, styled};

/// How wide text is where no terminal says so.
const USUAL_WIDTH: usize = 80;
/// Rows that go to no terminal need not fit one: whoever reads them wants all of them.
pub(crate) const ENDLESS: usize = usize::MAX;

/// How wide text should be between rows that may be so wide.
pub(crate) fn text_width(room: usize) -> usize {
    if room == ENDLESS { USUAL_WIDTH } else { room }
}

/// A line under the header and no other: little ink, much room.
const LOOK: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Space before and after what stands in a column; between two there is one more.
const PADDING: (u16, u16) = (0, 1);

/// An empty table of the house's look, at most so wide.
pub(crate) fn table(header: &[&str], width: usize) -> Table {
    let mut table = Table::new();
    table
        .load_style(LOOK)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width).unwrap_or(u16::MAX))
        .set_header(header.iter().copied());
    for column in table.column_iter_mut() {
        column.set_padding(PADDING);
    }
    table
}

/// The lines of a table, its header set off.
pub(crate) fn table_lines(table: &Table) -> Vec<String> {
    let mut lines: Vec<String> = table.trim_fmt().lines().map(str::to_owned).collect();
    if let Some(header) = lines.first_mut() {
        *header = styled(BOLD, &header);
    }
    lines
}

/// The text in lines of at most so many columns, broken at spaces where there are any.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        let room = width.saturating_sub(columns(line) + 1);
        if line.is_empty() {
            line.push_str(word);
        } else if columns(word) <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// The text in lines of at most so many columns, the first after `first`, the others as far in.
/// Lines that the text has of its own stay apart, and keep how far in they are.
pub(crate) fn hanging(first: &str, text: &str, width: usize) -> String {
    let (indent, width) = (columns(first), text_width(width));
    let lines = text.split('\n').flat_map(|line| {
        let rest = line.trim_start_matches(' ');
        let own = line.len() - rest.len();
        let parts = wrapped(rest, width.saturating_sub(indent + own).max(20));
        parts.into_iter().map(move |part| " ".repeat(own) + &part)
    });
    let lines: Vec<String> = lines.collect();
    format!("{first}{}", lines.join(&format!("\n{}", " ".repeat(indent))))
}

/// How many columns of a terminal a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The text, cut off with `…` where it takes more columns.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut taken = 1;
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > room {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// What somebody else wrote, fit for a terminal: nothing in it moves the cursor or rings the bell.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn listed<T: ToString>(words: &[T]) -> String {
    let words: Vec<String> = words.iter().map(T::to_string).collect();
    match words.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `1 pair`, `2 pairs`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces_and_long_words_are_left_whole() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("incomprehensibilities", 7), ["incomprehensibilities"]);
        assert_eq!(wrapped("", 7), [""]);
        assert_eq!(hanging("- ", "aaaaaaaaaa bbbbbbbbbb", 22), "- aaaaaaaaaa\n  bbbbbbbbbb");
    }

    #[test]
    fn a_text_of_several_lines_is_wrapped_line_by_line() {
        let text = "it cannot be used, for 2 reasons:\na.toml:1: this is wrong\n  and that as well";
        let wrapped = [
            "error: it cannot be used, for 2",
            "       reasons:",
            "       a.toml:1: this is wrong",
            "         and that as well",
        ];
        assert_eq!(hanging("error: ", text, 34), wrapped.join("\n"));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\u{7}\nc"), "a\u{fffd}[31mb\u{fffd}\nc");
    }

    #[test]
    fn lists_and_counts_read_as_one_would_say_them() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(counted(1, "pair"), "1 pair");
        assert_eq!(counted(0, "pair"), "0 pairs");
    }
}
