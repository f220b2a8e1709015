//! The decision itself: follow the list if the runs so far allow it, else the cheapest repair
//! that leads back to it, else say that this site has diverged.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::assess::Forgotten;
use super::log::{RunLog, SnapshotId, Trace};
use super::view::{Assessment, ListIndex, Ran, Refusals, View};
use super::{Divergence, Health, Item, Next, Plan, Step};
use crate::config::Config;
use crate::model::OperationId;

/// A matrix with more independent parts than this is past repair by starting again; every choice
/// among them is tried.
const STARTS_CONSIDERED: usize = 5;

/// What was refused so often in a row is no operation to start again from: each try takes other
/// runs before it, and there must be an end to that.
const MOST_REFUSALS: u32 = 4;

pub(super) fn plan(list: &[Item], log: &RunLog, config: &Config) -> Plan {
    if let Some(Step::Restore(id)) = log.in_doubt()
        && log.snapshots().any(|known| known == *id)
    {
        // Until it is done, nothing is known of the application's state.
        return in_step(Next::Do(Step::Restore(*id)));
    }
    let view = View::new(list, log, config);
    let ran = view.in_effect(&log.runs);
    let now = view.assess(&ran, Refusals::Believe);
    if now.is_good() {
        return in_step(view.follow(&ran, now));
    }
    let repair = view
        .rebuild(&ran)
        .map(|place| Next::Do(view.run(place)))
        .or_else(|| view.settle_doubt(&ran, &now))
        .or_else(|| view.again(&ran).map(|place| Next::Do(view.run(place))))
        .or_else(|| view.undo(&ran, &now).map(|item| Next::Do(Step::Undo(item))))
        .or_else(|| view.restore().map(|id| Next::Do(Step::Restore(id))));
    repair.map_or_else(|| view.diverged(&ran, &now), in_step)
}

pub(super) fn has_run_all(
    list: &[Item],
    log: &RunLog,
    config: &Config,
    over: impl Fn(&OperationId) -> bool,
) -> bool {
    let view = View::new(list, log, config);
    let now = view.assess(&view.in_effect(&log.runs), Refusals::Believe);
    now.is_good() && !now.todo.iter().any(|place| over(&list[*place].id))
}

fn in_step(next: Next) -> Plan {
    Plan { next, health: Health::InStep }
}

