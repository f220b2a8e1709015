//! Whether the list can be followed from what ran, and what is left to do.
//!
//! Two orders of the same operations give the same state if every two of them that do not commute
//! come in the same order in both. So: the runs in effect, followed by what is still to do, are
//! compared with the list, and a run *offends* if it is not in the list at all or came before an
//! operation that should have come first. A refused run did nothing, and is right where it stands
//! as long as it met the same operations before it as in the list, up to swaps.

use super::Item;
use super::classes::{Class, Classes, Wipers};
use super::log::{RunEffect, Trace};
use super::view::{Assessment, ListIndex, Ran, Refusals, View};

/// For each class, the earliest place in the list among the operations met so far.
struct Earliest<'a> {
    classes: &'a Classes<'a>,
    places: Vec<Option<ListIndex>>,
}

impl<'a> Earliest<'a> {
    fn new(classes: &'a Classes<'a>) -> Self {
        Self { classes, places: vec![None; classes.count()] }
    }

    fn meet(&mut self, class: Class, place: ListIndex) {
        let earliest = &mut self.places[class];
        *earliest = Some(earliest.map_or(place, |known| known.min(place)));
    }

    /// Whether one of those met comes before this place and does not commute with this class.
    fn conflicts(&self, class: Class, place: ListIndex) -> bool {
        self.before(place).any(|other| !self.classes.commute(class, other))
    }

    /// The classes of which one was met that comes before this place.
    fn before(&self, place: ListIndex) -> impl Iterator<Item = Class> {
        let is_before = move |met: &Option<ListIndex>| met.is_some_and(|met| met < place);
        (0..).zip(&self.places).filter(move |(_, met)| is_before(met)).map(|(class, _)| class)
    }
}

/// How a refusal stands after what ran since.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RefusalState {
    Stands,
    /// Something ran since that comes earlier in the list.
    Doubtful,
    /// And the matrix says that it may make a difference.
    Stale,
}

/// One assessment in the making.
struct Assessor<'a> {
    view: &'a View<'a>,
    ran: &'a [Ran],
    /// For each place of the list, the run that is in effect.
    at: Vec<Option<usize>>,
    /// For each place of the list, whether one in effect that comes later wipes it away.
    is_shadowed: Vec<bool>,
}

impl View<'_> {
    /// Whether the list can be followed from these runs, and what is left to do.
    ///
    /// What is to do is judged as if all of it could succeed, so that a good assessment stays good
    /// however the runs end.
    pub(super) fn assess(&self, ran: &[Ran], refusals: Refusals) -> Assessment {
        let mut assessor = Assessor {
            view: self,
            ran,
            at: vec![None; self.list.len()],
            is_shadowed: vec![false; self.list.len()],
        };
        assessor.take_places();
        assessor.cast_shadows();
        let verdicts = assessor.refusals();
        let mut assessment = assessor.work(&verdicts, refusals);
        assessment.offends = assessor.offenders(&assessment.todo);
        assessment
    }
}

