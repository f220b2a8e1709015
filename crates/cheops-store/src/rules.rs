//! Which records make which earlier ones obsolete: the rules of [`Record`], in one place for both
//! stores.

use std::time::Duration;

use cheops_core::engine::Record;
use cheops_core::model::{BlobId, Entry, EntryBody, Payload, ResourceId, SiteId};

/// What a record is kept under until a later one takes its place. Site names have no `/`, and the
/// resource comes last, so no two slots have the same text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(String);

impl Slot {
    /// The slot of the record; entries have none.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        match record {
            Record::Entry(..) => None,
            Record::Begun(resource, _)
            | Record::Finished(resource, ..)
            | Record::Ran(resource, _) => Some(Self::runs(resource)),
            Record::Knows(resource, site, ..) => Some(Self::knows(resource, site)),
            Record::EarlierIncarnation(resource, site, _) => {
                Some(Self::earlier_incarnation(resource, site))
            }
            Record::Incarnation(site, _) => Some(Self(format!("life/{site}"))),
            Record::Pruned(resource, _) => Some(Self(format!("pruned/{resource}"))),
            Record::Shed(resource, _) => Some(Self(format!("shed/{resource}"))),
            Record::SetApart(evidence) => {
                let author = evidence.author();
                let about = u64::from_le_bytes(first_eight(&evidence.one.0.resource));
                let key = evidence.key();
                Some(Self(format!("set-apart/{}/{key}/{author}/{about:016x}", author.site)))
            }
        }
    }

    /// The slots that the record empties before it is written.
    pub(crate) fn emptied_by(record: &Record) -> Vec<Self> {
        match record {
            Record::Entry(..) | Record::Begun(..) | Record::Finished(..) => Vec::new(),
            Record::EarlierIncarnation(resource, site, _) => {
                vec![Self::knows(resource, site), Self::earlier_incarnation(resource, site)]
            }
            Record::Ran(..)
            | Record::Knows(..)
            | Record::Incarnation(..)
            | Record::Pruned(..)
            | Record::Shed(..)
            | Record::SetApart(_) => Self::of(record).into_iter().collect(),
        }
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

    fn runs(resource: &ResourceId) -> Self {
        Self(format!("runs/{resource}"))
    }

    fn knows(resource: &ResourceId, site: &SiteId) -> Self {
        Self(format!("knows/{site}/{resource}"))
    }

    fn earlier_incarnation(resource: &ResourceId, site: &SiteId) -> Self {
        Self(format!("earlier-life/{site}/{resource}"))
    }
}

fn first_eight(hash: &[u8; 32]) -> [u8; 8] {
    std::array::from_fn(|at| hash[at])
}

/// Contents without which the entry's operation cannot run.
pub(crate) fn blobs_of(entry: &Entry) -> Vec<BlobId> {
    let EntryBody::Operation(operation) = &entry.body else { return Vec::new() };
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
