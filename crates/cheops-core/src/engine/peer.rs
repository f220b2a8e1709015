//! What another site of a resource knows of it, as far as this site can tell.

use crate::model::{Author, Incarnation, Vector};

#[derive(Debug, Default)]
pub(super) struct Peer {
    /// In which incarnation of its disk it said so.
    pub(super) incarnation: Option<Incarnation>,
    /// What it said it knows. Never more than it does.
    pub(super) knows: Vector,
    /// That, and what was sent to it since: no need to send it again unless it got lost.
    pub(super) sent: Vector,
    /// What it was last told that this site knows.
    pub(super) told: Vector,
    /// What an earlier incarnation of it may have known, and so may have run.
    pub(super) earlier_incarnation: Vector,
    /// Whether it just said what it knows, so that everything it lacks is on its way.
    pub(super) catching_up: bool,
    /// Whether it was asked what it knows and has not answered yet.
    pub(super) asked: bool,
    /// When to ask (again).
    pub(super) ask_ms: Option<u64>,
    /// Whether this site once knew all that it knew, since the start.
    pub(super) was_in_step: bool,
    /// What it says it has forgotten: of that, it will never say any more what became of it there.
    pub(super) pruned: Vector,
    /// What of `knows` is on this site's disk.
    pub(super) recorded: Vector,
}

impl Peer {
    /// Takes note of what it says it knows.
    pub(super) fn says(&mut self, incarnation: Incarnation, knows: &Vector) {
        self.incarnation = Some(incarnation);
        self.knows.join(knows);
        self.sent.join(knows);
    }

    /// What it knows of that author beyond that number counts no more.
    pub(super) fn limit(&mut self, author: &Author, after: u64) {
        for vector in [
            &mut self.knows,
            &mut self.sent,
            &mut self.told,
            &mut self.earlier_incarnation,
            &mut self.recorded,
        ] {
            vector.limit(author, after);
        }
    }

    /// It came back without its memory. What it may have run before stays on record.
    pub(super) fn lost_its_memory(&mut self, incarnation: Incarnation, we_know: &Vector) {
        self.earlier_incarnation.join(we_know);
        let earlier_incarnation = std::mem::take(&mut self.earlier_incarnation);
        *self = Self { incarnation: Some(incarnation), earlier_incarnation, ..Self::default() };
    }
}
