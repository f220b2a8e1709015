//! How fast three real agents on this machine are, beside what the machine itself costs.
//!
//! The agents are processes of the `cheops` binary; clients and the application, a service that
//! does nothing, are in here. A target that is missed is printed and changes no exit code: machines
//! are noisy.

mod bare;
mod beside;
mod catchup;
mod cluster;
mod comparison;
mod connection;
mod failure;
mod figure;
mod latency;
mod load;
mod memory;
mod paced;
mod process;
mod program;
mod proxy;
mod replicated;
mod report;
mod servers;
mod service;
mod states;
mod stats;
mod store;
mod throughput;
mod wrk;

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use crate::beside::Both;
use crate::cluster::BenchCluster;
use crate::connection::Work;
use crate::failure::{BenchFailure, cannot};
use crate::process::MachineTime;
use crate::program::Program;
use crate::report::{Report, ReportFormat, Section};
use crate::servers::Tools;
use crate::service::BenchService;

const NOTES: [&str; 2] = [
    "The original (Go on CouchDB), three sites on a machine with 2 cores: one replicated no-op p50",
    "313 ms, p95 375 ms, p99 399 ms; with 32 clients on their own resources 4.4 operations/s.",
];

/// Measure three real agents on this machine
#[derive(Debug, Parser)]
#[command(name = "cheops-bench", version, max_term_width = 100)]
struct BenchCli {
    /// How long each measurement takes
    #[arg(long, value_name = "N", default_value = "4", value_parser = seconds)]
    seconds: Duration,
    /// Measure this alone; may be given several times
    #[arg(long, value_enum, value_name = "WHAT")]
    only: Vec<Measurement>,
    /// Throughput with so many clients alone; may be given several times [default: 1, 8 and 32; of
    /// replicated requests 1 and 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    clients: Vec<u16>,
    /// Latency and throughput of this work alone
    #[arg(long, value_enum)]
    work: Option<Work>,
    /// The agents' program; if nothing is said, `cheops` beside this one
    #[arg(long, value_name = "PATH")]
    cheops: Option<PathBuf>,
    /// Measure this program too, in turns with the other, and print what differs
    ///
    /// The one of --cheops is the new one, this the old one. A line has the median of the turns of
    /// each, the median of new/old of the turns, and the lowest and the highest of these. It says
    /// faster or slower (of memory, disk and processor time: more or less) if new/old is on the same
    /// side of 1 in every turn and its median more than 5 % off from 1; else, same within noise.
    /// That takes three turns at least.
    #[arg(long, value_name = "PATH")]
    beside: Option<PathBuf>,
    /// How many turns each of the two programs has
    #[arg(long, value_name = "N", default_value = "3", requires = "beside")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=99))]
    turns: u32,
    /// Where the sites keep their data; if nothing is said, beside this program, since a
    /// temporary folder may be in memory
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Measurement {
    Latency,
    Throughput,
    Store,
    Memory,
    Catchup,
    States,
    Proxy,
    Replicated,
}

impl Measurement {
    fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Throughput => "throughput",
            Self::Store => "store",
            Self::Memory => "memory",
            Self::Catchup => "catchup",
            Self::States => "states",
            Self::Proxy => "proxy",
            Self::Replicated => "replicated",
        }
    }

    async fn measure(self, bench: &Bench, report: &Report) -> Result<Section, BenchFailure> {
        match self {
            Self::Latency => latency::measure(bench, report).await,
            Self::Throughput => throughput::measure(bench, report).await,
            Self::Store => store::measure(bench, report),
            Self::Memory => memory::measure(bench, report).await,
            Self::Catchup => catchup::measure(bench, report).await,
            Self::States => states::measure(bench, report).await,
            Self::Proxy => proxy::measure(bench, report, &Tools::find()?).await,
            Self::Replicated => replicated::measure(bench, report).await,
        }
    }
}

/// What all measurements of a program need.
struct Bench {
    program: Program,
    place: PathBuf,
    time: Duration,
    /// How many there are at once, where somebody said it.
    clients: Vec<usize>,
    /// None is all.
    work: Option<Work>,
    service: BenchService,
    /// Requests per second of the proxy's half load, once it is known. Programs that are compared
    /// share it.
    half_load: Arc<OnceLock<f64>>,
}