impl Assessor<'_> {
    fn take_places(&mut self) {
        for (index, ran) in self.ran.iter().enumerate() {
            if let Some(place) = ran.place {
                self.at[place] = Some(index);
            }
        }
    }

    /// What was refused, or is still to do, need not be looked at: if it minds what would be wiped
    /// away, it minds what wipes it away as well, and offends where the two come in the wrong
    /// order.
    fn cast_shadows(&mut self) {
        let mut wipers = Wipers::new(&self.view.classes);
        for place in (0..self.at.len()).rev() {
            let class = self.view.class_at(place);
            let is_shadowed = wipers.wipe(class);
            self.is_shadowed[place] = is_shadowed;
            let trace = self.at[place].map(|run| self.ran[run].trace);
            if !is_shadowed && trace.is_some_and(|trace| trace != Trace::Refused) {
                wipers.meet_living(class);
            }
            if trace == Some(Trace::Took) || (is_shadowed && self.has_taken(place)) {
                wipers.meet_wiper(class);
            }
        }
    }

    /// Whether its last run here succeeded, whatever became of the effect.
    fn has_taken(&self, place: ListIndex) -> bool {
        self.view.log.outcome(&self.view.list[place].id) == Some(RunEffect::Took)
    }

    /// For each run, how it stands if it was refused.
    fn refusals(&self) -> Vec<RefusalState> {
        let mut since = Earliest::new(&self.view.classes);
        let mut verdicts = vec![RefusalState::Stands; self.ran.len()];
        for (index, ran) in self.ran.iter().enumerate().rev() {
            match (ran.trace, ran.place) {
                (Trace::Refused, Some(place)) if since.conflicts(ran.class, place) => {
                    verdicts[index] = RefusalState::Stale;
                }
                (Trace::Refused, Some(place)) if since.before(place).next().is_some() => {
                    verdicts[index] = RefusalState::Doubtful;
                }
                (Trace::Took, Some(place)) => since.meet(ran.class, place),
                _ => {}
            }
        }
        verdicts
    }

    /// What is left to do; the list is walked once, in order.
    fn work(&self, verdicts: &[RefusalState], refusals: Refusals) -> Assessment {
        let mut work = Assessment::default();
        let mut to_do = Earliest::new(&self.view.classes);
        for place in 0..self.at.len() {
            let class = self.view.class_at(place);
            let due = match self.at[place] {
                None if !self.is_shadowed[place] => true,
                None => {
                    if !self.view.has_run(place) {
                        work.unheard.push(place);
                    }
                    false
                }
                Some(run) if self.ran[run].trace != Trace::Refused || self.is_shadowed[place] => {
                    false
                }
                Some(run) => {
                    let doubtful = verdicts[run] == RefusalState::Doubtful;
                    work.second_thoughts |= doubtful;
                    verdicts[run] == RefusalState::Stale
                        || to_do.conflicts(class, place)
                        || (doubtful && refusals == Refusals::TryAgain)
                }
            };
            if due {
                to_do.meet(class, place);
                work.todo.push(place);
            }
        }
        work
    }

    /// The runs that stand in the way, if these places of the list are still to run.
    fn offenders(&self, todo: &[ListIndex]) -> Vec<bool> {
        let view = self.view;
        let mut later = Earliest::new(&view.classes);
        let mut is_due = vec![false; view.list.len()];
        for place in todo {
            is_due[*place] = true;
            later.meet(view.class_at(*place), *place);
        }
        let forgotten = view.forgotten();
        let mut offends = vec![false; self.ran.len()];
        for (index, ran) in self.ran.iter().enumerate().rev() {
            offends[index] = match (ran.trace, ran.place) {
                (Trace::Refused, _) => false,
                (Trace::Took, Some(place)) => {
                    later.conflicts(ran.class, place) || forgotten.concerns(ran)
                }
                // Nothing else is certain while one is in doubt: it may have wiped others away.
                (Trace::Took, None) | (Trace::MayHaveRun | Trace::MayBeUndone, _) => true,
            };
            if let Some(place) = ran.place
                && !is_due[place]
                && (ran.trace != Trace::Refused || !self.is_shadowed[place])
            {
                later.meet(ran.class, place);
            }
        }
        offends
    }
}

/// What may have run in an incarnation that is lost, counted by class: whether it did, when, and
/// what it had a part in is not known.
pub(super) struct Forgotten<'a> {
    classes: &'a Classes<'a>,
    counts: Vec<usize>,
}

impl<'a> Forgotten<'a> {
    pub(super) fn new(classes: &'a Classes<'a>, suspects: &[Item]) -> Self {
        let mut counts = vec![0; classes.count()];
        for suspect in suspects {
            counts[classes.of(suspect)] += 1;
        }
        Self { classes, counts }
    }

    /// Whether this run is one of them and another one may have made a difference to it.
    pub(super) fn concerns(&self, one: &Ran) -> bool {
        let itself = |class: Class| usize::from(class == one.class);
        let minds = |class: Class| {
            !self.classes.commute(class, one.class) && self.counts[class] > itself(class)
        };
        one.recalled && (0..self.counts.len()).any(minds)
    }
}
