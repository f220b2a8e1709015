//! Who is told what next: a queue for each target, so that none waits for another.
//!
//! Everybody is served from one reading of the log, whose place is the *head*. A target that cannot
//! keep up drops out of it once a few deliveries wait, and is read for alone when those are
//! through. So what waits is bounded, and the head never waits for a target.
//!
//! Nothing here waits or touches the disk: `follow` does, as it is told.

use std::collections::{BTreeMap, VecDeque};

use cheops_core::config::HookAction;
use cheops_store::Seq;

/// How many targets are served at once. With more, the head waits until one is through.
const MOST_QUEUES: usize = 64;
/// How many deliveries wait for a target before it is read for alone.
const MOST_WAITING: usize = 32;
/// How many deliveries to one target are under way at once.
const AT_ONCE: usize = 4;

/// Something to be told, by its place in the log.
pub(super) struct QueuedItem<T> {
    pub(super) seq: Seq,
    pub(super) target: HookAction,
    pub(super) what: T,
}

/// How far everyone has come, to be made durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HookPositions {
    /// What of these was kept is to be forgotten: they are where the head is.
    pub(super) through: Vec<HookAction>,
    /// These are told everything up to here, and not what follows. To be kept before the head is,
    /// or a crash between would lose what they have not been told.
    pub(super) behind: Vec<(HookAction, Seq)>,
    pub(super) head: Seq,
}

pub(super) struct TargetQueues<T> {
    head: Seq,
    queues: BTreeMap<HookAction, TargetQueue<T>>,
    through: Vec<HookAction>,
}

struct TargetQueue<T> {
    reads: Reads,
    waiting: VecDeque<(Seq, T)>,
    under_way: Vec<Seq>,
    kept: KeptPlace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    WithAll,
    /// Everything up to here was read for it.
    Alone(Seq),
}

/// What the disk knows of a queue's own place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeptPlace {
    Nothing,
    Unsure,
    At(Seq),
}

impl<T> TargetQueues<T> {
    /// As they were kept: the head, and those that were behind it.
    pub(super) fn new(head: Seq, behind: impl IntoIterator<Item = (HookAction, Seq)>) -> Self {
        let queue = |(target, place)| {
            let queue =
                TargetQueue { kept: KeptPlace::At(place), ..TargetQueue::new(Reads::Alone(place)) };
            (target, queue)
        };
        let queues = behind.into_iter().map(queue).collect();
        Self { head, queues, through: Vec::new() }
    }

    pub(super) fn head(&self) -> Seq {
        self.head
    }

    /// Whether there may be one more target.
    pub(super) fn has_room(&self) -> bool {
        self.queues.len() < MOST_QUEUES
    }

    /// Takes in what was read from the head on: all that is to be told up to `next`, in order.
    pub(super) fn take(&mut self, items: Vec<QueuedItem<T>>, next: Seq) {
        let mut last = None;
        for item in items {
            let is_new = !self.queues.contains_key(&item.target);
            // What happened at one place is taken in as a whole, or places would say too little.
            if is_new && !self.has_room() && last != Some(item.seq) {
                self.head = before(item.seq);
                return;
            }
            last = Some(item.seq);
            let queue =
                self.queues.entry(item.target).or_insert_with(|| TargetQueue::new(Reads::WithAll));
            if queue.reads == Reads::WithAll && !queue.take(item.seq, item.what) {
                queue.reads = Reads::Alone(before(item.seq));
            }
        }
        self.head = next;
    }

    /// Someone who must be read for alone, and from where on.
    pub(super) fn behind(&self) -> Option<(HookAction, Seq)> {
        self.queues.iter().find_map(|(target, queue)| match queue.reads {
            Reads::Alone(place) if queue.waiting.is_empty() && place < self.head => {
                Some((target.clone(), place))
            }
            _ => None,
        })
    }

    /// Takes in what was read for one alone. What is for others is theirs to hear.
    pub(super) fn take_for(&mut self, target: &HookAction, items: Vec<QueuedItem<T>>, next: Seq) {
        let Some(queue) = self.queues.get_mut(target) else { return };
        let its = items.into_iter().filter(|item| item.target == *target && item.seq <= self.head);
        for item in its {
            if !queue.take(item.seq, item.what) {
                queue.reads = Reads::Alone(before(item.seq));
                return;
            }
        }
        queue.reads = if next < self.head { Reads::Alone(next) } else { Reads::WithAll };
    }

