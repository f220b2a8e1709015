//! What a log may forget: which records make which earlier ones obsolete. The one place where that
//! is decided; every log goes by it.
//!
//! A log that writes as it goes asks each record what it [empties](Record::empties) and what it
//! [prunes](Record::prunes). One that looks back over what it has asks [`LaterRecords`].

use std::collections::{BTreeMap, BTreeSet};

use super::durable::Record;
use crate::model::{Author, KeyId, ResourceId, SiteId, Vector};

/// What a record is kept under until a later one takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordSlot<'a> {
    /// What ran of a resource.
    Runs(&'a ResourceId),
    /// What a site knows of a resource.
    Knows(&'a SiteId, &'a ResourceId),
    /// What an earlier incarnation of a site may have known of a resource.
    EarlierIncarnation(&'a SiteId, &'a ResourceId),
    /// How far a resource was pruned.
    Pruned(&'a ResourceId),
    /// Which operations of a resource need their files no more.
    Shed(&'a ResourceId),
    /// In which incarnation a site is.
    Incarnation(&'a SiteId),
    /// That an author was shown to lie with a key, or with two of its keys, on a resource of which the
    /// name's hash begins like this. What two keys show does not take the place of what one shows.
    SetApart(&'a Author, KeyId, Option<KeyId>, u64),
}

impl Record {
    /// What it is kept under; entries are kept until they are pruned.
    pub fn slot(&self) -> Option<RecordSlot<'_>> {
        match self {
            Self::Entry(..) => None,
            Self::Begun(resource, _) | Self::Finished(resource, ..) | Self::Ran(resource, _) => {
                Some(RecordSlot::Runs(resource))
            }
            Self::Knows(resource, site, ..) => Some(RecordSlot::Knows(site, resource)),
            Self::EarlierIncarnation(resource, site, _) => {
                Some(RecordSlot::EarlierIncarnation(site, resource))
            }
            Self::Incarnation(site, _) => Some(RecordSlot::Incarnation(site)),
            Self::Pruned(resource, _) => Some(RecordSlot::Pruned(resource)),
            Self::Shed(resource, _) => Some(RecordSlot::Shed(resource)),
            Self::SetApart(evidence) => {
                let hash = &evidence.one.0.resource;
                let about = u64::from_le_bytes(std::array::from_fn(|at| hash[at]));
                let (key, other) = (evidence.one.1.key, evidence.other.1.key);
                let other = (other != key).then_some(other);
                Some(RecordSlot::SetApart(evidence.author(), key, other, about))
            }
        }
    }

    /// The slots of which it makes all obsolete that was written before it.
    pub fn empties(&self) -> impl Iterator<Item = RecordSlot<'_>> {
        let own = match self {
            Self::Begun(..) | Self::Finished(..) => None,
            _ => self.slot(),
        };
        let other = match self {
            Self::EarlierIncarnation(resource, site, _) => Some(RecordSlot::Knows(site, resource)),
            _ => None,
        };
        own.into_iter().chain(other)
    }

    /// Up to where it makes the entries of a resource obsolete that were written before it.
    pub fn prunes(&self) -> Option<(&ResourceId, &Vector)> {
        match self {
            Self::Pruned(resource, base) => Some((resource, &base.upto)),
            _ => None,
        }
    }
}

/// The records of a log from some place on, for looking back: from the last to the first.
#[derive(Debug, Default)]
pub struct LaterRecords<'a> {
    emptied: BTreeSet<RecordSlot<'a>>,
    pruned: BTreeMap<&'a ResourceId, Vector>,
}

impl<'a> LaterRecords<'a> {
    /// Whether one of them makes this one obsolete, which comes right before them. It is one of
    /// them from now on.
    pub fn make_obsolete(&mut self, record: &'a Record) -> bool {
        let is_obsolete = match (record, record.slot()) {
            (Record::Entry(resource, entry), _) => {
                self.pruned.get(resource).is_some_and(|upto| upto.includes(entry.id()))
            }
            (_, slot) => slot.is_some_and(|slot| self.emptied.contains(&slot)),
        };
        self.emptied.extend(record.empties());
        if let Some((resource, upto)) = record.prunes() {
            self.pruned.entry(resource).or_default().join(upto);
        }
        is_obsolete
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::Base;
    use crate::model::{
        Entry, EntryBody, EntryHash, EntryHeader, EntryId, Evidence, Incarnation, OperationId,
        Proof, Reply, SignedBy, Stamp, Status,
    };
    use crate::plan::{Ended, SnapshotId, Step};
    use Record::{Begun, EarlierIncarnation, Finished, Knows, Pruned, Ran, Shed};

    fn site(name: &str) -> SiteId {
        SiteId::new(name).unwrap()
    }

    fn of(name: &str) -> ResourceId {
        ResourceId::new(name).unwrap()
    }

    fn id(name: &str, incarnation: u64, n: u64) -> EntryId {
        EntryId { author: Author { site: site(name), incarnation: Incarnation(incarnation) }, n }
    }

    fn entry(resource: &str, id: EntryId) -> Record {
        let (operation, stamp) = (OperationId(id.clone()), Stamp::default());
        let reply = Reply { id, stamp, operation, status: Status::Ok, outcome: None };
        let body = EntryBody::Reply(reply);
        let entry = Entry::new(&of(resource), Default::default(), body, Vec::new());
        Record::Entry(of(resource), Arc::new(entry))
    }

    fn pruned(resource: &str, upto: EntryId) -> Record {
        let upto = [upto].into_iter().collect();
        let base =
            Base { upto, declared: None, chain: Default::default(), order: None, state: None };
        Pruned(of(resource), Box::new(base))
    }

    fn set_apart(name: &str, incarnation: u64, key: u8, resource: u8) -> Record {
        let of = |said| {
            let author = id(name, incarnation, 1).author;
            let (resource, after_hash) = ([resource; 32], EntryHash([0; 32]));
            let header = EntryHeader { author, n: 1, resource, after: 0, after_hash, said };
            let (by, path, signature) = (SignedBy::Author, Vec::new(), Arc::from([]));
            (header, Proof { by, key: KeyId([key; 32]), index: 0, path, signature })
        };
        Record::SetApart(Box::new(Evidence { one: of([1; 32]), other: of([2; 32]) }))
    }

    /// One of each kind, with names of kinds: what a record of the first makes obsolete of the
    /// second, where both are about the same, is in this table, and nothing else is.
    const TAKES_THE_PLACE_OF: [(&str, &[&str]); 10] = [
        ("entry", &[]),
        ("begun", &[]),
        ("finished", &[]),
        ("ran", &["begun", "finished", "ran"]),
        ("knows", &["knows"]),
        ("earlier incarnation", &["knows", "earlier incarnation"]),
        ("incarnation", &["incarnation"]),
        ("pruned", &["entry", "pruned"]),
        ("shed", &["shed"]),
        ("set apart", &["set apart"]),
    ];

    fn record(kind: &str, resource: &str, at: &str) -> Record {
        let step = || Step::Snapshot(SnapshotId(1));
        match kind {
            "entry" => entry(resource, id(at, 1, 1)),
            "begun" => Begun(of(resource), step()),
            "finished" => Finished(of(resource), step(), Ended::Ok),
            "ran" => Ran(of(resource), Box::default()),
            "knows" => Knows(of(resource), site(at), Incarnation(1), Vector::default()),
            "earlier incarnation" => EarlierIncarnation(of(resource), site(at), Vector::default()),
            "incarnation" => Record::Incarnation(site(at), Incarnation(1)),
            "pruned" => pruned(resource, id(at, 1, 2)),
            "shed" => Shed(of(resource), BTreeSet::new()),
            "set apart" => set_apart(at, 1, 1, u8::from(resource == "a")),
            kind => panic!("{kind}"),
        }
    }

    fn is_obsolete(earlier: &Record, later: &Record) -> bool {
        let mut later_records = LaterRecords::default();
        assert!(!later_records.make_obsolete(later), "nothing comes after {later:?}");
        later_records.make_obsolete(earlier)
    }

    #[test]
    fn each_kind_takes_the_place_of_those_in_the_table_and_of_no_others() {
        for (later, taken) in TAKES_THE_PLACE_OF {
            for (earlier, _) in TAKES_THE_PLACE_OF {
                let is = is_obsolete(&record(earlier, "a", "lyon"), &record(later, "a", "lyon"));
                assert_eq!(is, taken.contains(&earlier), "{earlier} before {later}");
            }
        }
    }

    #[test]
    fn what_is_about_another_resource_or_site_stays() {
        // Which of both a kind is about.
        let of_no_site = ["begun", "finished", "ran", "pruned", "shed"];
        for (later, taken) in TAKES_THE_PLACE_OF {
            for earlier in taken {
                let later_one = record(later, "a", "lyon");
                let elsewhere = is_obsolete(&record(earlier, "b", "lyon"), &later_one);
                assert_eq!(elsewhere, *earlier == "incarnation", "{earlier} of another resource");
                let of_another = is_obsolete(&record(earlier, "a", "nantes"), &later_one);
                assert_eq!(of_another, of_no_site.contains(earlier), "{earlier} of another site");
            }
        }
    }

    #[test]
    fn entries_are_pruned_up_to_their_authors_number_by_what_comes_after_them() {
        let upto = pruned("a", id("lyon", 1, 2));
        for (earlier, expected) in [
            (id("lyon", 1, 1), true),
            (id("lyon", 1, 2), true),
            (id("lyon", 1, 3), false),
            (id("lyon", 2, 1), false),
        ] {
            assert_eq!(is_obsolete(&entry("a", earlier.clone()), &upto), expected, "{earlier}");
        }
        assert!(!is_obsolete(&upto, &entry("a", id("lyon", 1, 1))), "what comes later stays");
        // Several prunings count together.
        let mut later = LaterRecords::default();
        assert!(!later.make_obsolete(&upto));
        let other = pruned("a", id("nantes", 1, 7));
        assert!(later.make_obsolete(&other));
        let entries = [entry("a", id("lyon", 1, 2)), entry("a", id("nantes", 1, 7))];
        assert!(entries.iter().all(|entry| later.make_obsolete(entry)));
    }

    #[test]
    fn evidence_stays_unless_it_says_the_same_of_the_same_key() {
        let shown = set_apart("lyon", 1, 1, 1);
        for (earlier, expected) in [
            (set_apart("lyon", 1, 1, 1), true),
            (set_apart("lyon", 2, 1, 1), false),
            (set_apart("lyon", 1, 2, 1), false),
            (set_apart("lyon", 1, 1, 2), false),
        ] {
            assert_eq!(is_obsolete(&earlier, &shown), expected, "{earlier:?}");
        }
    }
}
