//! That a site keeps a state, and can do without the operations before it, as it says beside a reply.
//!
//! When all sites of a resource have said so of the same state, it stands for those operations: each
//! site forgets them. It need not be understood: a site of a version that does not know of it never
//! says so itself, and as long as it does not, nobody forgets anything.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    Entry, EntryBody, EntryId, Extension, Fingerprint, OperationId, OperationType, Proof, SignedBy,
    SiteId, Vector,
};

const NAME: &str = "keeps-state";

/// So long may be what is said of it: who would have to say more forgets nothing.
const MOST_BYTES: usize = 16 * 1024;

/// So large may be a state that stands for operations: of a larger one, every operation is kept.
pub const MAX_STATE_BYTES: u64 = 64 * 1024 * 1024;

/// A state that stands for all operations before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateFloor {
    /// That of the list after which it was read.
    pub list: Fingerprint,
    /// That of the state: the name of its content.
    pub state: Fingerprint,
    /// How many bytes it has.
    pub size: u64,
    /// That of the command which writes it.
    pub write: Fingerprint,
    /// The sites that have it.
    pub sites: BTreeSet<SiteId>,
    /// The last operations before it: what the next ones are made on. There is one at least.
    pub heads: Vec<OperationId>,
    /// The types of the operations of the list, that of the last one first.
    pub kinds: Vec<OperationType>,
}

impl StateFloor {
    /// What stands for it among the operations that are run: the name of no operation there can be.
    pub fn stand_in(&self) -> Option<OperationId> {
        let hash = Fingerprint::of(&[self.list.0, self.state.0].concat()).0;
        let number = u64::from_le_bytes(std::array::from_fn(|at| hash[at]));
        let author = self.heads.first()?.0.author.clone();
        Some(OperationId(EntryId { author, n: number | (1 << 63) }))
    }
}

/// What a site says: that it has this state, and needs nothing before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptState {
    /// The state.
    pub floor: StateFloor,
    /// What it can do without, as far as all sites know it.
    pub upto: Vector,
}

fn joined<T: ToString>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" ")
}

fn split<T: std::str::FromStr, C: FromIterator<T>>(line: Option<&str>) -> Option<C> {
    line?.split(' ').filter(|one| !one.is_empty()).map(|one| one.parse().ok()).collect()
}

impl Extension {
    /// What goes beside a reply; nothing, if it is too much to be said.
    pub(crate) fn kept_state(kept: &KeptState) -> Option<Self> {
        let StateFloor { list, state, size, write, sites, heads, kinds } = &kept.floor;
        let upto = kept.upto.iter().map(|(author, n)| EntryId { author: author.clone(), n });
        let lines = [
            format!("{list} {state} {write} {size}"),
            joined(sites),
            joined(heads),
            joined(kinds),
            joined(upto),
        ];
        let value = lines.join("\n").into_bytes();
        let fits = value.len() <= MOST_BYTES && !heads.is_empty() && *size <= MAX_STATE_BYTES;
        fits.then(|| Self { name: NAME.to_owned(), must_understand: false, value })
    }
}

impl Entry {
    /// What its author keeps and can do without, if it is a reply that says so. Only its own word counts.
    pub fn kept_state(&self) -> Option<KeptState> {
        let EntryBody::Reply(_) = &self.body else { return None };
        let said = self.extra.iter().find(|extension| extension.name == NAME)?;
        let is_vouched_for = |proof: &Proof| matches!(proof.by, SignedBy::Voucher(_));
        if said.value.len() > MOST_BYTES || self.proof().is_some_and(is_vouched_for) {
            return None;
        }
        let mut lines = std::str::from_utf8(&said.value).ok()?.split('\n');
        let [list, state, write, size] =
            <[&str; 4]>::try_from(lines.next()?.split(' ').collect::<Vec<_>>()).ok()?;
        let floor = StateFloor {
            list: Fingerprint::parse(list)?,
            state: Fingerprint::parse(state)?,
            write: Fingerprint::parse(write)?,
            size: size.parse().ok()?,
            sites: split(lines.next())?,
            heads: split(lines.next())?,
            kinds: split(lines.next())?,
        };
        let upto = split::<EntryId, Vec<_>>(lines.next())?.into_iter().collect();
        let is_whole =
            !floor.heads.is_empty() && floor.size <= MAX_STATE_BYTES && lines.next().is_none();
        is_whole.then_some(KeptState { floor, upto })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Author, Incarnation, Reply, ResourceId, Stamp, Status};
    use super::*;

    fn id(n: u64) -> EntryId {
        let author = Author { site: SiteId::new("le-havre").unwrap(), incarnation: Incarnation(7) };
        EntryId { author, n }
    }

    fn kept() -> KeptState {
        let floor = StateFloor {
            list: Fingerprint::of(b"list"),
            state: Fingerprint::of(b"state"),
            size: 5,
            write: Fingerprint::of(b"cat > x"),
            sites: ["le-havre", "paris"].map(|site| SiteId::new(site).unwrap()).into(),
            heads: vec![OperationId(id(3))],
            kinds: vec![OperationType::new("inc").unwrap()],
        };
        KeptState { floor, upto: [id(4)].into_iter().collect() }
    }

    fn read(beside: Extension) -> Option<KeptState> {
        let reply = Reply {
            id: id(9),
            stamp: Stamp::default(),
            operation: OperationId(id(3)),
            status: Status::Ok,
            outcome: None,
        };
        let (resource, body) = (ResourceId::new("x").unwrap(), EntryBody::Reply(reply));
        Entry::new(&resource, Default::default(), body, vec![beside]).kept_state()
    }

    #[test]
    fn what_is_kept_is_said_and_what_nobody_understands_is_passed_over() {
        let said = Extension::kept_state(&kept()).unwrap();
        let text = String::from_utf8(said.value.clone()).unwrap();
        assert_eq!(read(said.clone()), Some(kept()));
        for strange in [
            String::new(),
            "x".to_owned(),
            format!("{text}\nmore"),
            text.replace("le-havre-", "-"),
            text.lines().take(4).collect::<Vec<_>>().join("\n"),
        ] {
            let strange = Extension { value: strange.clone().into_bytes(), ..said.clone() };
            assert_eq!(read(strange.clone()), None, "{strange:?}");
        }
        let mut much = kept();
        much.upto = (0..2_000)
            .map(|incarnation| {
                let mut id = id(1);
                id.author.incarnation = Incarnation(incarnation);
                id
            })
            .collect();
        assert!(Extension::kept_state(&much).is_none());
    }

    #[test]
    fn what_stands_for_a_state_is_the_name_of_no_operation() {
        let one = kept().floor;
        let other = StateFloor { state: Fingerprint::of(b"other"), ..one.clone() };
        assert!(one.stand_in().unwrap().0.n > u64::MAX / 2);
        assert_ne!(one.stand_in(), other.stand_in());
    }
}
