//! Whole sites as they are run: agents as processes of their own, real applications beside them,
//! and a network between them that is really cut.
//!
//! `CHEOPS_E2E_LINKS=netns` or `relay` says what the network is made of: network namespaces, one a
//! site, or relays in this process. If nothing is said, it is namespaces where they can be made.

mod backlog;
mod big_files;
mod cluster;
mod collaborations;
mod demo;
mod dry_run;
mod experiments;
mod feed;
mod forger;
mod full_disk;
mod handing_in;
mod legacy;
mod long_bodies;
mod lost_disk;
mod merging;
mod passing_on;
mod past;
mod programs;
mod proving;
#[path = "../../../src/relay.rs"]
#[allow(dead_code, reason = "the demo uses all of it")]
mod relay;
#[path = "../../../../cheops-sim/tests/sim/report/mod.rs"]
mod report;
mod short_history;
mod states;
mod stopping;
mod strangers;
mod stream;
mod told_alike;
mod undo;
