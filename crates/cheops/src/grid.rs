//! Columns of coloured cells. Unlike [`crate::text::table`] it breaks no cell: each row is one
//! line, or two where the terminal is too narrow, and what does not fit even so is cut off at the end.

use std::fmt::Display;

use anstyle::Style;

use crate::look::{BOLD, PLAIN, styled};
use crate::text::{columns, cut, hanging, printable};

/// Space between two columns.
const GAP: usize = 2;
/// How far in what stands below its row begins.
const INDENT: usize = 2;
/// With less room than this, the last column is better off on a line of its own.
const LEAST_FOR_LAST: usize = 24;

/// What to do with rows that are too wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Narrow {
    /// The first column has a line of its own, whole, since it is what people copy; the others are
    /// below it.
    FirstApart,
    /// The last column is below the others, where little room is left for it.
    LastApart,
}

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

/// The rows under a header, at most so wide.
pub(crate) fn grid(
    header: &[&str],
    rows: &[Vec<Cell>],
    width: usize,
    narrow: Narrow,
) -> Vec<String> {
    let titles: Vec<Cell> = header.iter().map(|title| cell(BOLD, title)).collect();
    let all = || std::iter::once(&titles).chain(rows);
    let widths: Vec<usize> = (0..header.len())
        .map(|n| all().filter_map(|row| row.get(n)).map(|cell| columns(&cell.text)).max())
        .map(Option::unwrap_or_default)
        .collect();
    let before_last = taken(widths.split_last().map_or(&[], |(_, before)| before));
    let fits = taken(&widths) <= width;
    match narrow {
        _ if fits => all().map(|row| line(row, &widths, width)).collect(),
        Narrow::FirstApart => all().flat_map(|row| below_first(row, &widths, width)).collect(),
        Narrow::LastApart if before_last + GAP + LEAST_FOR_LAST <= width => {
            all().map(|row| line(row, &widths, width)).collect()
        }
        Narrow::LastApart => all().flat_map(|row| above_last(row, &widths, width)).collect(),
    }
}

/// How wide columns are together.
fn taken(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// The first cell, and the others below it; the last of them wrapped, if it has to be.
fn below_first(row: &[Cell], widths: &[usize], width: usize) -> Vec<String> {
    let (Some((first, rest)), Some((_, widths))) = (row.split_first(), widths.split_first()) else {
        return Vec::new();
    };
    let mut lines = vec![painted(first.style, &cut(&first.text, width))];
    let room = width.saturating_sub(INDENT);
    let indent = " ".repeat(INDENT);
    if taken(widths) <= room {
        lines.push(format!("{indent}{}", line(rest, widths, room)));
    } else if let Some((last, middle)) = rest.split_last() {
        lines.push(format!("{indent}{}", line(middle, widths, room)));
        lines.extend(wrapped_below(last, width));
    }
    lines.retain(|line| !line.trim().is_empty());
    lines
}

/// All cells but the last, and that one below them.
fn above_last(row: &[Cell], widths: &[usize], width: usize) -> Vec<String> {
    let Some((last, before)) = row.split_last() else { return Vec::new() };
    let mut lines = vec![line(before, widths, width)];
    if !last.text.is_empty() {
        let text = cut(&last.text, width.saturating_sub(2 * INDENT));
        lines.push(format!("{}{}", " ".repeat(2 * INDENT), painted(last.style, &text)));
    }
    lines
}

fn wrapped_below(cell: &Cell, width: usize) -> Vec<String> {
    if cell.text.is_empty() {
        return Vec::new();
    }
    let text = hanging(&" ".repeat(INDENT), &cell.text, width);
    text.lines().map(|line| painted(cell.style, line)).collect()
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
        let space = " ".repeat(column.saturating_sub(columns(&text)));
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
            vec![cell(BOLD, "lyon"), number(12), plain("what goes on and on, and then on")],
        ];
        expect![[r#"
            SITE   N   WHAT
            paris   7  a ⏎ b
            lyon   12  what goes on and on, and the…
        "#]]
        .assert_eq(&bare(&grid(&["SITE", "N", "WHAT"], &rows, 40, Narrow::LastApart)));
    }

    #[test]
    fn where_there_is_no_room_a_row_takes_two_lines_and_wide_characters_take_two_columns() {
        let rows = vec![
            vec![plain("東京のサイト"), number(7), plain("一二三")],
            vec![plain("a-name-that-is-long"), number(12), plain("one, two, three")],
        ];
        let header = ["SITE", "N", "WHAT"];
        expect![[r#"
            SITE                 N   WHAT
            東京のサイト          7  一二三
            a-name-that-is-long  12  one, two, three
        "#]]
        .assert_eq(&bare(&grid(&header, &rows, 40, Narrow::FirstApart)));
        expect![[r#"
            SITE
              N   WHAT
            東京のサイト
               7  一二三
            a-name-that-is-long
              12  one, two, three
        "#]]
        .assert_eq(&bare(&grid(&header, &rows, 24, Narrow::FirstApart)));
        expect![[r#"
            SITE                 N
                WHAT
            東京のサイト          7
                一二三
            a-name-that-is-long  12
                one, two, three
        "#]]
        .assert_eq(&bare(&grid(&header, &rows, 24, Narrow::LastApart)));
        expect![[r#"
            SITE
              N
              WHAT
            東京のサイト
               7
              一二三
            a-name-that…
              12
              one, two, three
        "#]]
        .assert_eq(&bare(&grid(&header, &rows, 12, Narrow::FirstApart)));
    }
}
