//! What a site read of its application's state, as it says beside a reply.
//!
//! As with a standing, a version that does not know of it keeps it and passes it on.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Entry, EntryBody, Extension, MAX_REASON_BYTES};

const NAME: &str = "state";
/// Before the reason, where a state could not be read. A version that does not know of it takes it for
/// nothing that was read.
const UNREAD: &str = "unread: ";

/// What stands for a state, or for a list: equal ones have equal fingerprints, and no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// That of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Reads one back from its text.
    pub fn parse(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text).ok().map(|hash| Self(*hash.as_bytes()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

/// What a site read, and when: after it had run this list, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateReport {
    /// That of the list.
    pub list: Fingerprint,
    /// That of the state; or why it could not be read, or is not believed, for people.
    pub found: Result<Fingerprint, String>,
}

impl StateReport {
    /// What was found after that list, as far as a reason is sent.
    pub fn new(list: Fingerprint, found: Result<Fingerprint, String>) -> Self {
        let cut = |mut why: String| {
            why.truncate(why.floor_char_boundary(MAX_REASON_BYTES));
            why
        };
        Self { list, found: found.map_err(cut) }
    }
}

impl Extension {
    /// What goes beside a reply.
    pub(crate) fn state(report: &StateReport) -> Self {
        let found = match &report.found {
            Ok(state) => state.to_string(),
            Err(why) => format!("{UNREAD}{why}"),
        };
        let value = format!("{} {found}", report.list).into_bytes();
        Self { name: NAME.to_owned(), must_understand: false, value }
    }
}

impl Entry {
    /// What its author read, if it is a reply that says so in words that this version knows.
    pub fn state_report(&self) -> Option<StateReport> {
        let EntryBody::Reply(_) = &self.body else { return None };
        let said = self.extra.iter().find(|extension| extension.name == NAME)?;
        let (list, found) = std::str::from_utf8(&said.value).ok()?.split_once(' ')?;
        let found = match found.strip_prefix(UNREAD) {
            Some(why) => Err(why.to_owned()),
            None => Ok(Fingerprint::parse(found)?),
        };
        Some(StateReport::new(Fingerprint::parse(list)?, found))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Author, EntryId, Incarnation, OperationId, Reply, ResourceId, SiteId, Stamp, Status,
    };
    use super::*;

    #[test]
    fn what_was_read_is_said_and_what_nobody_understands_is_passed_over() {
        let report = StateReport::new(Fingerprint::of(b"a"), Ok(Fingerprint::of(b"b")));
        let said = |value: &str| Extension {
            value: value.as_bytes().to_vec(),
            ..Extension::state(&report)
        };
        let read = |beside: Vec<Extension>| {
            let author =
                Author { site: SiteId::new("paris").unwrap(), incarnation: Incarnation(1) };
            let reply = Reply {
                id: EntryId { author: author.clone(), n: 2 },
                stamp: Stamp::default(),
                operation: OperationId(EntryId { author, n: 1 }),
                status: Status::Ok,
                outcome: None,
            };
            let (resource, body) = (ResourceId::new("x").unwrap(), EntryBody::Reply(reply));
            Entry::new(&resource, Default::default(), body, beside).state_report()
        };
        assert_eq!(read(vec![Extension::state(&report)]), Some(report.clone()));
        let unread = StateReport::new(report.list, Err("no such file".to_owned()));
        assert_eq!(read(vec![Extension::state(&unread)]), Some(unread));
        let long = StateReport::new(report.list, Err("é".repeat(1_000)));
        assert_eq!(long.found.unwrap_err().len(), MAX_REASON_BYTES);
        assert_eq!(read(Vec::new()), None);
        for strange in ["", "x y", "later: words", &format!("{} ", report.list)] {
            assert_eq!(read(vec![said(strange)]), None, "{strange:?}");
        }
    }
}