    /// What may be told now; each is under way until it has [`ended`](Self::ended).
    pub(super) fn begin(&mut self) -> Vec<QueuedItem<T>> {
        let mut begun = Vec::new();
        for (target, queue) in &mut self.queues {
            while queue.under_way.len() < AT_ONCE
                && let Some((seq, what)) = queue.waiting.pop_front()
            {
                queue.under_way.push(seq);
                begun.push(QueuedItem { seq, target: target.clone(), what });
            }
        }
        begun
    }

    /// It was told, or given up.
    pub(super) fn ended(&mut self, target: &HookAction, seq: Seq) {
        let Some(queue) = self.queues.get_mut(target) else { return };
        if let Some(at) = queue.under_way.iter().position(|under_way| *under_way == seq) {
            queue.under_way.swap_remove(at);
        }
    }

    /// Lets those go that are through.
    pub(super) fn let_go(&mut self) {
        let through = self.queues.extract_if(.., |_, queue| queue.is_through());
        let kept = through.filter(|(_, queue)| queue.kept != KeptPlace::Nothing);
        self.through.extend(kept.map(|(target, _)| target));
    }

    /// Whether everyone was told everything.
    pub(super) fn are_through(&self) -> bool {
        self.queues.is_empty()
    }

    /// What is to be kept now; [`TargetQueues::kept`] says that it was.
    pub(super) fn places(&mut self) -> HookPositions {
        let mut behind = Vec::new();
        for (target, queue) in &mut self.queues {
            let place = queue.place(self.head);
            if queue.kept != KeptPlace::At(place) {
                queue.kept = KeptPlace::Unsure;
                behind.push((target.clone(), place));
            }
        }
        HookPositions { through: self.through.clone(), behind, head: self.head }
    }

    pub(super) fn kept(&mut self, places: HookPositions) {
        self.through.retain(|target| !places.through.contains(target));
        for (target, place) in places.behind {
            if let Some(queue) = self.queues.get_mut(&target) {
                queue.kept = KeptPlace::At(place);
            }
        }
    }
}

impl<T> TargetQueue<T> {
    fn new(reads: Reads) -> Self {
        Self { reads, waiting: VecDeque::new(), under_way: Vec::new(), kept: KeptPlace::Nothing }
    }

    /// Whether there was room for it. For what happened at one place there is, or for nothing.
    fn take(&mut self, seq: Seq, what: T) -> bool {
        let goes_on = self.waiting.back().is_some_and(|(last, _)| *last == seq);
        let fits = goes_on || self.waiting.len() < MOST_WAITING;
        if fits {
            self.waiting.push_back((seq, what));
        }
        fits
    }