impl View<'_> {
    /// The next step where nothing stands in the way.
    fn follow(&self, ran: &[Ran], mut now: Assessment) -> Next {
        // Whether an edit comes to nothing depends on no other.
        if now.second_thoughts && self.config.merged_as().is_none() {
            let again = self.assess(ran, Refusals::TryAgain);
            if again.is_good() {
                now = again;
            }
        }
        let unheard = now.unheard.iter().find(|place| self.can_be_heard(ran, **place));
        let Some(place) = unheard.or(now.todo.first()) else { return Next::Nothing };
        // What a state takes the place of is nothing to save.
        let is_state = self.list[*place].kind.is_state();
        let snapshot = self.log.due_snapshot(self.config).filter(|_| !is_state);
        Next::Do(snapshot.unwrap_or_else(|| self.run(*place)))
    }

    /// Whether an operation whose effect is to be wiped away at once may be run: only if it surely
    /// can be.
    fn can_be_heard(&self, ran: &[Ran], place: ListIndex) -> bool {
        let heard = self.with(ran.to_vec(), place);
        self.assess(&heard, Refusals::Believe).is_good() || self.rebuild(&heard).is_some()
    }

    /// The operation to run now so that, with all that follows it, the list is run again from an
    /// overwriting one.
    ///
    /// One start is enough, unless the matrix tells of independent parts of the state. The later it
    /// stands, the less there is to run.
    fn rebuild(&self, ran: &[Ran]) -> Option<ListIndex> {
        let starts = self.possible_starts(ran);
        let mut choices: Vec<_> = (1..1u32 << starts.len()).collect();
        choices.sort_by_key(|choice| (choice.count_ones(), Reverse(*choice)));
        let chosen = choices.into_iter().map(|choice| {
            let is_chosen = |bit: &usize| choice & (1 << bit) != 0;
            (0..starts.len()).filter(is_chosen).map(|bit| starts[bit]).collect::<Vec<_>>()
        });
        let starts = chosen.into_iter().find(|starts| self.leads_back(ran, starts))?;
        self.unheard_before(ran, &starts).or(starts.first().copied())
    }

    /// For each class that overwrites, the last one in the list that may succeed; in list order,
    /// and only the last few.
    fn possible_starts(&self, ran: &[Ran]) -> Vec<ListIndex> {
        let mut is_found = vec![false; self.classes.count()];
        let mut starts = Vec::new();
        for place in (0..self.list.len()).rev() {
            let class = self.class_at(place);
            let is_candidate = self.classes.overwrites(class) && !is_found[class];
            if is_candidate && starts.len() < STARTS_CONSIDERED && !self.fails_anyway(ran, place) {
                is_found[class] = true;
                starts.push(place);
            }
        }
        starts.reverse();
        starts
    }

    /// Whether this overwriting operation was refused, and what took effect since makes no difference
    /// to it: it commutes with it, or would wipe it away. Or it was refused all too often.
    fn fails_anyway(&self, ran: &[Ran], place: ListIndex) -> bool {
        let class = self.class_at(place);
        let makes_no_difference = |one: &Ran| {
            self.classes.commute(class, one.class) || self.classes.wipes(class, one.class)
        };
        let is_it = |one: &Ran| one.place == Some(place) && one.trace == Trace::Refused;
        let refused = ran.iter().position(is_it);
        let since =
            |index: usize| ran[index + 1..].iter().filter(|one| one.trace != Trace::Refused);
        self.log.refusals(&self.list[place].id) >= MOST_REFUSALS
            || is_in_vain(ran, place)
            || refused.is_some_and(|index| since(index).all(makes_no_difference))
    }

    /// Whether running these one after the other gives a state from which the list can be followed.
    fn leads_back(&self, ran: &[Ran], starts: &[ListIndex]) -> bool {
        let run = |ran: Vec<Ran>, place: &ListIndex| {
            // An earlier start may have wiped away what gave this one another chance.
            (!self.fails_anyway(&ran, *place)).then(|| self.with(ran, *place))
        };
        let rebuilt = starts.iter().try_fold(ran.to_vec(), run);
        rebuilt.is_some_and(|rebuilt| self.assess(&rebuilt, Refusals::Believe).is_good())
    }

    /// The first operation that never ran here and that the rebuild wipes away: now is the time to
    /// hear what becomes of it. Unless something is in doubt: then the rebuild comes first, since
    /// more runs on top of a doubt make it worse if the rebuild fails.
    fn unheard_before(&self, ran: &[Ran], starts: &[ListIndex]) -> Option<ListIndex> {
        let end = *starts.last()?;
        let is_wiped = |place: ListIndex| {
            let class = self.class_at(place);
            starts
                .iter()
                .any(|start| *start > place && self.classes.wipes(self.class_at(*start), class))
        };
        if ran.iter().any(|one| one.trace.in_doubt()) {
            return None;
        }
        (0..end).find(|place| is_wiped(*place) && !self.has_run(*place))
    }

    /// What settles whether an operation took effect.
    fn settle_doubt(&self, ran: &[Ran], now: &Assessment) -> Option<Next> {
        let doubts: Vec<_> = (0..ran.len()).rev().filter(|at| ran[*at].trace.in_doubt()).collect();
        let last = self.log.runs.get(ran[*doubts.first()?].run)?;
        let forgotten = self.forgotten();
        let by_itself =
            doubts.iter().find_map(|at| self.settle_one(ran, *at, &forgotten)).map(Next::Do);
        by_itself.or_else(|| self.restore().map(|id| Next::Do(Step::Restore(id)))).or_else(|| {
            let in_doubt = last.item.id.clone();
            Some(match self.beside_doubts(ran, now) {
                Some(place) => Next::Meanwhile(in_doubt, self.run(place)),
                None => Next::AwaitOperator(in_doubt),
            })
        })
    }

    /// The first operation left to run that commutes with all that is in doubt, and with all that has
    /// to wait for that: whatever turns out to have happened, the state is the same in the end.
    fn beside_doubts(&self, ran: &[Ran], now: &Assessment) -> Option<ListIndex> {
        let is_doubt = |one: &Ran| one.trace.in_doubt();
        let offends = ran.iter().zip(&now.offends).filter(|(_, offends)| **offends);
        if offends.into_iter().any(|(one, _)| !is_doubt(one)) {
            return None;
        }
        let mut held_up = vec![false; self.classes.count()];
        ran.iter().filter(|one| is_doubt(one)).for_each(|one| held_up[one.class] = true);
        now.todo.iter().copied().find(|place| {
            let class = self.class_at(*place);
            let minds = |other: usize| held_up[other] && !self.classes.commute(other, class);
            let goes_on = !(0..held_up.len()).any(minds) && !is_in_vain(ran, *place);
            held_up[class] |= !goes_on;
            goes_on
        })
    }

    fn settle_one(&self, ran: &[Ran], at: usize, forgotten: &Forgotten<'_>) -> Option<Step> {
        let (doubt, item) = (ran[at], &self.log.runs.get(ran[at].run)?.item);
        let handling = self.config.handling(&item.kind);
        // Twice is as good as once only if nothing that minds came in between.
        let minds = |later: &Ran| {
            later.trace != Trace::Refused && !self.classes.commute(later.class, doubt.class)
        };
        let is_last = || !forgotten.concerns(&doubt) && !ran[at + 1..].iter().any(minds);
        if handling.idempotent && doubt.place.is_some() && is_last() {
            return Some(Step::Run(item.clone()));
        }
        let can_tell = handling.check.is_some() && self.check_can_tell(ran, at);
        can_tell.then(|| Step::Check(item.clone()))
    }

    /// A check sees whether the effect is there. That does not tell a second run from the first
    /// one; nor a run that never was from one that was wiped away and lives on in another.
    fn check_can_tell(&self, ran: &[Ran], at: usize) -> bool {
        let doubt = ran[at];
        let id = |ran: &Ran| self.log.runs.get(ran.run).map(|run| &run.item.id);
        let is_same = |other: &Ran| other.trace != Trace::Refused && id(other) == id(&doubt);
        let may_wipe = |other: &Ran| {
            other.trace != Trace::Refused
                && !(other.recalled && doubt.recalled)
                && self.classes.overwrites(other.class)
                && !self.classes.commute(other.class, doubt.class)
        };
        let (before, after) = (&ran[..at], &ran[at + 1..]);
        !before.iter().chain(after).any(is_same) && !after.iter().any(may_wipe)
    }

    /// The operation to run now so that those which stand in the way, and only assign, can simply
    /// be run again after it.
    fn again(&self, ran: &[Ran]) -> Option<ListIndex> {
        let (mut left, mut repeated) = (ran.to_vec(), Vec::new());
        loop {
            let now = self.assess(&left, Refusals::Believe);
            if now.is_good() {
                // Nor may what runs before it is repeated make use of it.
                let is_read = |one: &Ran| {
                    let earlier = now.todo.iter().filter(|place| Some(**place) < one.place);
                    earlier.into_iter().any(|place| self.may_read(self.class_at(*place), one.class))
                };
                return now.todo.first().copied().filter(|_| !repeated.iter().any(is_read));
            }
            let forgotten = self.forgotten();
            let can_be = |at: usize| {
                !forgotten.concerns(&left[at]) && self.can_be_repeated(&left, at, left.len())
            };
            let offenders = (0..left.len()).filter(|at| now.offends[*at]);
            if !offenders.into_iter().all(can_be) {
                return None;
            }
            let offends = now.offends.iter().zip(&left).filter(|(offends, _)| **offends);
            repeated.extend(offends.map(|(_, one)| *one));
            let mut offends = now.offends.into_iter();
            left.retain(|_| offends.next() != Some(true));
        }
    }

    /// The operation to take back now, so that with the others that must go the rest is right.
    fn undo(&self, ran: &[Ran], now: &Assessment) -> Option<Item> {
        let next = self.must_go(ran, now)?.last().copied()?;
        let mut gone = BTreeSet::new();
        let (mut ran, mut now) = (ran.to_vec(), Assessment::clone(now));
        while !now.is_good() {
            let mut going = self.must_go(&ran, &now)?;
            // The undo of an overwriting operation brings back what it had wiped away: one by one.
            if going.iter().any(|run| self.log_overwrites(*run)) {
                let last = going.pop_last()?;
                going = BTreeSet::from([last]);
            }
            gone.append(&mut going);
            let since = gone.first().copied().unwrap_or(usize::MAX);
            ran = self.in_effect_without(&self.log.runs, |index, run| {
                gone.contains(&index) || (index > since && run.trace == Trace::Refused)
            });
            now = self.assess(&ran, Refusals::Believe);
        }
        Some(self.log.runs[next].item.clone())
    }

    fn log_overwrites(&self, run: usize) -> bool {
        self.classes.overwrites(self.classes.of(&self.log.runs[run].item))
    }

    /// The runs that must be taken back, oldest first; `None` if not all of them can be.
    ///
    /// An operation can be taken back if only such as commute with it ran after it; so with each
    /// offender go all later ones that do not commute with one that goes.
    fn must_go(&self, ran: &[Ran], now: &Assessment) -> Option<BTreeSet<usize>> {
        let mut is_gone = vec![false; self.classes.count()];
        let mut going = BTreeSet::new();
        let forgotten = self.forgotten();
        for (index, one) in ran.iter().enumerate().filter(|(_, one)| one.trace != Trace::Refused) {
            let minds = |class| is_gone[class] && !self.classes.commute(class, one.class);
            if now.offends[index] || (0..is_gone.len()).any(minds) {
                is_gone[one.class] = true;
                going.insert(one.run);
                if !self.can_go(one, &forgotten) {
                    return None;
                }
            }
        }
        Some(going)
    }

    fn can_go(&self, one: &Ran, forgotten: &Forgotten<'_>) -> bool {
        let run = &self.log.runs[one.run];
        let has_undo = self.config.handling(&run.item.kind).undo.is_some();
        let brings_back_unknown = run.fixed || (run.recalled && self.classes.overwrites(one.class));
        let is_certain = run.trace == Trace::Took && !forgotten.concerns(one);
        has_undo && is_certain && !brings_back_unknown
    }

    /// The latest snapshot from which the list can be followed.
    fn restore(&self) -> Option<SnapshotId> {
        self.config.state.as_ref()?;
        let is_good = |runs| self.assess(&self.in_effect(runs), Refusals::Believe).is_good();
        let saved = self.log.snapshots.iter().rev().find(|saved| is_good(&saved.runs))?;
        Some(saved.id)
    }

    /// Nothing helps. What is left to do is done all the same, so that the site stays of use; but
    /// nothing that would wipe away what comes later in the list, or there would be no end to it.
    fn diverged(&self, ran: &[Ran], now: &Assessment) -> Plan {
        let does_harm = |place: ListIndex| {
            let class = self.class_at(place);
            let is_hit = |one: &Ran| {
                let comes_later = one.place > Some(place) && one.trace != Trace::Refused;
                comes_later && self.classes.wipes(class, one.class)
            };
            self.classes.overwrites(class) && ran.iter().any(is_hit)
        };
        let is_useful = |place: &ListIndex| !does_harm(*place) && !is_in_vain(ran, *place);
        let place = now.todo.iter().copied().find(is_useful);
        let next = place.map_or(Next::Nothing, |place| Next::Do(self.run(place)));
        Plan { next, health: Health::Diverged { why: self.why(ran, now) } }
    }

    fn why(&self, ran: &[Ran], now: &Assessment) -> Divergence {
        let index = now.offends.iter().position(|offends| *offends).unwrap_or_default();
        let (one, id) = (ran[index], self.log.runs[ran[index].run].item.id.clone());
        let Some(place) = one.place else { return Divergence::LeftOut { ran: id } };
        let later =
            ran[index + 1..].iter().filter_map(|ran| ran.place).chain(now.todo.iter().copied());
        let mut late = later.filter(|other| {
            *other < place && !self.classes.commute(one.class, self.class_at(*other))
        });
        match late.next() {
            Some(other) => Divergence::Order { ran: id, before: self.list[other].id.clone() },
            None => Divergence::Forgotten { ran: id },
        }
    }
}

/// Whether running this one again would fail as it did: nothing took effect since, or it failed
/// with just what comes before it in the list in effect, as in a fresh run.
fn is_in_vain(ran: &[Ran], place: ListIndex) -> bool {
    let is_it = |one: &Ran| one.place == Some(place) && one.trace == Trace::Refused;
    let Some(index) = ran.iter().position(is_it) else { return false };
    let effective = |runs: &[Ran], is_right: &dyn Fn(Option<ListIndex>) -> bool| {
        let mut took = runs.iter().filter(|one| one.trace != Trace::Refused);
        took.all(|one| is_right(one.place) && !one.trace.in_doubt())
    };
    let (before, after) = (&ran[..index], &ran[index + 1..]);
    let as_in_list = effective(before, &|other| other.is_some_and(|other| other < place))
        && effective(after, &|other| other.is_none_or(|other| other > place));
    as_in_list || effective(after, &|_| false)
}
