//! Replies: what a site got when it ran, or did not run, an operation. Failure is data here.

use serde::{Deserialize, Serialize};

use super::{EntryId, Header, LocalId, OperationId, SiteId, Stamp};

/// What one site says of one operation. A later reply of the same site takes the place of an
/// earlier one in what is shown; the stamp tells which is later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The entry's id; its author is the site that replies.
    pub id: EntryId,
    /// When, by the replying site's hybrid clock.
    pub stamp: Stamp,
    /// What it is about.
    pub operation: OperationId,
    /// What became of the operation there.
    pub status: Status,
    /// How the last run ended, where there was one.
    pub outcome: Option<Outcome>,
}

impl Reply {
    /// The site that replies.
    pub fn site(&self) -> &SiteId {
        &self.id.author.site
    }
}

/// What became of an operation at one site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It ran and succeeded.
    Ok,
    /// It ran and failed.
    Ko,
    /// It did not run here, since another operation took its place.
    Superseded {
        /// The winner, as this site saw it then.
        by: OperationId,
    },
    /// The site stopped while it ran: it may or may not have happened.
    InDoubt,
    /// It failed whole and was run in smaller steps, of which some succeeded.
    Partial {
        /// Steps that succeeded.
        done: u32,
        /// Steps there were.
        of: u32,
    },
}

impl Status {
    /// The word that the API and the command line show.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Ko => "KO",
            Self::Superseded { .. } => "SUPERSEDED",
            Self::InDoubt => "IN-DOUBT",
            Self::Partial { .. } => "PARTIAL",
        }
    }
}

/// How one run of a command or request ended. Every ending is an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The command ended.
    Exited {
        /// Its exit code.
        code: i32,
        /// What it printed.
        output: Output,
    },
    /// The service answered.
    Answered {
        /// The HTTP status.
        status: u16,
        /// Those of its headers that speak of the resource.
        headers: Vec<Header>,
        /// The body.
        output: Output,
        /// Whether that is what was asked for.
        done: bool,
        /// What the service calls what it made, if it was asked to make something.
        local_id: Option<LocalId>,
    },
    /// It ran into its time limit and was ended.
    TimedOut {
        /// The limit.
        limit_ms: u64,
    },
    /// What is to carry it out cannot be had at present. It is to be tried again, and there is
    /// nothing to reply yet.
    NotYet {
        /// Why.
        reason: String,
        /// Whether it may have happened all the same.
        in_doubt: bool,
    },
    /// It could not be started.
    NotStarted {
        /// Why.
        reason: String,
    },
    /// The service was asked, and the connection ended before it answered: it may or may not have
    /// carried the request out.
    BrokenOff {
        /// What is told of it.
        reason: String,
    },
}

/// Before a state that was written over, in the output of the operation that failed.
const WRITTEN_OVER: &str = "\
It failed here, and what it was to replace counts no more, unless it fails at
all sites. So the state went back to that before all that. Submit what is
missing, or retry this. What was there, as `Read` printed it:";
/// The exit codes that shells give where a command did not end in time, or could not be started.
const TIMED_OUT_CODE: i32 = 124;
const NOT_STARTED_CODE: i32 = 126;

impl Outcome {
    /// A command that succeeded and printed this.
    pub fn success(text: impl Into<String>) -> Self {
        Self::Exited { code: 0, output: Output::whole(text) }
    }

    /// A command that failed with code 1 and printed this.
    pub fn failure(text: impl Into<String>) -> Self {
        Self::Exited { code: 1, output: Output::whole(text) }
    }

    /// A service that answered so, with nothing to add.
    pub fn answered(status: u16, output: Output) -> Self {
        let done = (200..400).contains(&status);
        Self::Answered { status, headers: Vec::new(), output, done, local_id: None }
    }

    /// The same failure, with what the state was that had to be written over because of it; none if it
    /// says so already.
    pub(crate) fn written_over(&self, restored: &Self) -> Option<Self> {
        let Self::Exited { output: state, .. } = restored else { return None };
        let (code, before) = match self {
            Self::Exited { code, output } => (*code, output.clone()),
            Self::TimedOut { limit_ms } => {
                (TIMED_OUT_CODE, Output::whole(format!("it did not end within {limit_ms} ms")))
            }
            other => (NOT_STARTED_CODE, Output::whole(other.text())),
        };
        if self.says_what_was_written_over() {
            return None;
        }
        let printed = before.text.trim_end();
        let between = if printed.is_empty() { "" } else { "\n\n" };
        let text = format!("{printed}{between}{WRITTEN_OVER}\n{}", state.text);
        let output = Output { text, truncated: before.truncated || state.truncated };
        Some(Self::Exited { code, output })
    }

    /// Whether it says what the state was that had to be written over.
    pub fn says_what_was_written_over(&self) -> bool {
        self.text().contains(WRITTEN_OVER)
    }

    /// What the service calls what it made.
    pub fn local_id(&self) -> Option<&LocalId> {
        match self {
            Self::Answered { local_id, .. } => local_id.as_ref(),
            _ => None,
        }
    }

    /// Whether what was asked for happened.
    pub fn succeeded(&self) -> bool {
        match self {
            Self::Exited { code, .. } => *code == 0,
            Self::Answered { done, .. } => *done,
            Self::BrokenOff { .. }
            | Self::TimedOut { .. }
            | Self::NotYet { .. }
            | Self::NotStarted { .. } => false,
        }
    }

    /// About how many bytes it takes when sent: never much less.
    pub(crate) fn size(&self) -> usize {
        let rest = match self {
            Self::Answered { headers, local_id, .. } => {
                let headers: usize = headers.iter().map(Header::size).sum();
                headers + local_id.as_ref().map_or(0, |id| id.as_str().len())
            }
            _ => 0,
        };
        rest + self.text().len()
    }

    /// Whether more was printed or answered than was kept.
    pub fn is_truncated(&self) -> bool {
        match self {
            Self::Exited { output, .. } | Self::Answered { output, .. } => output.truncated,
            Self::BrokenOff { .. }
            | Self::TimedOut { .. }
            | Self::NotYet { .. }
            | Self::NotStarted { .. } => false,
        }
    }

    /// What was printed or answered; empty if nothing was.
    pub fn text(&self) -> &str {
        match self {
            Self::Exited { output, .. } | Self::Answered { output, .. } => &output.text,
            Self::TimedOut { .. } => "",
            Self::BrokenOff { reason }
            | Self::NotYet { reason, .. }
            | Self::NotStarted { reason } => reason,
        }
    }

    /// The HTTP status under which it is known: the service's own, or the one by which gateways say
    /// that there was no answer.
    pub fn http_status(&self) -> Option<u16> {
        match self {
            Self::Answered { status, .. } => Some(*status),
            Self::BrokenOff { .. } => Some(BROKEN_OFF_STATUS),
            _ => None,
        }
    }
}

/// The status under which [`Outcome::BrokenOff`] is shown, written and signed.
pub const BROKEN_OFF_STATUS: u16 = 502;

/// The one header with which [`Outcome::BrokenOff`] is written and signed. It was an answer with
/// this header before it was an outcome of its own, and logs and signatures are to stay as they are.
/// It is kept of no answer of a service.
pub fn broken_off_header() -> Header {
    Header { name: "x-cheops-error".to_owned(), value: "broken-off".to_owned() }
}

/// What a run printed, up to a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The text.
    pub text: String,
    /// Whether there was more than the limit.
    pub truncated: bool,
}

impl Output {
    /// All that was printed.
    pub fn whole(text: impl Into<String>) -> Self {
        Self { text: text.into(), truncated: false }
    }
}
