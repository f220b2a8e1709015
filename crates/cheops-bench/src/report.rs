//! What is printed: tables for people, or one JSON document for programs.

use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::figure::Figure;

/// Space between two columns.
const GAP: &str = "  ";

/// Who reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    People,
    Programs,
}

/// What was wanted, and what was measured.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BenchTarget {
    pub(crate) of: &'static str,
    pub(crate) wanted: String,
    pub(crate) measured: String,
    pub(crate) verdict: TargetVerdict,
}

/// How a target came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TargetVerdict {
    Met,
    Missed,
}

impl TargetVerdict {
    pub(crate) fn of(is_met: bool) -> Self {
        if is_met { Self::Met } else { Self::Missed }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
        }
    }
}

/// Rows under a header. The first column holds words, the others numbers.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|&title| title.to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    fn lines(&self) -> Vec<String> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        let cell = |(column, text): (usize, &String)| match (column, widths[column]) {
            (0, width) => format!("{text:<width$}"),
            (_, width) => format!("{text:>width$}"),
        };
        let line = |row: &Vec<String>| {
            let cells: Vec<_> = row.iter().enumerate().map(cell).collect();
            format!("{GAP}{}", cells.join(GAP).trim_end())
        };
        self.rows.iter().map(line).collect()
    }
}

/// One measurement's part of the report.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) tables: Vec<Table>,
    pub(crate) notes: Vec<String>,
    pub(crate) targets: Vec<BenchTarget>,
    /// The same for programs.
    pub(crate) data: Value,
    /// What may be compared with the same of another program.
    pub(crate) figures: Vec<Figure>,
    /// What should not be, however fast it was: a comparison says it too.
    pub(crate) wrong: Vec<String>,
}

impl Section {
    /// One that says nothing yet.
    pub(crate) fn new(name: &'static str, title: &'static str) -> Self {
        Self {
            name,
            title,
            tables: Vec::new(),
            notes: Vec::new(),
            targets: Vec::new(),
            data: Value::Null,
            figures: Vec::new(),
            wrong: Vec::new(),
        }
    }
}

/// The way to the terminal.
pub(crate) struct Report {
    format: ReportFormat,
    data: Map<String, Value>,
    targets: Vec<BenchTarget>,
    /// What all remarks are about.
    during: String,
}

impl Report {
    pub(crate) fn new(format: ReportFormat) -> Self {
        Self { format, data: Map::new(), targets: Vec::new(), during: String::new() }
    }

    /// Says what is being done, to whoever watches.
    pub(crate) fn remark(&self, text: impl Display) {
        // Nobody to hear it is no reason to stop.
        let _unheard = writeln!(io::stderr(), "... {}{text}", self.during);
    }

    /// Remarks begin with that from now on.
    pub(crate) fn during(&mut self, what: String) {
        self.during = what;
    }

    /// Says of all that follows what it is: to people in words, to programs under that name.
    pub(crate) fn about(&mut self, words: &str, name: &str, data: Value) -> io::Result<()> {
        self.data.insert(name.to_owned(), data);
        match self.format {
            ReportFormat::People => writeln!(io::stdout(), "{words}"),
            ReportFormat::Programs => Ok(()),
        }
    }

    pub(crate) fn section(&mut self, section: Section) -> io::Result<()> {
        if self.format == ReportFormat::People {
            let mut out = io::stdout().lock();
            writeln!(out, "\n{}\n", section.title)?;
            for table in &section.tables {
                for line in table.lines() {
                    writeln!(out, "{line}")?;
                }
                writeln!(out)?;
            }
            for note in &section.notes {
                writeln!(out, "{GAP}{note}")?;
            }
        }
        self.data.insert(section.name.to_owned(), section.data);
        self.targets.extend(section.targets);
        Ok(())
    }

    /// The targets, the part of the processors' time that the machine's host took meanwhile, and
    /// what to stand beside.
    pub(crate) fn end(mut self, stolen: f64, notes: &[&str]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.format == ReportFormat::Programs {
            self.data.insert("targets".to_owned(), serde_json::to_value(&self.targets)?);
            self.data.insert("stolen".to_owned(), stolen.into());
            return writeln!(out, "{:#}", Value::Object(self.data));
        }
        if !self.targets.is_empty() {
            writeln!(out, "\nTargets\n")?;
            let mut table = Table::new(&["", "wanted", "measured", ""]);
            for BenchTarget { of, wanted, measured, verdict } in self.targets {
                table.row(vec![of.to_owned(), wanted, measured, verdict.word().to_owned()]);
            }
            for line in table.lines() {
                writeln!(out, "{line}")?;
            }
        }
        writeln!(out)?;
        if stolen > 0.0 {
            let percent = number(stolen * 100.0);
            writeln!(out, "{GAP}The machine's host took {percent} % of the processors' time.\n")?;
        }
        notes.iter().try_for_each(|note| writeln!(out, "{GAP}{note}"))
    }
}

/// A number for people: about three digits that say something.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

pub(crate) fn megabytes(bytes: u64) -> String {
    number(bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new(&["what", "p50"]);
        table.row(vec!["shell".to_owned(), number(12.345)]);
        table.row(vec!["http".to_owned(), number(1234.5)]);
        assert_eq!(table.lines(), ["  what    p50", "  shell  12.3", "  http   1234"]);
    }
}
