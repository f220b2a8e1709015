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

/// The text in lines of at most so many columns, broken at spaces where there are any, else within words.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut parts = broken(word, width).into_iter();
        let (Some(line), Some(first)) = (lines.last_mut(), parts.next()) else { break };
        let room = width.saturating_sub(columns(line) + 1);
        if line.is_empty() {
            line.push_str(&first);
        } else if columns(&first) <= room {
            line.push(' ');
            line.push_str(&first);
        } else {
            lines.push(first);
        }
        lines.extend(parts);
    }
    lines
}

/// A word in pieces of at most so many columns: what stands above a letter stays with it.
fn broken(word: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut taken = 0;
    for c in word.chars() {
        let wide = c.width().unwrap_or(0);
        if taken + wide > width && taken > 0 {
            pieces.push(String::new());
            taken = 0;
        }
        taken += wide;
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

/// A command to paste, and what it does, within so many columns. Where it has to be broken the shell is told
/// that it goes on; its words stay whole.
pub(crate) fn pasted(command: &str, does: &str, width: usize) -> Vec<String> {
    const INDENT: &str = "  ";
    let mut lines = vec![INDENT.to_owned()];
    for word in shell_words(command) {
        let Some(line) = lines.last_mut() else { break };
        let is_first = line.trim().is_empty();
        // A blank, and the sign that it goes on.
        if is_first || columns(line) + columns(word) + 3 <= width {
            line.push_str(if is_first { "" } else { " " });
            line.push_str(word);
        } else {
            line.push_str(" \\");
            lines.push(format!("{INDENT}    {word}"));
        }
    }
    if does.is_empty() {
        return lines;
    }
    match lines.as_mut_slice() {
        [only] if columns(only) + columns(does) + 6 <= width => {
            only.push_str(&format!("    # {does}"));
        }
        _ => {
            let told = wrapped(does, width.saturating_sub(6));
            lines.extend(told.into_iter().map(|line| format!("    # {line}")));
        }
    }
    lines
}

/// The words of a command line, quoted as they are.
fn shell_words(command: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let is_between = |c: char| {
        is_quoted ^= c == '\'';
        c == ' ' && !is_quoted
    };
    command.split(is_between).collect()
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

/// What somebody else wrote, fit for a terminal: nothing in it moves the cursor, rings the bell, or shows
/// letters in another order than they stand in. What would is shown by its number.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        match c {
            '\t' => shown.push_str("    "),
            '\n' => shown.push(c),
            c if is_unseen(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Whether a terminal does something with it other than to show it.
pub(crate) fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// All that is about to be printed, made fit for a terminal but for the colours that are our own. What
/// others wrote went through [`printable`] before; this is for what somebody forgot.
pub(crate) fn guarded(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        let (before, from) = rest.split_at(at);
        shown.push_str(&printable(before));
        let end = colour(from).unwrap_or(0);
        let (ours, after) = from.split_at(end);
        shown.push_str(ours);
        match after.strip_prefix('\u{1b}').filter(|_| end == 0) {
            Some(after) => {
                shown.extend('\u{1b}'.escape_unicode());
                rest = after;
            }
            None => rest = after,
        }
    }
    shown.push_str(&printable(rest));
    shown
}

/// How long the colour is with which the text begins, if it does.
fn colour(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some(end + 3)
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
    fn lines_are_broken_at_spaces_and_within_words_that_are_longer_than_a_line() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a abcdefghij b", 7), ["a", "abcdefg", "hij b"]);
        assert_eq!(wrapped("東京都庁舎", 5), ["東京", "都庁", "舎"]);
        assert_eq!(wrapped("e\u{301}e\u{301}e\u{301}", 2), ["e\u{301}e\u{301}", "e\u{301}"]);
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
        assert_eq!(printable("a\u{1b}[31mb\u{7}\nc"), r"a\u{1b}[31mb\u{7}".to_owned() + "\nc");
        assert_eq!(printable("a\tb\r\nc\rd"), "a    b\nc\\u{d}d");
        assert_eq!(printable("\u{9b}31m"), r"\u{9b}31m");
    }

    #[test]
    fn what_turns_the_order_of_letters_round_or_hides_is_shown_by_its_number() {
        assert_eq!(printable("a\u{202e}gnp.exe"), r"a\u{202e}gnp.exe");
        assert_eq!(
            printable("\u{2066}x\u{2069}\u{200b}\u{feff}"),
            r"\u{2066}x\u{2069}\u{200b}\u{feff}"
        );
        let family = "👨\u{200d}👩\u{200d}👧 שלום";
        assert_eq!(
            printable(family),
            family,
            "letters and signs of any script are left as they are"
        );
    }

    #[test]
    fn of_what_is_about_to_be_printed_only_colours_are_left_as_they_are() {
        let ours = styled(BOLD, "x");
        assert_eq!(guarded(&ours), ours);
        let evil = format!("{ours}\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}\u{1b}");
        let shown = r"\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}\u{1b}";
        assert_eq!(guarded(&evil), format!("{ours}{shown}"));
    }

    #[test]
    fn a_command_to_paste_is_broken_where_the_shell_is_told_so() {
        let command = "cheops retry 'my counter' paris-1.2 --site lyon";
        assert_eq!(pasted(command, "", 80), [format!("  {command}")]);
        assert_eq!(pasted(command, "again", 80), [format!("  {command}    # again")]);
        let lines = [
            "  cheops retry 'my counter' \\",
            "      paris-1.2 --site lyon",
            "    # once more there",
        ];
        assert_eq!(pasted(command, "once more there", 34), lines);
        assert!(pasted(command, "once more there", 22).iter().all(|line| columns(line) <= 22));
    }

    #[test]
    fn lists_and_counts_read_as_one_would_say_them() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(counted(1, "pair"), "1 pair");
        assert_eq!(counted(0, "pair"), "0 pairs");
    }
}
