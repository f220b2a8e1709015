//! What another site of a resource knows of it, as far as this site can tell.

use crate::model::{Incarnation, Vector};

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
    /// Whether it may not have been shown yet what does not count: any one message may get lost, and who
    /// is not shown takes this site to know what it knows.
    pub(super) may_lack_evidence: bool,
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

    /// What it knows, in every respect.
    pub(super) fn knowledge(&mut self) -> [&mut Vector; 5] {
        [
            &mut self.knows,
            &mut self.sent,
            &mut self.told,
            &mut self.earlier_incarnation,
            &mut self.recorded,
        ]
    }

    /// Whether it knows all of that, and what does not count of it.
    pub(super) fn is_in_step_with(&self, knows: &Vector) -> bool {
        !self.may_lack_evidence && self.knows.covers(knows)
    }

    /// It came back without its memory. What it may have run before stays on record.
    pub(super) fn lost_its_memory(&mut self, incarnation: Incarnation, we_know: &Vector) {
        self.earlier_incarnation.join(we_know);
        let earlier_incarnation = std::mem::take(&mut self.earlier_incarnation);
        *self = Self { incarnation: Some(incarnation), earlier_incarnation, ..Self::default() };
    }
}
