//! How fast three real agents on this machine are, beside what the machine itself costs.
//!
//! The agents are processes of the `cheops` binary; clients and the application, a service that
//! does nothing, are in here. A target that is missed is printed and changes no exit code: machines
//! are noisy.

mod bare;
mod catchup;
mod connection;
mod failure;
mod latency;
mod load;
mod memory;
mod paced;
mod process;
mod proxy;
mod report;
mod servers;
mod service;
mod stage;
mod stats;
mod store;
mod throughput;
mod wrk;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::{Failure, cannot};
use crate::process::MachineTime;
use crate::report::{Format, Report};
use crate::servers::Tools;
use crate::service::Service;
use crate::stage::Stage;

const NOTES: [&str; 2] = [
    "The original (Go on CouchDB), three sites on a machine with 2 cores: one replicated no-op p50",
    "313 ms, p95 375 ms, p99 399 ms; with 32 clients on their own resources 4.4 operations/s.",
];

/// Measure three real agents on this machine
#[derive(Debug, Parser)]
#[command(name = "cheops-bench", version, max_term_width = 100)]
struct Cli {
    /// How long each measurement takes
    #[arg(long, value_name = "N", default_value = "4", value_parser = seconds)]
    seconds: Duration,
    /// Measure this alone; may be given several times
    #[arg(long, value_enum, value_name = "WHAT")]
    only: Vec<What>,
    /// The agents' program; if nothing is said, `cheops` beside this one
    #[arg(long, value_name = "PATH")]
    cheops: Option<PathBuf>,
    /// Where the sites keep their data; if nothing is said, beside this program, since a
    /// temporary folder may be in memory
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Latency,
    Throughput,
    Store,
    Memory,
    Catchup,
    Proxy,
}

/// What all measurements need.
struct Bench {
    program: PathBuf,
    place: PathBuf,
    time: Duration,
    service: Service,
}

impl Bench {
    /// Three new sites.
    async fn stage(&self) -> Result<Stage, Failure> {
        self.stage_before(self.service.address).await
    }

    /// Three new sites in front of that service.
    async fn stage_before(&self, service: SocketAddr) -> Result<Stage, Failure> {
        Stage::start(&self.program, &self.place, service).await
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
    let cli = Cli::parse();
    let ended = tokio::select! {
        ended = measure(cli) => ended,
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
async fn interrupted() -> Failure {
    let stopped = async {
        let mut terminated = signal(SignalKind::terminate())?;
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed,
            _ = terminated.recv() => Ok(()),
        }
    };
    match stopped.await {
        Ok(()) => Failure::new("not all was measured", "interrupted"),
        Err(error) => Failure::new("cannot wait for signals", error),
    }
}

async fn measure(cli: Cli) -> Result<(), Failure> {
    let own = std::env::current_exe().map_err(cannot("find its own program"))?;
    let beside = own.parent().map(PathBuf::from).unwrap_or_default();
    let bench = Bench {
        program: cli.cheops.unwrap_or_else(|| beside.join("cheops")),
        place: cli.dir.unwrap_or(beside),
        time: cli.seconds,
        service: Service::start().await?,
    };
    let before = MachineTime::now()?;
    let mut report = Report::new(if cli.json { Format::Programs } else { Format::People });
    for what in What::value_variants() {
        if !cli.only.is_empty() && !cli.only.contains(what) {
            continue;
        }
        let section = match what {
            What::Latency => latency::measure(&bench, &report).await?,
            What::Throughput => throughput::measure(&bench, &report).await?,
            What::Store => store::measure(&bench, &report)?,
            What::Memory => memory::measure(&bench, &report).await?,
            What::Catchup => catchup::measure(&bench, &report).await?,
            What::Proxy => match Tools::find() {
                Ok(tools) => proxy::measure(&bench, &report, &tools).await?,
                Err(missing) if cli.only.is_empty() => proxy::skipped(&missing),
                Err(missing) => return Err(missing),
            },
        };
        report.section(section).map_err(cannot("print"))?;
    }
    let stolen = MachineTime::now()?.stolen_since(before);
    report.end(stolen, &NOTES).map_err(cannot("print"))
}
