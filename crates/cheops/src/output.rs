//! The way to the terminal. Verbs write here and nowhere else.
//!
//! Colours are stripped where nobody sees them (pipes, files, `NO_COLOR`). A reader that has
//! enough and closes the pipe is no error: what follows is dropped, and the exit code stays true.

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Read, Write};

use clap::ValueEnum;
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};

use crate::look::DIM;
use crate::text::{ENDLESS, cut, guarded, is_unseen, printable, text_width};

/// Longer lines are hard to read.
const WIDEST: usize = 100;
/// Narrower tables are unreadable whatever one does.
const NARROWEST: usize = 40;

/// Longer answers to a question are none.
const MAX_ANSWER_BYTES: u64 = 1024;

/// Who reads what is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text and tables, for people
    #[default]
    Table,
    /// JSON, for programs
    Json,
}

/// Where verbs write.
pub(crate) struct VerbOutput {
    out: anstream::Stdout,
    err: anstream::Stderr,
    closed: bool,
    /// Whether a status line stands on the terminal, to be wiped before anything else is written.
    status_shown: bool,
    /// Whether somebody looks on where remarks go, so that a status line makes sense.
    remarks_watched: bool,
    /// Who reads it.
    pub(crate) format: Format,
    /// How wide lines of text should be.
    pub(crate) width: usize,
    /// How wide rows may be before they are cut off.
    pub(crate) room: usize,
}

impl VerbOutput {
    /// To the process's own output and error streams.
    pub(crate) fn standard(format: Format) -> Self {
        let terminal = terminal_size_of(io::stdout());
        let room =
            terminal.map_or(ENDLESS, |(Width(w), _)| usize::from(w).clamp(NARROWEST, WIDEST));
        Self {
            out: anstream::stdout(),
            err: anstream::stderr(),
            closed: false,
            status_shown: false,
            remarks_watched: io::stderr().is_terminal(),
            format,
            width: text_width(room),
            room,
        }
    }

    /// Writes a line, or several, to where the answer goes.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        self.wipe_status();
        match writeln!(self.out, "{}", guarded(&text.to_string())).and_then(|()| self.out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            written => written,
        }
    }

    /// Writes to where errors and remarks go. There is nobody to tell if that fails.
    pub(crate) fn aside(&mut self, text: impl Display) {
        self.wipe_status();
        let _nobody = writeln!(self.err, "{}", guarded(&text.to_string()));
    }

    /// Shows a line that the next one takes the place of, if somebody looks on.
    pub(crate) fn status(&mut self, text: &str) {
        if self.remarks_watched && self.format == Format::Table {
            // One column stays free: a terminal that is full wraps, and the line cannot be wiped.
            let text = cut(&printable(text), self.width.saturating_sub(1));
            let _nobody = write!(self.err, "\r{DIM}{text}{DIM:#}\u{1b}[K");
            let _nobody = self.err.flush();
            self.status_shown = true;
        }
    }

    fn wipe_status(&mut self) {
        if std::mem::take(&mut self.status_shown) {
            let _nobody = write!(self.err, "\r\u{1b}[K");
            let _nobody = self.err.flush();
        }
    }

    /// Whether the reader has enough: nothing that is written arrives any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether somebody sits at the terminal who could answer.
    pub(crate) fn can_ask(&self) -> bool {
        self.remarks_watched && io::stdin().is_terminal()
    }

    /// Asks something of whoever sits at the terminal.
    pub(crate) fn ask(&mut self, question: &str) -> io::Result<String> {
        self.wipe_status();
        let _nobody = write!(self.err, "{} ", guarded(question));
        let _nobody = self.err.flush();
        let mut answer = String::new();
        io::stdin().lock().take(MAX_ANSWER_BYTES).read_line(&mut answer)?;
        Ok(answer.trim().to_owned())
    }

    /// Writes one JSON document.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string_pretty(value)?;
        self.line(seen_in_json(&text))
    }

    /// Writes one of many JSON documents, each on its line.
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(value)?;
        self.line(seen_in_json(&text))
    }
}

/// The same JSON, with what a terminal would not show as numbers: such characters stand in strings only.
fn seen_in_json(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || !is_unseen(c) {
            seen.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            seen.push_str(&format!("\\u{unit:04x}"));
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_the_same_and_moves_no_cursor() {
        let value =
            serde_json::json!({ "id": "a\u{202e}b\u{9b}\u{e0001}", "output": "c\u{1b}\nd" });
        let seen = seen_in_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(seen.chars().all(|c| c == '\n' || !is_unseen(c)), "{seen}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&seen).unwrap(), value);
    }
}
