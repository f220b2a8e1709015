//! Bugs put in on purpose, to show that the simulation finds such bugs.
//!
//! They are planted where an engine meets its world, so that the engine that ships has no switch
//! for them: each makes the engine behave as if its authors had made that mistake.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use cheops_core::engine::{Effect, Message, Record};
use cheops_core::model::{Entry, EntryBody, SiteId};

use crate::keys::SimKey;

/// A mistake that someone could make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Effects are let out before the batch is durable: answers, messages and runs of decisions
    /// that a crash takes back.
    EffectsBeforeCommit,
    /// A run is recorded only when it has ended, so that a crash in the middle of it is not seen.
    NoIntent,
    /// An operation is ordered by when it arrived, not by the stamp it was given where it was
    /// made: as if every site were right about the time.
    OrderByArrival,
    /// What was sent is taken as known by the other side, and nobody ever asks.
    SentMeansKnown,
    /// Entries are taken on the word of whoever sends them.
    TakesAnybodysWord,
    /// The same for entries with numbers at the edge, which use up those of their author.
    TakesLastNumbers,
    /// A stamp is taken as it is claimed, and one with nothing after it leaves nobody a next one.
    StampsAsClaimed,
    /// What a site's service first called a thing is what requests say for ever, also when the
    /// service was lost and made it anew.
    FirstIdStands,
    /// Operations do not say what they need, and so do not wait for it.
    ChildrenDoNotWait,
    /// That a site's application does not follow the list is not told to the others.
    StandingNotSent,
    /// What is told of a state is what was read after another list.
    StateOfAnotherList,
    /// One site passes over that an operation is to be taken out, where another site says so.
    UndoSkipped,
    /// A state stands for the history before it as soon as one site keeps it.
    StateOfOneSite,
    /// Who finds out that a site lies keeps what shows it to itself.
    EvidenceNotSent,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::EffectsBeforeCommit,
        Self::NoIntent,
        Self::OrderByArrival,
        Self::SentMeansKnown,
        Self::TakesAnybodysWord,
        Self::TakesLastNumbers,
        Self::StampsAsClaimed,
        Self::FirstIdStands,
        Self::ChildrenDoNotWait,
        Self::StandingNotSent,
        Self::StateOfAnotherList,
        Self::UndoSkipped,
        Self::StateOfOneSite,
        Self::EvidenceNotSent,
    ];

    /// Whether an entry is taken for its author's word.
    pub fn believes(bug: Option<Self>, entry: &Entry) -> bool {
        match bug {
            Some(Self::TakesAnybodysWord) => true,
            Some(Self::TakesLastNumbers) if entry.id().n > u64::MAX / 4 => true,
            _ => SimKey::is_authors(entry),
        }
    }

    /// Whether a record is kept.
    pub fn keeps(bug: Option<Self>, record: &Record) -> bool {
        bug != Some(Self::NoIntent) || !matches!(record, Record::Begun(..))
    }

    /// Whether an effect is carried out.
    pub fn lets_out(bug: Option<Self>, effect: &Effect) -> bool {
        let asks = |message: &Message| matches!(message, Message::Update(update) if update.asks);
        match effect {
            Effect::Tell { message, .. } => match bug {
                Some(Self::SentMeansKnown) => !asks(message),
                Some(Self::EvidenceNotSent) => !matches!(message, Message::Evidence(_)),
                _ => true,
            },
            _ => true,
        }
    }

    /// What arrives at a site instead of an entry.
    pub fn arrives(self, entry: &mut Arc<Entry>, at: usize, wall_ms: u64) {
        if self == Self::OrderByArrival
            && let EntryBody::Operation(operation) = &mut Arc::make_mut(entry).body
        {
            operation.claimed.wall_ms = operation.claimed.wall_ms.max(wall_ms);
        }
        if self == Self::UndoSkipped && at == 0 && entry.undoes().is_some() {
            Arc::make_mut(entry).extra.retain(|said| said.name != "undoes");
        }
        if self == Self::StateOfOneSite && entry.kept_state().is_some() {
            let site = entry.id().author.site.clone();
            for said in &mut Arc::make_mut(entry).extra {
                said.value = kept_by(&site, &said.value);
            }
        }
        if self == Self::StandingNotSent && entry.standing_report().is_some() {
            Arc::make_mut(entry).extra.clear();
        }
    }
}

/// The same, kept by this site alone.
fn kept_by(site: &SiteId, said: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(said);
    let mut lines: Vec<&str> = text.split('\n').collect();
    if let Some(sites) = lines.get_mut(1) {
        *sites = site.as_str();
    }
    lines.join("\n").into_bytes()
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EffectsBeforeCommit => "effects-before-commit",
            Self::NoIntent => "no-intent",
            Self::OrderByArrival => "order-by-arrival",
            Self::SentMeansKnown => "sent-means-known",
            Self::TakesAnybodysWord => "takes-anybodys-word",
            Self::TakesLastNumbers => "takes-last-numbers",
            Self::StampsAsClaimed => "stamps-as-claimed",
            Self::FirstIdStands => "first-id-stands",
            Self::ChildrenDoNotWait => "children-do-not-wait",
            Self::StandingNotSent => "standing-not-sent",
            Self::StateOfAnotherList => "state-of-another-list",
            Self::UndoSkipped => "undo-skipped",
            Self::StateOfOneSite => "state-of-one-site",
            Self::EvidenceNotSent => "evidence-not-sent",
        })
    }
}

impl FromStr for Bug {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|bug| bug.to_string() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(ToString::to_string).collect();
            format!("`{text}` is not one of {}", names.join(", "))
        })
    }
}
