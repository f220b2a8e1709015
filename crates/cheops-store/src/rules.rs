//! What both stores go by beyond the rules of the core: names of slots, what entries refer to, and how
//! long what nobody needs any more can be followed.

use std::time::Duration;

use cheops_core::engine::RecordSlot;
use cheops_core::model::{BlobId, Entry, EntryBody, Payload};

/// The text under which a record is kept until a later one takes its place. Site names have no `/`,
/// and the resource comes last, so no two slots have the same text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlotName(String);

impl SlotName {
    pub(crate) fn of(slot: RecordSlot<'_>) -> Self {
        Self(match slot {
            RecordSlot::Runs(resource) => format!("runs/{resource}"),
            RecordSlot::Knows(site, resource) => format!("knows/{site}/{resource}"),
            RecordSlot::EarlierIncarnation(site, resource) => {
                format!("earlier-life/{site}/{resource}")
            }
            RecordSlot::Incarnation(site) => format!("life/{site}"),
            RecordSlot::Pruned(resource) => format!("pruned/{resource}"),
            RecordSlot::Shed(resource) => format!("shed/{resource}"),
            RecordSlot::SetApart(author, key, None, about) => {
                format!("set-apart/{}/{key}/{author}/{about:016x}", author.site)
            }
            RecordSlot::SetApart(author, key, Some(other), about) => {
                format!("set-apart/{}/{key}+{other}/{author}/{about:016x}", author.site)
            }
        })
    }

    /// The resource that the text of a slot names, if it names one.
    pub(crate) fn resource_in(text: &str) -> Option<&str> {
        let (kind, rest) = text.split_once('/')?;
        match kind {
            "runs" | "pruned" | "shed" => Some(rest),
            "knows" | "earlier-life" => rest.split_once('/').map(|(_, resource)| resource),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Contents without which the entry's operation cannot run, or a state that stands for others be written.
pub(crate) fn blobs_of(entry: &Entry) -> Vec<BlobId> {
    let EntryBody::Operation(operation) = &entry.body else {
        let kept = entry.kept_state();
        return kept.into_iter().map(|kept| BlobId(kept.floor.state.0)).collect();
    };
    match &operation.payload {
        Payload::Shell { files, .. } => files.iter().map(|file| file.blob).collect(),
        Payload::Http { body, .. } => body.iter().map(|file| file.blob).collect(),
    }
}

/// What is spent up to this time is past its retention; `None` if nothing can be yet.
pub(crate) fn spent_before(now_ms: u64, retention: Duration) -> Option<u64> {
    if retention.is_zero() {
        return Some(u64::MAX);
    }
    now_ms.checked_sub(u64::try_from(retention.as_millis()).unwrap_or(u64::MAX))
}

/// The follower of this name, and those whose names begin with it and a `/`, are waited for: what
/// they have not seen yet stays for an hour at most, though its retention is shorter.
pub const WAITS_FOR: &str = "hooks";

const WAITED_FOR: Duration = Duration::from_secs(60 * 60);

/// What is spent up to this time goes, whoever has not seen it yet.
pub(crate) fn waited_before(now_ms: u64, retention: Duration) -> Option<u64> {
    spent_before(now_ms, retention.max(WAITED_FOR))
}

/// How many rows past their retention are deleted by a batch of so many: more than it can spend in
/// the long run, so that a backlog shrinks, and never many at once.
pub(crate) fn sweep_limit(batch: usize) -> usize {
    100 + 2 * batch
}

/// How many rows are dropped at most with a batch for want of room, and how many in one step.
pub(crate) const MOST_CUT: usize = 8192;
/// See [`MOST_CUT`].
pub(crate) const CUT_STEP: usize = 256;

/// What a row with a body of so many bytes takes, about.
pub(crate) fn row_bytes(body: impl Into<u64>) -> u64 {
    const COLUMNS: u64 = 160;
    COLUMNS + body.into()
}
