//! A history as text: one row per operation, oldest first, with lines from each to those made on
//! it.
//!
//! Going down, a lane is a line on its way to an operation further below. An operation takes in
//! all lanes that lead to it, and sends out one per operation made on it.

use std::collections::BTreeMap;

/// One line of the drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GraphRow {
    /// The lines, and the mark of the operation if there is one.
    pub(super) lines: String,
    /// The operation that stands in this row.
    pub(super) operation: Option<usize>,
}

/// What stands for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// It is in the list.
    Counts,
    /// It is not.
    LeftOut,
}

impl Mark {
    fn letter(self) -> char {
        match self {
            Self::Counts => '●',
            Self::LeftOut => '○',
        }
    }
}

/// An operation to draw.
pub(super) struct GraphNode<'a> {
    pub(super) id: &'a str,
    pub(super) parents: Vec<&'a str>,
    pub(super) mark: Mark,
}

/// Draws operations that come in an order in which each follows its parents. A parent that is not
/// among them is taken for forgotten.
pub(super) fn drawn(nodes: &[GraphNode<'_>]) -> Vec<GraphRow> {
    let places: BTreeMap<&str, usize> =
        nodes.iter().enumerate().map(|(n, node)| (node.id, n)).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (n, node) in nodes.iter().enumerate() {
        for parent in node.parents.iter().filter_map(|parent| places.get(parent)) {
            if *parent < n && !children[*parent].contains(&n) {
                children[*parent].push(n);
            }
        }
    }
    let mut canvas = Canvas::default();
    for (n, node) in nodes.iter().enumerate() {
        canvas.draw(n, node.mark, &children[n]);
    }
    canvas.rows
}

#[derive(Default)]
struct Canvas {
    /// Where each lane leads to; none where there is a gap.
    lanes: Vec<Option<usize>>,
    /// Where the last operation stands, if nothing was made on it: whatever came right below it
    /// would look as if it were.
    ended: Option<usize>,
    rows: Vec<GraphRow>,
}

impl Canvas {
    fn draw(&mut self, n: usize, mark: Mark, children: &[usize]) {
        let arriving: Vec<usize> = self.leading_to(n);
        let column = arriving.first().copied().unwrap_or_else(|| self.root());
        if arriving.len() > 1 {
            self.connect(column, &arriving[1..], ['╯', '┴']);
            arriving.iter().for_each(|lane| self.lanes[*lane] = None);
        }
        self.lanes[column] = None;
        let mut letters = self.letters();
        put(&mut letters, column, mark.letter());
        self.push(&letters, Some(n));
        let mut leaving = Vec::new();
        for (nth, child) in children.iter().enumerate() {
            let lane = if nth == 0 { column } else { self.free(column + 1) };
            self.lanes[lane] = Some(*child);
            leaving.push(lane);
        }
        if leaving.len() > 1 {
            self.connect(column, &leaving[1..], ['╮', '┬']);
        }
        self.ended = leaving.is_empty().then_some(column);
        while self.lanes.last() == Some(&None) {
            self.lanes.pop();
        }
    }

    fn leading_to(&self, n: usize) -> Vec<usize> {
        let lanes = self.lanes.iter().enumerate();
        lanes.filter(|(_, to)| **to == Some(n)).map(|(lane, _)| lane).collect()
    }

    /// A lane for an operation that no line leads to.
    fn root(&mut self) -> usize {
        let gap = self.free(0);
        if self.ended == Some(gap) { self.free(gap + 1) } else { gap }
    }

    /// The first gap from there on.
    fn free(&mut self, from: usize) -> usize {
        let gap = (from..self.lanes.len()).find(|lane| self.lanes[*lane].is_none());
        gap.unwrap_or_else(|| {
            self.lanes.resize(self.lanes.len().max(from) + 1, None);
            self.lanes.len() - 1
        })
    }

    /// A row in which the others, all right of the column, meet it: the last with the first of the
    /// two letters, those on the way with the second.
    fn connect(&mut self, column: usize, others: &[usize], [last, between]: [char; 2]) {
        let mut letters = self.letters();
        let Some(end) = others.iter().max().copied() else { return };
        for lane in column..=end {
            let is_line = self.lanes[lane].is_some();
            let letter = match lane {
                _ if lane == column => '├',
                _ if lane == end => last,
                _ if others.contains(&lane) => between,
                _ if is_line => '┼',
                _ => '─',
            };
            put(&mut letters, lane, letter);
            if lane < end {
                let at = lane * 2 + 1;
                letters.resize(letters.len().max(at + 1), ' ');
                letters[at] = '─';
            }
        }
        self.push(&letters, None);
    }

    fn letters(&self) -> Vec<char> {
        let lanes = self.lanes.iter();
        lanes.flat_map(|lane| [if lane.is_some() { '│' } else { ' ' }, ' ']).collect()
    }

    fn push(&mut self, letters: &[char], operation: Option<usize>) {
        let lines: String = letters.iter().collect();
        self.rows.push(GraphRow { lines: lines.trim_end().to_owned(), operation });
    }
}

fn put(letters: &mut Vec<char>, lane: usize, letter: char) {
    let at = lane * 2;
    if letters.len() <= at {
        letters.resize(at + 1, ' ');
    }
    letters[at] = letter;
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    /// Operations as `id:parent,parent`, a `-` before those left out.
    fn check(history: &str, want: &Expect) {
        let nodes: Vec<GraphNode<'_>> = history
            .split(' ')
            .map(|text| {
                let mark = if text.starts_with('-') { Mark::LeftOut } else { Mark::Counts };
                let (id, parents) = text.trim_start_matches('-').split_once(':').unwrap();
                let parents = parents.split(',').filter(|parent| !parent.is_empty()).collect();
                GraphNode { id, parents, mark }
            })
            .collect();
        let lines: Vec<String> = drawn(&nodes)
            .into_iter()
            .map(|row| match row.operation {
                Some(n) => format!("{} {}", row.lines, nodes[n].id),
                None => row.lines,
            })
            .collect();
        want.assert_eq(&(lines.join("\n") + "\n"));
    }

    #[test]
    fn one_after_the_other_is_one_lane() {
        check(
            "a: b:a -c:b",
            &expect![[r#"
            ● a
            ● b
            ○ c
        "#]],
        );
    }

    #[test]
    fn three_at_once_meet_again() {
        check(
            "a: b:a c:a -d:a e:b,c,d",
            &expect![[r#"
            ● a
            ├─┬─╮
            ● │ │ b
            │ ● │ c
            │ │ ○ d
            ├─┴─╯
            ● e
        "#]],
        );
    }

    #[test]
    fn lines_that_cross_are_drawn_across() {
        check(
            "a: b: c:a d:b e:a,b,c f:d,e g:c",
            &expect![[r#"
            ● a
            ├─╮
            │ │ ● b
            │ │ ├─╮
            ● │ │ │ c
            ├─┼─┼─┼─╮
            │ │ ● │ │ d
            ├─┴─┼─╯ │
            ●   │   │ e
            ├───╯   │
            ●       │ f
                    ● g
        "#]],
        );
    }

    #[test]
    fn what_was_made_on_forgotten_history_begins_anew() {
        check(
            "b:a c:b d:a",
            &expect![[r#"
                ● b
                ● c
                  ● d
            "#]],
        );
    }

    proptest! {
        #[test]
        fn every_history_can_be_drawn_and_each_operation_stands_in_one_row(
            parents in prop::collection::vec(prop::collection::vec(0_usize..30, 0..4), 0..30),
        ) {
            let ids: Vec<String> = (0..parents.len()).map(|n| n.to_string()).collect();
            let nodes: Vec<GraphNode<'_>> = parents
                .iter()
                .enumerate()
                .map(|(n, parents)| GraphNode {
                    id: &ids[n],
                    parents: parents.iter().filter(|p| **p < n).map(|p| ids[*p].as_str()).collect(),
                    mark: Mark::Counts,
                })
                .collect();
            let rows = drawn(&nodes);
            let drawn: Vec<usize> = rows.iter().filter_map(|row| row.operation).collect();
            prop_assert_eq!(drawn, (0..nodes.len()).collect::<Vec<_>>());
            for row in &rows {
                prop_assert_eq!(row.lines.contains('●'), row.operation.is_some());
            }
            let column = |row: &GraphRow| row.lines.chars().position(|c| c == '●');
            for pair in rows.windows(2) {
                if let (Some(above), Some(below)) = (pair[0].operation, pair[1].operation)
                    && column(&pair[0]) == column(&pair[1])
                {
                    prop_assert!(parents[below].contains(&above), "{above} looks linked to {below}");
                }
            }
        }
    }
}
