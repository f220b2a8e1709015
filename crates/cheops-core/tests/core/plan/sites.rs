//! Several sites, each with its own knowledge, resolution, log and application.

use cheops_core::config::{Concurrent, Config, StateCommands};
use cheops_core::model::{
    Author, EntryId, HybridClock, Incarnation, Operation, OperationId, Payload, ResourceId, SiteId,
};
use cheops_core::plan::Item;
use cheops_core::resolve::Resolution;
use proptest::prelude::*;

use super::app::Command;
use super::properties::{assert_never_neither, cases, tale};
use super::setup::{Setup, kind, some_setup};
use super::site::{Crash, Rest, Site};

const SITES: usize = 3;

/// What happens at the sites, each named by its number.
#[derive(Debug, Clone)]
enum Event {
    HandsIn(usize),
    Tells(usize, usize),
    Steps(usize, u8),
    Crashes(usize, Crash),
}

fn some_events() -> impl Strategy<Value = Vec<Event>> {
    let site = || 0..SITES;
    let crash = prop_oneof![Just(Crash::BeforeEffect), Just(Crash::AfterEffect)];
    let event = prop_oneof![
        4 => site().prop_map(Event::HandsIn),
        2 => (site(), site()).prop_map(|(from, to)| Event::Tells(from, to)),
        5 => (site(), 1..5u8).prop_map(|(site, steps)| Event::Steps(site, steps)),
        1 => (site(), crash).prop_map(|(site, crash)| Event::Crashes(site, crash)),
    ];
    proptest::collection::vec(event, 0..50)
}

/// One site, with what it knows.
struct Place {
    author: Author,
    clock: HybridClock,
    written: u64,
    knows: Resolution,
    site: Site,
}

impl Place {
    fn new(number: usize, config: &Config) -> Self {
        let site = SiteId::new(&format!("site{number}")).unwrap();
        Self {
            author: Author { site, incarnation: Incarnation(1) },
            clock: HybridClock::default(),
            written: 0,
            knows: Resolution::new(config.clone()),
            site: Site::new(config),
        }
    }

    fn hands_in(&mut self, command: Command) -> Operation {
        self.written += 1;
        // The operator's `force` is for what is sure to overwrite everything.
        let force = matches!(command, Command::Init(n) if n % 2 == 0);
        let kind = kind(command.kind());
        Operation {
            id: OperationId(EntryId { author: self.author.clone(), n: self.written }),
            resource: ResourceId::new("thing").unwrap(),
            stamp: self.clock.tick(1),
            claimed: Default::default(),
            parents: self.knows.operations().heads(),
            replaces: self.knows.replaces(&kind, force),
            kind,
            payload: Payload::shell(""),
            declares: None,
            needs: Default::default(),
            asked_by: None,
        }
    }

    fn hears(&mut self, operation: &Operation) {
        self.clock.observe(operation.stamp);
        self.knows.insert(operation.clone());
    }

    fn list(&self) -> Vec<Item> {
        let operations = self.knows.operations();
        let listed = self.knows.list().filter_map(|id| operations.operation(id));
        let item = |operation: &std::sync::Arc<Operation>| Item {
            id: operation.id.clone(),
            kind: operation.kind.clone(),
            replaces: operation.replaces,
        };
        listed.map(item).collect()
    }
}

/// All of them, and all that was ever handed in, in an order that respects causality.
struct World {
    places: Vec<Place>,
    made: Vec<(Operation, Command)>,
}

impl World {
    fn run(setup: &Setup, events: &[Event]) -> Self {
        let places = (0..SITES).map(|number| Place::new(number, &setup.config)).collect();
        let mut world = Self { places, made: Vec::new() };
        let mut commands = setup.commands.iter();
        for event in events {
            world.happen(event, &mut commands);
        }
        for (operation, command) in &world.made {
            for place in &mut world.places {
                place.site.commands.insert(operation.id.clone(), *command);
                place.hears(operation);
            }
        }
        world
    }

    fn happen(&mut self, event: &Event, commands: &mut std::slice::Iter<'_, Command>) {
        match event {
            Event::HandsIn(at) => {
                let Some(command) = commands.next() else { return };
                let place = &mut self.places[*at];
                let operation = place.hands_in(*command);
                place.hears(&operation);
                place.site.commands.insert(operation.id.clone(), *command);
                self.made.push((operation, *command));
            }
            Event::Tells(from, to) => self.tells(*from, *to),
            Event::Steps(at, steps) => {
                (0..*steps).for_each(|_| self.step(*at, None));
            }
            Event::Crashes(at, crash) => self.step(*at, Some(*crash)),
        }
    }

    fn tells(&mut self, from: usize, to: usize) {
        for (operation, command) in &self.made {
            if self.places[from].knows.operations().contains(&operation.id) {
                self.places[to].site.commands.insert(operation.id.clone(), *command);
                self.places[to].hears(operation);
            }
        }
    }

    fn step(&mut self, at: usize, crash: Option<Crash>) {
        let list = self.places[at].list();
        self.places[at].site.step(&list, crash);
    }
}

fn with_concurrent(mut setup: Setup, concurrent: Concurrent) -> Setup {
    setup.config.matrix.values_mut().for_each(|entry| entry.concurrent = concurrent);
    setup
}

fn some_concurrent() -> impl Strategy<Value = Concurrent> {
    prop_oneof![Just(Concurrent::ReplaceWins), Just(Concurrent::KeepBoth)]
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn sites_cut_off_from_each_other_agree_once_reconnected_or_say_that_they_do_not(
        setup in some_setup(), concurrent in some_concurrent(), events in some_events()
    ) {
        let setup = with_concurrent(setup, concurrent);
        let mut world = World::run(&setup, &events);
        for place in &mut world.places {
            let list = place.list();
            let rest = place.site.settle_with_operator(&list);
            assert_never_neither(&rest, &list, &setup, &place.site);
        }
    }

    #[test]
    fn sites_with_snapshots_always_agree_once_reconnected(
        mut setup in some_setup(), concurrent in some_concurrent(), events in some_events()
    ) {
        setup.config.state = Some(StateCommands { read: "s".into(), write: "r".into() });
        let setup = with_concurrent(setup, concurrent);
        let mut world = World::run(&setup, &events);
        let mut states = Vec::new();
        for place in &mut world.places {
            let list = place.list();
            let rest = place.site.settle(&list);
            prop_assert_eq!(rest, Rest::InStep, "{}", tale(&place.site, &list));
            states.push(place.site.app.state());
        }
        prop_assert!(states.windows(2).all(|pair| pair[0] == pair[1]), "{states:?}");
    }
}
