//! The way to the terminal. Verbs write here and nowhere else.
//!
//! Colours are stripped where nobody sees them (pipes, files, `NO_COLOR`). A reader that has
//! enough and closes the pipe is no error: what follows is dropped, and the exit code stays true.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};

/// How wide text is where no terminal says so.
const USUAL_WIDTH: usize = 80;
/// Longer lines are hard to read.
const WIDEST: usize = 100;
/// Narrower tables are unreadable whatever one does.
const NARROWEST: usize = 40;

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
pub(crate) struct Output {
    out: anstream::Stdout,
    err: anstream::Stderr,
    closed: bool,
    /// Who reads it.
    pub(crate) format: Format,
    /// How wide lines should be.
    pub(crate) width: usize,
    /// Whether somebody looks on while it is written.
    pub(crate) watched: bool,
}

impl Output {
    /// To the process's own output and error streams.
    pub(crate) fn standard(format: Format) -> Self {
        let width = terminal_size_of(io::stdout()).map_or(USUAL_WIDTH, |(Width(w), _)| w.into());
        Self {
            out: anstream::stdout(),
            err: anstream::stderr(),
            closed: false,
            format,
            width: width.clamp(NARROWEST, WIDEST),
            watched: io::stdout().is_terminal(),
        }
    }

    /// Writes a line, or several, to where the answer goes.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        match writeln!(self.out, "{text}").and_then(|()| self.out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            written => written,
        }
    }

    /// Writes to where errors and remarks go. There is nobody to tell if that fails.
    pub(crate) fn aside(&mut self, text: impl Display) {
        let _nobody = writeln!(self.err, "{text}");
    }

    /// Writes one JSON document.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string_pretty(value)?;
        self.line(text)
    }

    /// Writes one of many JSON documents, each on its line.
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(value)?;
        self.line(text)
    }
}
