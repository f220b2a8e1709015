//! The list and the log laid side by side: which runs are still in effect, and which of them
//! stand in the way of the list.

use std::collections::{BTreeMap, BTreeSet};

use super::assess::Forgotten;
use super::classes::{Class, Classes, Wipers};
use super::log::{Run, RunLog, Trace};
use super::{Item, Step};
use crate::config::Config;
use crate::model::OperationId;

/// A place in the list.
pub(super) type ListIndex = usize;

/// A run that is in effect, or that was refused, or in doubt: no overwriting run came after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ran {
    /// Its index in the log; for a run that is only supposed, the log's length.
    pub(super) run: usize,
    pub(super) class: Class,
    /// Where the list has it.
    pub(super) place: Option<ListIndex>,
    pub(super) trace: Trace,
    pub(super) recalled: bool,
}

/// What is known about following the list from some runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Assessment {
    /// For each run in effect, whether the list cannot be followed while its effect is there.
    pub(super) offends: Vec<bool>,
    /// What has to run, in the list's order.
    pub(super) todo: Vec<ListIndex>,
    /// What never ran here, and stands before an operation in effect that would wipe it away.
    pub(super) unheard: Vec<ListIndex>,
    /// Whether something was refused before an operation ran that comes earlier in the list, though
    /// the matrix says that this makes no difference.
    pub(super) second_thoughts: bool,
}

impl Assessment {
    /// Whether running what is to do, in order, leads to the state of a fresh run.
    pub(super) fn is_good(&self) -> bool {
        !self.offends.contains(&true)
    }
}

/// Whether to run again what was refused, where the matrix says that it is in vain.
///
/// A pair that nobody listed counts as commuting, so the matrix often says so of operations such
/// as `create` and `inc`. Where it costs nothing but a run, better not to believe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusals {
    Believe,
    TryAgain,
}

/// The list and the log, with what planning asks about them again and again.
pub(super) struct View<'a> {
    pub(super) list: &'a [Item],
    pub(super) log: &'a RunLog,
    pub(super) config: &'a Config,
    pub(super) classes: Classes<'a>,
    list_classes: Vec<Class>,
    places: BTreeMap<&'a OperationId, ListIndex>,
}

impl<'a> View<'a> {
    pub(super) fn new(list: &'a [Item], log: &'a RunLog, config: &'a Config) -> Self {
        let logged = log.runs.iter().chain(log.snapshots.iter().flat_map(|saved| &saved.runs));
        let logged = logged.map(|run| &run.item).chain(&log.suspects);
        let items = list.iter().chain(logged);
        let classes = Classes::new(config, items);
        let list_classes = list.iter().map(|item| classes.of(item)).collect();
        let places = list.iter().enumerate().map(|(place, item)| (&item.id, place)).collect();
        Self { list, log, config, classes, list_classes, places }
    }

    pub(super) fn class_at(&self, place: ListIndex) -> Class {
        self.list_classes[place]
    }

    pub(super) fn run(&self, place: ListIndex) -> Step {
        Step::Run(self.list[place].clone())
    }

    pub(super) fn has_run(&self, place: ListIndex) -> bool {
        self.log.has_run(&self.list[place].id)
    }

