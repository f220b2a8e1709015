//! A cluster for tests: a few sites that share one resource, users who do things at them, and what
//! can be seen afterwards.

#![allow(dead_code, reason = "every test file uses its own part of it")]

use std::collections::BTreeSet;
use std::sync::Arc;

use cheops_core::config::Config;
use cheops_core::engine::{Engine, ResourceView, Submission, Ticket, WaitFor};
use cheops_core::model::{OperationId, OperationType, Payload, ResourceId, SiteId, Status};
use cheops_sim::{Setup, World, site_name, when_quiet};

/// Long enough for everything that is not stuck.
const PATIENCE_MS: u64 = 120_000;

/// Sites that share one resource.
pub(crate) struct Cluster {
    pub(crate) world: World,
    pub(crate) resource: ResourceId,
    sites: BTreeSet<SiteId>,
    config: Arc<Config>,
}

impl Cluster {
    /// So many sites, all of which share the resource.
    pub(crate) fn new(sites: usize, config: &str) -> Self {
        Self::with(Setup::new(sites, 1), config)
    }

    /// The same in a world of one's own.
    pub(crate) fn with(setup: Setup, config: &str) -> Self {
        let home: Vec<usize> = (0..setup.sites).collect();
        Self::at(setup, config, &home)
    }

    /// A resource that lives on some of the sites only.
    pub(crate) fn at(setup: Setup, config: &str, home: &[usize]) -> Self {
        let resource = ResourceId::new("resource-id").unwrap();
        let config = Arc::new(Config::parse(config).unwrap().config);
        let sites: BTreeSet<SiteId> = home.iter().map(|site| site_name(*site)).collect();
        let mut world = World::new(setup);
        world.checks.homes.insert(resource.clone(), sites.clone());
        Self { world, resource, sites, config }
    }

    /// An operation as a user would hand it in.
    pub(crate) fn submission(&self, kind: &str, command: &str) -> Submission {
        Submission {
            ticket: Ticket(0),
            resource: self.resource.clone(),
            sites: Some(self.sites.clone()),
            config: Some(self.config.clone()),
            kind: OperationType::new(kind).unwrap(),
            payload: Payload::shell(command),
            inline_body: None,
            force: false,
            wait: WaitFor::All,
            timeout_ms: 30_000,
            needs: Default::default(),
            asked_by: None,
        }
    }

    /// A user hands in an operation at a site.
    pub(crate) fn does(&mut self, site: usize, kind: &str, command: &str) -> OperationId {
        let submission = self.submission(kind, command);
        let ticket = self.world.submit(site, submission).unwrap();
        self.world.accepted(ticket).unwrap().clone()
    }

    /// A user hands in an operation and says whose replies to wait for, and for how long.
    pub(crate) fn asks(
        &mut self,
        site: usize,
        kind: &str,
        command: &str,
        wait: WaitFor,
        ms: u64,
    ) -> Ticket {
        let submission = Submission { wait, timeout_ms: ms, ..self.submission(kind, command) };
        self.world.submit(site, submission).unwrap()
    }

    /// Cuts a site off from all others.
    pub(crate) fn isolates(&mut self, site: usize) {
        for other in (0..self.world.sites.len()).filter(|other| *other != site) {
            self.world.cut_both_ways(site, other);
        }
    }

    pub(crate) fn passes(&mut self, ms: u64) {
        self.world.run_for(ms).unwrap();
    }

    /// Lets time pass until that holds; how long it took.
    pub(crate) fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> u64 {
        let start = self.world.now_ms;
        while !holds(self) {
            assert!(self.world.now_ms < start + PATIENCE_MS, "it never came about that {what}");
            self.world.run_for(10).unwrap();
        }
        self.world.now_ms - start
    }

    /// Lets time pass until every site knows everything and has run all of it, and sees that all
    /// is as it must be then. Says how long it took.
    pub(crate) fn converges(&mut self) -> u64 {
        let took = self.agrees();
        when_quiet(&self.world).unwrap();
        took
    }

    /// The same, without a look at the applications: for configs that do not tell the truth about
    /// the commands.
    pub(crate) fn agrees(&mut self) -> u64 {
        self.until("all sites agree", Self::is_quiet)
    }

    /// Whether every site knows everything and has run all of it.
    pub(crate) fn is_quiet(&self) -> bool {
        let views: Option<Vec<_>> = self.home().map(|site| self.find(site)).collect();
        views.is_some_and(|views| {
            views.iter().all(|view| view.settled && view.knows == views[0].knows)
        })
    }

    /// The sites that hold the resource.
    pub(crate) fn home(&self) -> impl Iterator<Item = usize> {
        let sites = self.world.sites.iter().enumerate();
        sites.filter(|(_, site)| self.sites.contains(&site.id)).map(|(index, _)| index)
    }

    pub(crate) fn engine(&self, site: usize) -> &Engine {
        self.world.sites[site].engine.as_ref().unwrap()
    }

    fn find(&self, site: usize) -> Option<ResourceView> {
        self.world.sites[site].engine.as_ref()?.resource(&self.resource)
    }

    /// The resource as a site knows it.
    pub(crate) fn view(&self, site: usize) -> ResourceView {
        self.find(site).unwrap()
    }

    /// What a site's application holds.
    pub(crate) fn value(&self, site: usize) -> String {
        self.world.sites[site].application.value(&self.resource).text
    }

    /// What the applications hold, if they all hold the same.
    #[track_caller]
    pub(crate) fn value_everywhere(&self) -> String {
        let values: Vec<String> = self.home().map(|site| self.value(site)).collect();
        assert!(values.iter().all(|value| *value == values[0]), "the sites hold {values:?}");
        values[0].clone()
    }

    /// The commands of the list, which must be the same everywhere.
    #[track_caller]
    pub(crate) fn list_everywhere(&self) -> Vec<String> {
        let lists: Vec<_> = self.home().map(|site| self.view(site).list).collect();
        assert!(lists.iter().all(|list| *list == lists[0]), "the sites list {lists:?}");
        lists[0].iter().map(|id| self.command(id)).collect()
    }

    /// The command of an operation.
    pub(crate) fn command(&self, id: &OperationId) -> String {
        self.world.operations[id].payload.summary()
    }

    /// What a site says of an operation, as seen at another.
    pub(crate) fn status(&self, seen_at: usize, id: &OperationId, of: usize) -> Option<Status> {
        let view = self.view(seen_at);
        let operation = view.operations.into_iter().find(|operation| operation.id() == id)?;
        let mut replies = operation.replies.into_iter();
        replies.find(|reply| *reply.site() == site_name(of)).map(|reply| reply.status)
    }
}
