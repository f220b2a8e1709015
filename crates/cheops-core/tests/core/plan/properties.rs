//! Whatever arrives, leaves, returns and crashes.

use cheops_core::model::OperationId;
use cheops_core::plan::{Health, Item, Next, RunLog, plan_appended};
use proptest::prelude::*;
use proptest::sample::Index;

use super::app::{Command, really_wipes};
use super::setup::{Setup, item, some_setup};
use super::site::{Crash, Rest, Site};

/// What happens to the site.
#[derive(Debug, Clone)]
enum Event {
    /// The next operation comes into the list, anywhere.
    Arrives(Index),
    /// The next operation comes at the end of the list.
    IsAppended,
    /// An operation of the list is left out.
    Leaves(Index),
    /// One that was left out counts again.
    Returns(Index, Index),
    /// So many steps are done.
    Steps(u8),
    /// A step is cut short.
    Crashes(Crash),
}

fn some_event() -> impl Strategy<Value = Event> {
    let crash = prop_oneof![Just(Crash::BeforeEffect), Just(Crash::AfterEffect)];
    prop_oneof![
        3 => any::<Index>().prop_map(Event::Arrives),
        3 => Just(Event::IsAppended),
        2 => any::<Index>().prop_map(Event::Leaves),
        1 => any::<(Index, Index)>().prop_map(|(which, place)| Event::Returns(which, place)),
        5 => (1..6u8).prop_map(Event::Steps),
        2 => crash.prop_map(Event::Crashes),
    ]
}

fn some_events() -> impl Strategy<Value = Vec<Event>> {
    proptest::collection::vec(some_event(), 0..40)
}

/// The list as it changes over time.
struct History<'a> {
    commands: std::slice::Iter<'a, Command>,
    count: usize,
    list: Vec<Item>,
    left_out: Vec<Item>,
}

impl<'a> History<'a> {
    fn new(setup: &'a Setup) -> Self {
        let commands = setup.commands.iter();
        Self { commands, count: 0, list: Vec::new(), left_out: Vec::new() }
    }

    fn arrive(&mut self, place: impl Fn(usize) -> usize, site: &mut Site) {
        let Some(command) = self.commands.next() else { return };
        let new = item(self.count, *command);
        self.count += 1;
        site.commands.insert(new.id.clone(), *command);
        self.list.insert(place(self.list.len()), new);
    }

    fn happen(&mut self, event: &Event, site: &mut Site) {
        match event {
            Event::Arrives(place) => self.arrive(|len| place.index(len + 1), site),
            Event::IsAppended => self.arrive(|len| len, site),
            Event::Leaves(which) if !self.list.is_empty() => {
                let gone = self.list.remove(which.index(self.list.len()));
                self.left_out.push(gone);
            }
            Event::Returns(which, place) if !self.left_out.is_empty() => {
                let back = self.left_out.remove(which.index(self.left_out.len()));
                self.list.insert(place.index(self.list.len() + 1), back);
            }
            Event::Leaves(_) | Event::Returns(..) => {}
            Event::Steps(count) => {
                for _ in 0..*count {
                    site.step(&self.list, None);
                }
            }
            Event::Crashes(crash) => {
                site.step(&self.list, Some(*crash));
            }
        }
    }
}

/// An operation in the list to start from, which overwrites everything and works.
fn has_start(list: &[Item], setup: &Setup, site: &Site) -> bool {
    let wipes_all =
        |item: &Item| setup.kinds.iter().all(|other| really_wipes(item.kind.as_str(), other));
    list.iter().any(|item| wipes_all(item) && !site.commands[&item.id].always_fails())
}

pub(crate) fn tale(site: &Site, list: &[Item]) -> String {
    let list: Vec<_> = list.iter().map(|item| (&item.id, site.commands[&item.id])).collect();
    format!("{}\nin the end: {list:?}\n{:?}", site.story.join("\n"), site.app)
}

/// What must hold of a site at rest.
pub(crate) fn assert_never_neither(rest: &Rest, list: &[Item], setup: &Setup, site: &Site) {
    let start = has_start(list, setup, site);
    match rest {
        Rest::InStep => {
            assert_eq!(
                site.app.state(),
                site.fresh(list),
                "silently diverged\n{}",
                tale(site, list)
            );
        }
        Rest::Diverged(_) | Rest::InDoubt(_) => {
            assert!(!start, "{rest:?}, though there was a start\n{}", tale(site, list));
        }
    }
}

fn run(setup: &Setup, events: &[Event], check_each: bool) -> (Site, Vec<Item>) {
    let mut site = Site::new(&setup.config);
    let mut history = History::new(setup);
    for event in events {
        history.happen(event, &mut site);
        if check_each {
            assert_rest_is_true(&history.list, setup, &site);
        }
    }
    (site, history.list)
}

/// At any moment: a site that says there is nothing to do must be right.
fn assert_rest_is_true(list: &[Item], setup: &Setup, site: &Site) {
    let plan = site.plan(list);
    if plan.next == Next::Nothing && plan.health == Health::InStep {
        assert_never_neither(&Rest::InStep, list, setup, site);
    }
}

