//! An engine's settings, with defaults that work.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::{Author, SiteId};

/// How one site's engine behaves. All times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// This site, in this incarnation of its disk.
    pub me: Author,
    /// The other sites of the mesh.
    pub peers: BTreeSet<SiteId>,
    /// What the application may hold when this incarnation of the disk begins.
    pub application: Application,
    /// Between signs of life to a site that shares a resource with this one.
    pub heartbeat_ms: u64,
    /// Between signs of life to any other site.
    pub idle_heartbeat_ms: u64,
    /// Silence, in heartbeats due and a little more, after which a site counts as down.
    pub down_after_ms: u64,
    /// How long to wait for something worth sending before merely confirming what was heard.
    pub confirm_after_ms: u64,
    /// How long to wait for a confirmation before asking for it.
    pub ask_again_after_ms: u64,
    /// How long the author of an entry gets to deliver it itself before others pass it on.
    pub relay_after_ms: u64,
    /// How far ahead of this site's clock a stamp may be before it is called strange.
    pub strange_clock_ms: u64,
    /// Entries in one message.
    pub entries_per_update: usize,
    /// About how many bytes one message may take; one entry is sent whatever its size.
    pub bytes_per_update: usize,
    /// Resources asked about at once per site when a link is back.
    pub resources_in_flight: usize,
    /// Entries of one resource kept while their causal past is missing.
    pub waiting_entries: usize,
    /// About how many bytes are kept of what one site sent before it can be taken in, of all resources
    /// together.
    pub waiting_bytes: usize,
    /// Jobs run at once.
    pub jobs_at_once: usize,
    /// How long nothing must have moved before a resource's state is read.
    pub verify_after_ms: u64,
    /// How long after that it is read again.
    pub verify_every_ms: u64,
    /// From how many operations of a resource on a state that all sites verified stands for them, so that
    /// they are forgotten: until then any of them can still be undone.
    pub short_history_from: usize,
}

/// What the application may hold when a site's memory is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Application {
    /// Perhaps what an earlier incarnation of this site did to it: nothing that may have run is run
    /// again without care.
    MayHoldState,
    /// Nothing: it was lost together with the disk, or is new.
    Empty,
}

impl Settings {
    /// Defaults for a site among these others.
    pub fn new(me: Author, peers: impl IntoIterator<Item = SiteId>) -> Self {
        let peers = peers.into_iter().filter(|site| *site != me.site).collect();
        Self {
            me,
            peers,
            application: Application::MayHoldState,
            heartbeat_ms: 500,
            idle_heartbeat_ms: 5_000,
            down_after_ms: 2_500,
            confirm_after_ms: 50,
            ask_again_after_ms: 1_000,
            relay_after_ms: 1_000,
            strange_clock_ms: 60_000,
            entries_per_update: 256,
            bytes_per_update: 512 * 1024,
            resources_in_flight: 64,
            waiting_entries: 4_096,
            waiting_bytes: 32 * 1024 * 1024,
            jobs_at_once: 64,
            verify_after_ms: 1_000,
            verify_every_ms: 600_000,
            short_history_from: 1_000,
        }
    }
}
