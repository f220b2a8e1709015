//! What the story is made of: plain data, to be told to people or written as JSON.

use serde::Serialize;

/// One thing to tell.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "beat", rename_all = "kebab-case")]
pub(super) enum Beat {
    /// A scenario begins.
    Opening(Opening),
    /// A scene begins.
    Scene { number: usize, title: String, at_ms: u64 },
    /// The narrator says something.
    Says { text: String },
    /// The sites and the links between them, as the simulated network has them.
    Map { links: Vec<Link> },
    /// A user handed in an operation.
    HandedIn(HandedIn),
    /// What a site's engine makes of the silence of others.
    Unheard { site: String, others: Vec<String>, since_ms: u64 },
    /// A site's application changed, in time relative to what the scene is about.
    Changed { site: String, after_ms: u64, holds: String },
    /// What every site holds.
    States { at_ms: u64, sites: Vec<SiteState> },
    /// All sites know and hold the same.
    Converged(Converged),
    /// What each site replied to each operation.
    Replies { as_seen_by: String, sites: Vec<String>, operations: Vec<Replied> },
    /// Why the list is what it is.
    Explained(Explained),
    /// A site's agent was killed.
    Killed { site: String, at_ms: u64, moment: Moment },
    /// It runs again.
    Restarted { site: String, at_ms: u64, after_ms: u64 },
    /// What the scene came to.
    Outcome(Outcome),
}

/// How much of a scenario is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Length {
    Full,
    Short,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Opening {
    pub(super) seed: u64,
    pub(super) length: Length,
    pub(super) what: &'static str,
    pub(super) resource: &'static str,
    pub(super) sites: Vec<String>,
    pub(super) profile: &'static str,
    pub(super) meaning: &'static str,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Link {
    pub(super) between: [String; 2],
    /// As the engines measured it.
    pub(super) round_trip_ms: Option<u64>,
    pub(super) cut: bool,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct HandedIn {
    pub(super) at_ms: u64,
    pub(super) site: String,
    pub(super) operation: String,
    pub(super) command: &'static str,
    /// The site's own reply, if it has come.
    pub(super) here: Option<Here>,
    /// When all sites had replied, if they have.
    pub(super) everywhere_after_ms: Option<u64>,
}

/// The receiving site's own reply.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Here {
    pub(super) after_ms: u64,
    pub(super) status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct SiteState {
    pub(super) site: String,
    pub(super) up: bool,
    pub(super) holds: String,
    /// The operations that count, in order, as this site knows them; none while it is down.
    pub(super) list: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Converged {
    pub(super) after_ms: u64,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Replied {
    pub(super) operation: String,
    pub(super) command: String,
    /// The operation that counts in its stead, if it does not.
    pub(super) left_out_by: Option<String>,
    /// In the order of the sites; none where there is no reply.
    pub(super) replies: Vec<Option<SiteReply>>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct SiteReply {
    pub(super) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) superseded_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Explained {
    /// The sites whose engines explain it in these very words.
    pub(super) sites: Vec<String>,
    pub(super) operations: Vec<Explanation>,
    pub(super) because: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Explanation {
    pub(super) operation: String,
    pub(super) kind: String,
    pub(super) command: String,
    pub(super) at_ms: u64,
    /// The operations it was made on.
    pub(super) made_on: Vec<String>,
    pub(super) replaces: bool,
    pub(super) counts: bool,
}

/// What the agent was doing when it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Moment {
    /// The command had done its work; the agent had not noted that.
    WorkDoneNotNoted,
    /// The command had not done its work.
    WorkNotDone,
    /// Nothing was under way.
    Idle,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Outcome {
    pub(super) at_ms: u64,
    /// What the sites hold, without repeats: one if they agree.
    pub(super) held: Vec<String>,
    /// What a fresh run of the agreed list gives.
    pub(super) fresh_run: String,
    /// What the technical report says.
    pub(super) published: Option<&'static str>,
}

impl Outcome {
    /// Whether all is as it should be.
    pub(super) fn agrees(&self) -> bool {
        let published = self.published.unwrap_or(self.fresh_run.as_str());
        self.held == [self.fresh_run.as_str()] && self.fresh_run == published
    }
}
