//! How a site stands to the list of a resource, as it says itself beside a reply.
//!
//! That an operation failed or is in doubt is in the replies. That the application does not follow the
//! list is not: all of its operations may have gone well, in an order that cannot be repaired. So a site
//! says it to the others, as an extension of a reply that need not be understood: a version that does
//! not know of it keeps it and passes it on, and sees what it has seen before.

use super::{Entry, EntryBody, Extension};

/// The longest reason that is sent, in bytes.
pub const MAX_REASON_BYTES: usize = 1024;

const NAME: &str = "standing";
const IN_STEP: &str = "in step";
const DIVERGED: &str = "diverged: ";

/// What a site says of its own application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StandingReport {
    /// It follows the list, or will when all is run.
    InStep,
    /// It does not, and nothing at that site can repair it.
    Diverged {
        /// Why, for people.
        why: String,
    },
}

impl StandingReport {
    /// That it has diverged, for that reason, as far as it is sent.
    pub fn diverged(why: impl Into<String>) -> Self {
        let mut why = why.into();
        why.truncate(why.floor_char_boundary(MAX_REASON_BYTES));
        Self::Diverged { why }
    }
}

impl Extension {
    /// What goes beside a reply.
    pub(crate) fn standing(report: &StandingReport) -> Self {
        let value = match report {
            StandingReport::InStep => IN_STEP.to_owned(),
            StandingReport::Diverged { why } => format!("{DIVERGED}{why}"),
        };
        Self { name: NAME.to_owned(), must_understand: false, value: value.into_bytes() }
    }
}

impl Entry {
    /// How its author stands, if it is a reply that says so in words that this version knows.
    pub fn standing_report(&self) -> Option<StandingReport> {
        let EntryBody::Reply(_) = &self.body else { return None };
        let said = self.extra.iter().find(|extension| extension.name == NAME)?;
        let text = std::str::from_utf8(&said.value).ok()?;
        if text == IN_STEP {
            return Some(StandingReport::InStep);
        }
        text.strip_prefix(DIVERGED).map(StandingReport::diverged)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Author, EntryId, Incarnation, OperationId, Reply, ResourceId, SiteId, Stamp, Status,
    };
    use super::*;

    fn reply_with(beside: Vec<Extension>) -> Entry {
        let author = Author { site: SiteId::new("paris").unwrap(), incarnation: Incarnation(1) };
        let reply = Reply {
            id: EntryId { author: author.clone(), n: 2 },
            stamp: Stamp::default(),
            operation: OperationId(EntryId { author, n: 1 }),
            status: Status::Ok,
            outcome: None,
        };
        let resource = ResourceId::new("x").unwrap();
        Entry::new(&resource, Default::default(), EntryBody::Reply(reply), beside)
    }

    #[test]
    fn what_is_said_is_read_and_what_a_later_version_says_is_passed_over() {
        let said = |text: &str| Extension {
            value: text.as_bytes().to_vec(),
            ..Extension::standing(&StandingReport::InStep)
        };
        let diverged = StandingReport::diverged("`a` ran before `b`");
        for (beside, expected) in [
            (vec![], None),
            (vec![Extension::standing(&StandingReport::InStep)], Some(StandingReport::InStep)),
            (vec![Extension::standing(&diverged)], Some(diverged.clone())),
            (vec![said("ahead: by a day")], None),
            (vec![said("diverged: ")], Some(StandingReport::diverged(""))),
        ] {
            assert_eq!(reply_with(beside.clone()).standing_report(), expected, "{beside:?}");
        }
    }

    #[test]
    fn a_reason_is_cut_between_letters_and_within_the_limits() {
        let StandingReport::Diverged { why } = StandingReport::diverged("é".repeat(1_000)) else {
            panic!("not diverged")
        };
        assert_eq!(why.len(), MAX_REASON_BYTES);
        let entry = reply_with(vec![Extension::standing(&StandingReport::Diverged { why })]);
        assert_eq!(entry.check_limits(), Ok(()));
    }
}
