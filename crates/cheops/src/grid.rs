//! Columns of coloured cells. Unlike [`crate::text::table`] it breaks no cell: each row is one
//! line, and what does not fit is cut off at the end.

use std::fmt::Display;

use anstyle::Style;

use crate::look::{BOLD, PLAIN, styled};
use crate::text::printable;

/// Space between two columns.
const GAP: usize = 2;

/// A text and how it looks.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
    side: Side,
}

/// Where in its column a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A cell in that style.
pub(crate) fn cell(style: Style, text: impl Display) -> Cell {
    Cell { text: one_line(&format!("{text}")), style, side: Side::Left }
}

/// A cell without a colour.
pub(crate) fn plain(text: impl Display) -> Cell {
    cell(PLAIN, text)
}

/// A number, or something like one.
pub(crate) fn number(text: impl Display) -> Cell {
    Cell { side: Side::Right, ..plain(text) }
}

impl Cell {
    /// The same in another style.
    pub(crate) fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }
}

/// What somebody else wrote, on one line.
pub(crate) fn one_line(text: &str) -> String {
    printable(&text.trim_end().replace('\t', " ")).replace('\n', " ⏎ ")
}

/// The text, cut off to so many characters.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// The rows under a header, at most so wide.
pub(crate) fn grid(header: &[&str], rows: &[Vec<Cell>], width: usize) -> Vec<String> {
    let titles: Vec<Cell> = header.iter().map(|title| cell(BOLD, title)).collect();
    let all = || std::iter::once(&titles).chain(rows);
    let widths: Vec<usize> = (0..header.len())
        .map(|n| all().filter_map(|row| row.get(n)).map(|cell| cell.text.chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    all().map(|row| line(row, &widths, width)).collect()
}

fn line(row: &[Cell], widths: &[usize], width: usize) -> String {
    let mut line = String::new();
    let mut used = 0;
    for (n, (cell, column)) in row.iter().zip(widths).enumerate() {
        let gap = if n > 0 { GAP } else { 0 };
        let room = width.saturating_sub(used + gap);
        if room == 0 {
            break;
        }
        let column = (*column).min(room);
        let text = cut(&cell.text, column);
        let space = " ".repeat(column - text.chars().count());
        let is_last = n + 1 == row.len();
        line.push_str(&" ".repeat(gap));
        match cell.side {
            Side::Right => line.push_str(&format!("{space}{}", painted(cell.style, &text))),
            Side::Left if is_last => line.push_str(&painted(cell.style, &text)),
            Side::Left => line.push_str(&format!("{}{space}", painted(cell.style, &text))),
        }
        used += gap + column;
    }
    line.trim_end().to_owned()
}

fn painted(style: Style, text: &str) -> String {
    if style == PLAIN || text.is_empty() { text.to_owned() } else { styled(style, text) }
}

/// Without colours, for tests.
#[cfg(test)]
pub(crate) fn bare(lines: &[String]) -> String {
    let mut text = anstream::adapter::strip_str(&lines.join("\n")).to_string();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need_and_the_last_is_cut_off() {
        let rows = vec![
            vec![plain("paris"), number(7), plain("a\nb")],
            vec![cell(BOLD, "lyon"), number(12), plain("what goes on and on")],
        ];
        expect![[r#"
            SITE   N   WHAT
            paris   7  a ⏎ b
            lyon   12  what goes…
        "#]]
        .assert_eq(&bare(&grid(&["SITE", "N", "WHAT"], &rows, 21)));
        assert_eq!(bare(&grid(&["SITE", "N", "WHAT"], &rows, 5)), "SITE\nparis\nlyon\n");
    }
}
