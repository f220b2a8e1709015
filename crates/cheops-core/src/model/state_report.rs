//! What a site read of its application's state, as it says beside a reply.
//!
//! As with a standing, a version that does not know of it keeps it and passes it on.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Entry, EntryBody, Extension};

const NAME: &str = "state";

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateReport {
    /// That of the list.
    pub list: Fingerprint,
    /// That of the state.
    pub state: Fingerprint,
}

impl Extension {
    /// What goes beside a reply.
    pub(crate) fn state(report: &StateReport) -> Self {
        let value = format!("{} {}", report.list, report.state).into_bytes();
        Self { name: NAME.to_owned(), must_understand: false, value }
    }
}

impl Entry {
    /// What its author read, if it is a reply that says so in words that this version knows.
    pub fn state_report(&self) -> Option<StateReport> {
        let EntryBody::Reply(_) = &self.body else { return None };
        let said = self.extra.iter().find(|extension| extension.name == NAME)?;
        let (list, state) = std::str::from_utf8(&said.value).ok()?.split_once(' ')?;
        Some(StateReport { list: Fingerprint::parse(list)?, state: Fingerprint::parse(state)? })
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
        let report = StateReport { list: Fingerprint::of(b"a"), state: Fingerprint::of(b"b") };
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
        assert_eq!(read(vec![Extension::state(&report)]), Some(report));
        assert_eq!(read(Vec::new()), None);
        for strange in ["", "x y", "later: words", &format!("{} ", report.list)] {
            assert_eq!(read(vec![said(strange)]), None, "{strange:?}");
        }
    }
}