    pub(super) fn forgotten(&self) -> Forgotten<'_> {
        Forgotten::new(&self.classes, &self.log.suspects)
    }

    /// Those of these runs that are not wiped away.
    pub(super) fn in_effect(&self, runs: &[Run]) -> Vec<Ran> {
        self.in_effect_without(runs, |_, _| false)
    }

    /// The same, as if some of the runs were not there.
    pub(super) fn in_effect_without(
        &self,
        runs: &[Run],
        skip: impl Fn(usize, &Run) -> bool,
    ) -> Vec<Ran> {
        let all = runs.iter().enumerate().filter(|(index, run)| !skip(*index, run));
        let mut all: Vec<_> = as_ran(&self.classes, all).collect();
        self.drop_settled_doubts(runs, &mut all);
        let mut left = unwiped(&self.classes, all.into_iter());
        for ran in &mut left {
            ran.place = self.places.get(&runs[ran.run].item.id).copied();
        }
        self.drop_repeated(&mut left);
        left
    }

    /// These runs, then one more at the end that succeeds.
    pub(super) fn with(&self, mut ran: Vec<Ran>, place: ListIndex) -> Vec<Ran> {
        ran.retain(|earlier| earlier.place != Some(place) || earlier.trace != Trace::Refused);
        let (run, class) = (self.log.runs.len(), self.class_at(place));
        ran.push(Ran { run, class, place: Some(place), trace: Trace::Took, recalled: false });
        unwiped(&self.classes, ran.into_iter())
    }

    /// Whether the effect of this run can be set anew by a second one, after those that ran up to
    /// there: it only assigns, and none of them made use of it.
    pub(super) fn can_be_repeated(&self, ran: &[Ran], at: usize, until: usize) -> bool {
        let one = ran[at];
        let is_unmoved = |later: &Ran| match later.trace {
            // It was refused where it should have been: nothing takes the first effect away.
            Trace::Refused => later.place.is_none() || later.place != one.place,
            _ => !self.may_read(later.class, one.class),
        };
        one.trace == Trace::Took
            && one.place.is_some()
            && self.classes.assigns(one.class)
            && ran[at + 1..until].iter().all(is_unmoved)
    }

    /// Whether what an operation does may depend on what an earlier one of the other class did.
    pub(super) fn may_read(&self, later: Class, earlier: Class) -> bool {
        let is_blind = self.classes.assigns(later) || self.classes.overwrites(later);
        !is_blind && !self.classes.commute(later, earlier)
    }

    /// Leaves out runs of which a later one of the same operation sets all anew.
    fn drop_repeated(&self, left: &mut Vec<Ran>) {
        let mut again = BTreeMap::new();
        let mut is_repeated = vec![false; left.len()];
        for (at, one) in left.iter().enumerate().rev() {
            let Some(place) = one.place.filter(|_| one.trace == Trace::Took) else { continue };
            let next = again.insert(place, at);
            is_repeated[at] = next.is_some_and(|next| self.can_be_repeated(left, at, next));
        }
        let mut repeated = is_repeated.into_iter();
        left.retain(|_| repeated.next() != Some(true));
    }

    /// Where twice is as good as once, a run in doubt is settled by the next one that ended.
    fn drop_settled_doubts(&self, runs: &[Run], all: &mut Vec<Ran>) {
        let Some(first) = all.iter().position(|ran| ran.trace.in_doubt()) else { return };
        let mut ended_later = BTreeSet::new();
        let mut is_settled = vec![false; all.len()];
        for (at, ran) in all.iter().enumerate().skip(first).rev() {
            let item = &runs[ran.run].item;
            if !ran.trace.in_doubt() {
                ended_later.insert(&item.id);
            } else if ended_later.contains(&item.id) {
                is_settled[at] = self.config.handling(&item.kind).idempotent;
            }
        }
        let mut settled = is_settled.into_iter();
        all.retain(|_| settled.next() != Some(true));
    }
}

/// What became of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunFate {
    /// A later run has wiped its effect away.
    pub(super) is_wiped: bool,
    /// It wiped away what came before it.
    pub(super) overwrites: bool,
}

/// What became of each of these runs.
pub(super) fn fates(runs: &[Run], config: &Config) -> Vec<RunFate> {
    let classes = Classes::new(config, runs.iter().map(|run| &run.item));
    let overwrites = |run: &Run| classes.overwrites(classes.of(&run.item));
    let fate = |run| RunFate { is_wiped: true, overwrites: overwrites(run) };
    let mut fates: Vec<_> = runs.iter().map(fate).collect();
    for ran in unwiped(&classes, as_ran(&classes, runs.iter().enumerate())) {
        fates[ran.run].is_wiped = false;
    }
    fates
}

fn unwiped(classes: &Classes<'_>, runs: impl DoubleEndedIterator<Item = Ran>) -> Vec<Ran> {
    let mut wipers = Wipers::new(classes);
    let mut left = Vec::new();
    for ran in runs.rev() {
        let is_wiped = wipers.wipe(ran.class);
        if !is_wiped {
            left.push(ran);
        }
        if !is_wiped && ran.trace != Trace::Refused {
            wipers.meet_living(ran.class);
        }
        // What came before a run of an incarnation that is lost is not known.
        if ran.trace == Trace::Took && !ran.recalled {
            wipers.meet_wiper(ran.class);
        }
    }
    left.reverse();
    left
}

fn as_ran<'r>(
    classes: &'r Classes<'_>,
    runs: impl DoubleEndedIterator<Item = (usize, &'r Run)>,
) -> impl DoubleEndedIterator<Item = Ran> {
    runs.map(|(index, run)| {
        let (class, trace, recalled) = (classes.of(&run.item), run.trace, run.recalled);
        Ran { run: index, class, place: None, trace, recalled }
    })
}