    fn is_through(&self) -> bool {
        self.reads == Reads::WithAll && self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// Up to where everything was told.
    fn place(&self, head: Seq) -> Seq {
        let waiting = self.waiting.front().map(|(seq, _)| seq);
        let untold = self.under_way.iter().chain(waiting).min();
        match (untold, self.reads) {
            (Some(untold), _) => before(*untold),
            (None, Reads::Alone(place)) => place,
            (None, Reads::WithAll) => head,
        }
    }
}

fn before(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> HookAction {
        HookAction::Command(name.to_owned())
    }

    fn items(name: &str, places: impl IntoIterator<Item = u64>) -> Vec<QueuedItem<()>> {
        let item = |seq| QueuedItem { seq: Seq(seq), target: target(name), what: () };
        places.into_iter().map(item).collect()
    }

    fn begun(queues: &mut TargetQueues<()>) -> Vec<(HookAction, Seq)> {
        queues.begin().into_iter().map(|item| (item.target, item.seq)).collect()
    }

    /// Tells one target all it can be told, reading the log for it where it must; what it heard.
    fn serve(queues: &mut TargetQueues<()>, name: &str, log: &[u64]) -> Vec<u64> {
        let mut heard = Vec::new();
        loop {
            if let Some((behind, place)) = queues.behind() {
                let page = log.iter().copied().filter(|seq| *seq > place.0).take(10);
                let page: Vec<_> = page.collect();
                let next = page.last().map_or(queues.head(), |last| Seq(*last));
                queues.take_for(&behind, items(name, page), next);
            }
            let now = begun(queues);
            if now.is_empty() && queues.behind().is_none() {
                return heard;
            }
            for (of, seq) in now {
                assert_eq!(of, target(name));
                queues.ended(&of, seq);
                heard.push(seq.0);
            }
        }
    }

    #[test]
    fn a_target_that_takes_nothing_holds_nobody_up_and_misses_nothing() {
        let mut queues = TargetQueues::new(Seq(0), []);
        queues.take(items("dead", 1..=100), Seq(100));
        let stuck = begun(&mut queues);
        assert_eq!(stuck.len(), AT_ONCE, "and no more wait for one target at once");
        queues.take(items("well", 101..=103), Seq(103));

        assert_eq!(begun(&mut queues), [101, 102, 103].map(|seq| (target("well"), Seq(seq))));
        for seq in 101..=103 {
            queues.ended(&target("well"), Seq(seq));
        }
        queues.let_go();
        let places = queues.places();
        assert_eq!((places.head, places.behind), (Seq(103), vec![(target("dead"), Seq(0))]));

        // It is well again.
        for (of, seq) in stuck {
            queues.ended(&of, seq);
        }
        let log: Vec<u64> = (1..=100).collect();
        let heard = serve(&mut queues, "dead", &log);
        assert_eq!(heard, (5..=100).collect::<Vec<_>>(), "each once");
        queues.let_go();
        assert!(queues.are_through());
    }

    #[test]
    fn after_a_restart_each_goes_on_where_it_was() {
        let mut queues = TargetQueues::new(Seq(50), [(target("late"), Seq(7))]);
        queues.take(items("late", [51]), Seq(51));

        let log: Vec<u64> = (1..=51).collect();
        assert_eq!(serve(&mut queues, "late", &log), (8..=51).collect::<Vec<_>>());

        queues.let_go();
        let places = queues.places();
        assert_eq!((places.through.clone(), places.behind.len()), (vec![target("late")], 0));
        queues.kept(places);
        assert_eq!(queues.places().through, [], "it is forgotten once");
    }

    #[test]
    fn whatever_is_not_told_is_after_its_place() {
        let mut queues = TargetQueues::new(Seq(0), []);
        queues.take(items("slow", [3, 3, 5, 9]), Seq(10));
        assert_eq!(begun(&mut queues).len(), 4);
        for (ended, place) in [(3, 2), (9, 2), (3, 4), (5, 10)] {
            queues.ended(&target("slow"), Seq(ended));
            assert_eq!(queues.places().behind, [(target("slow"), Seq(place))]);
        }
    }

    #[test]
    fn what_happened_at_one_place_is_taken_as_a_whole() {
        let mut queues = TargetQueues::new(Seq(0), []);
        let full = (1..u64::try_from(MOST_WAITING).unwrap()).chain([40, 40, 40, 41]);
        queues.take(items("many", full), Seq(41));
        let log: Vec<u64> = (1..=32).chain([40, 40, 40, 41]).collect();
        let heard = serve(&mut queues, "many", &log);
        assert_eq!(heard.iter().filter(|seq| **seq == 40).count(), 3);
        assert_eq!(heard.iter().filter(|seq| **seq == 41).count(), 1);
    }

    #[test]
    fn more_targets_than_there_is_room_for_are_waited_for() {
        let mut queues = TargetQueues::new(Seq(0), []);
        let page = || (1..=100).flat_map(|seq| items(&format!("target {seq}"), [seq])).collect();
        queues.take(page(), Seq(100));
        let full = u64::try_from(MOST_QUEUES).unwrap();
        assert_eq!((queues.head(), queues.has_room()), (Seq(full), false));

        for (of, seq) in begun(&mut queues) {
            queues.ended(&of, seq);
        }
        queues.let_go();

        assert!(queues.has_room());
        let rest: Vec<QueuedItem<()>> = page();
        queues.take(rest.into_iter().filter(|item| item.seq.0 > full).collect(), Seq(100));
        assert_eq!((queues.head(), begun(&mut queues).len()), (Seq(100), 100 - MOST_QUEUES));
    }
}