impl Bench {
    async fn of(program: PathBuf, place: &Path, cli: &BenchCli) -> Result<Self, BenchFailure> {
        Ok(Self {
            program: Program::ask(program, place).await?,
            place: place.to_owned(),
            time: cli.seconds,
            clients: cli.clients.iter().map(|&clients| clients.into()).collect(),
            work: cli.work,
            service: BenchService::start().await?,
            half_load: Arc::default(),
        })
    }

    /// What operations do.
    fn works(&self) -> impl DoubleEndedIterator<Item = Work> {
        let only = self.work;
        Work::ALL.into_iter().filter(move |work| only.is_none_or(|only| only == *work))
    }

    /// How many clients there are at once: so many, unless somebody asks for others.
    fn clients_or(&self, usual: &[usize]) -> Vec<usize> {
        if self.clients.is_empty() { usual.to_vec() } else { self.clients.clone() }
    }

    /// Three new sites.
    async fn cluster(&self) -> Result<BenchCluster, BenchFailure> {
        self.cluster_before(self.service.address).await
    }

    /// Three new sites in front of that service.
    async fn cluster_before(&self, service: SocketAddr) -> Result<BenchCluster, BenchFailure> {
        BenchCluster::start(&self.program, &self.place, service, "").await
    }

    /// Three new sites, with more said in their configs.
    async fn cluster_with(&self, more: &str) -> Result<BenchCluster, BenchFailure> {
        BenchCluster::start(&self.program, &self.place, self.service.address, more).await
    }
}

/// What is measured: a program, beside the machine alone or beside another program as well.
enum BenchSubject {
    One(Bench),
    Two(Both),
}

impl BenchSubject {
    async fn of(cli: &BenchCli) -> Result<Self, BenchFailure> {
        let own = std::env::current_exe().map_err(cannot("find its own program"))?;
        let folder = own.parent().map(PathBuf::from).unwrap_or_default();
        let program = cli.cheops.clone().unwrap_or_else(|| folder.join("cheops"));
        let place = cli.dir.clone().unwrap_or(folder);
        let new = Bench::of(program, &place, cli).await?;
        let Some(other) = cli.beside.clone() else { return Ok(Self::One(new)) };
        let old = Bench::of(other, &place, cli).await?;
        let old = Bench { half_load: Arc::clone(&new.half_load), ..old };
        Ok(Self::Two(Both { new, old, turns: cli.turns }))
    }

    async fn measure(
        &self,
        what: Measurement,
        report: &mut Report,
    ) -> Result<Section, BenchFailure> {
        match self {
            Self::One(bench) => what.measure(bench, report).await,
            Self::Two(both) => both.measure(what, report).await,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a number of seconds above 0 and up to 600, such as `4`".to_owned();
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    if seconds > 0.0 && seconds <= 600.0 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(wrong())
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = BenchCli::parse();
    let ended = tokio::select! {
        ended = measure(&cli) => ended,
        // The sites and servers end with what is dropped here.
        why = interrupted() => Err(why),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // The exit code says it too.
            let _unheard = writeln!(std::io::stderr(), "error: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Waits until somebody wants this to stop.
async fn interrupted() -> BenchFailure {
    let stopped = async {
        let mut terminated = signal(SignalKind::terminate())?;
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed,
            _ = terminated.recv() => Ok(()),
        }
    };
    match stopped.await {
        Ok(()) => BenchFailure::new("not all was measured", "interrupted"),
        Err(error) => BenchFailure::new("cannot wait for signals", error),
    }
}

async fn measure(cli: &BenchCli) -> Result<(), BenchFailure> {
    let subject = BenchSubject::of(cli).await?;
    let before = MachineTime::now()?;
    let mut report =
        Report::new(if cli.json { ReportFormat::Programs } else { ReportFormat::People });
    if let BenchSubject::Two(both) = &subject {
        report.about(&both.words(), "beside", both.data()).map_err(cannot("print"))?;
    }
    for &what in Measurement::value_variants() {
        if !cli.only.is_empty() && !cli.only.contains(&what) {
            continue;
        }
        let section = match (what, Tools::find()) {
            (Measurement::Proxy, Err(missing)) if cli.only.is_empty() => proxy::skipped(&missing),
            (Measurement::Proxy, Err(missing)) => return Err(missing),
            _ => subject.measure(what, &mut report).await?,
        };
        report.section(section).map_err(cannot("print"))?;
    }
    let stolen = MachineTime::now()?.stolen_since(before);
    let notes = match subject {
        BenchSubject::One(_) => NOTES.as_slice(),
        BenchSubject::Two(_) => &[],
    };
    report.end(stolen, notes).map_err(cannot("print"))
}