/// So many cases, unless `PROPTEST_CASES` asks for another number.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let given = ProptestConfig::default();
    let cases = if given.cases == 256 { usual } else { given.cases };
    ProptestConfig { cases, max_shrink_iters: 5_000, failure_persistence: None, ..given }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn the_state_is_that_of_a_fresh_run_or_the_site_says_it_is_not(
        setup in some_setup(), events in some_events()
    ) {
        let (mut site, list) = run(&setup, &events, true);
        let rest = site.settle(&list);
        assert_never_neither(&rest, &list, &setup, &site);
        let rest = site.settle_with_operator(&list);
        assert_never_neither(&rest, &list, &setup, &site);
    }

    #[test]
    fn with_an_undo_for_everything_and_no_crash_no_site_diverges(
        mut setup in some_setup(), events in some_events()
    ) {
        for name in &setup.kinds {
            let handling = setup.config.types.entry(super::setup::kind(name)).or_default();
            handling.undo = Some("undo".into());
        }
        // A second run after a crash may be undone, but that brings back the doubt.
        let events: Vec<_> =
            events.into_iter().filter(|event| !matches!(event, Event::Crashes(_))).collect();
        let (mut site, list) = run(&setup, &events, false);
        let rest = site.settle(&list);
        prop_assert_eq!(rest, Rest::InStep, "{}", tale(&site, &list));
        prop_assert_eq!(site.app.state(), site.fresh(&list));
    }

    #[test]
    fn with_snapshots_from_the_start_no_site_diverges_and_none_needs_an_operator(
        mut setup in some_setup(), events in some_events()
    ) {
        let snapshots = cheops_core::config::StateCommands { read: "s".into(), write: "r".into() };
        setup.config.state = Some(snapshots);
        let (mut site, list) = run(&setup, &events, false);
        prop_assert_eq!(site.settle(&list), Rest::InStep);
        prop_assert_eq!(site.app.state(), site.fresh(&list));
    }

    #[test]
    fn a_repair_command_that_fails_leads_to_no_silence(
        setup in some_setup(), events in some_events(), every in 1..4usize
    ) {
        let mut site = Site::new(&setup.config);
        site.flaky = Some(every);
        let mut history = History::new(&setup);
        events.iter().for_each(|event| history.happen(event, &mut site));
        let rest = site.settle_with_operator(&history.list);
        assert_never_neither(&rest, &history.list, &setup, &site);
    }

    #[test]
    fn a_site_at_rest_stays_at_rest(setup in some_setup(), events in some_events()) {
        let (mut site, list) = run(&setup, &events, false);
        let rest = site.settle(&list);
        let steps = site.steps;
        prop_assert_eq!(site.settle(&list), rest);
        prop_assert_eq!(site.steps, steps);
    }

    #[test]
    fn the_short_cut_for_appended_operations_says_what_the_plan_says(
        setup in some_setup(), events in some_events()
    ) {
        let (mut site, mut list) = run(&setup, &events, false);
        let in_step = site.settle(&list) == Rest::InStep;
        let more = setup.commands.iter().enumerate().filter(|_| in_step);
        for (n, command) in more {
            let new = item(100 + n, *command);
            site.commands.insert(new.id.clone(), *command);
            list.push(new.clone());
            // Where one never ran, since its effect would be wiped away but not surely, it may
            // get its chance now; the short cut leaves that for the next plan.
            let all_ran = list[..list.len() - 1].iter().all(|item| site.log.has_run(&item.id));
            let short = plan_appended(&site.log, &new, &setup.config);
            if let Some(short) = short.filter(|_| all_ran) {
                prop_assert_eq!(short, site.plan(&list), "{}", tale(&site, &list));
            }
            site.settle(&list);
        }
    }

    #[test]
    fn pruning_what_left_the_list_for_good_changes_nothing(
        setup in some_setup(), events in some_events()
    ) {
        let (mut site, list) = run(&setup, &events, false);
        let all: Vec<OperationId> = site.commands.keys().cloned().collect();
        site.log.prune(&all.into_iter().map(|id| id.0).collect(), &list, &setup.config);
        let rest = site.settle_with_operator(&list);
        assert_never_neither(&rest, &list, &setup, &site);
    }

    #[test]
    fn a_site_that_lost_its_disk_finds_back_or_says_so(
        setup in some_setup(), events in some_events()
    ) {
        let (mut site, list) = run(&setup, &events, false);
        let everything = site.commands.iter().map(|(id, command)| Item {
            id: id.clone(), ..item(0, *command)
        });
        site.log = RunLog::unknown_before(everything);
        site.story.push("the disk is lost".into());
        // The operator still sees what is there.
        site.seen = site.commands.keys().map(|id| (id.clone(), site.app.has(id))).collect();
        let rest = site.settle(&list);
        assert_never_neither(&rest, &list, &setup, &site);
        let rest = site.settle_with_operator(&list);
        assert_never_neither(&rest, &list, &setup, &site);
    }
}
