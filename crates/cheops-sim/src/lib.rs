//! Many real engines in one thread, with virtual time, under every fault we can think of.
//!
//! [`World`] is the cluster: sites with real engines, simulated disks, applications and a network.
//! [`torture`] plays one seed on it: faults and checks, then peace and agreement. The same seed
//! gives the same run, to the last bit, so that what a seed found can be looked at as often as
//! needed.

mod application;
mod bugs;
mod checks;
mod conflicts;
mod disk;
mod keys;
mod liar;
mod network;
mod program_checks;
mod programs;
mod quiet;
mod rng;
mod service;
mod service_checks;
mod service_load;
mod site;
mod sometimes;
mod torture;
mod trace;
mod workload;
mod world;

pub use application::{RanTwice, SimApplication, SimValue, fresh_run};
pub use bugs::Bug;
pub use checks::{Checks, Violation};
pub use disk::Disk;
pub use keys::SimKey;
pub use liar::{LiarMove, Stolen};
pub use network::{CITIES, Network, Weather, site_name};
pub use quiet::when_quiet;
pub use rng::Rng;
pub use service::{Object, ServiceAnswer, ServiceRequest, SimService, Stranger};
pub use service_load::{KnownIdMaps, ServiceLoad, Usage};
pub use site::{RunningJob, SimSite, command_at, command_of};
pub use sometimes::{MUST_HAPPEN, Sometimes};
pub use torture::{SeedReport, torture};
pub use trace::SimTrace;
pub use workload::{FLAVOURS, Flavour, Subject};
pub use world::{CrashPoint, Setup, Traffic, World};
