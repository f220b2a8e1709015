//! Runs seeds and says what came of them.
//!
//! `--seeds N` runs many and fails if any found a violation, or if something that must happen
//! sometimes never did. `--seed N --trace` replays one. `--minutes M` goes on for that long.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is what the program is for")]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cheops_sim::{Bug, SeedReport, Sometimes, torture};
use clap::Parser;

/// Tortures simulated sites, seed by seed.
#[derive(Debug, Parser)]
#[command(name = "cheops-sim", version)]
struct Arguments {
    /// Run this many seeds
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Start with this seed
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Run this one seed only
    #[arg(long, conflicts_with_all = ["seeds", "from", "minutes"])]
    seed: Option<u64>,
    /// With --seed: print everything that happens
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Go on for so many minutes, from the first seed on, instead of a number of seeds
    #[arg(long, conflicts_with = "seeds")]
    minutes: Option<u64>,
    /// Put a bug in on purpose (docs/simulation.md lists them, and so does a name that is none)
    #[arg(long)]
    bug: Option<Bug>,
    /// Print how often each thing that must happen did
    #[arg(long)]
    coverage: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.seed {
        Some(seed) => replay(seed, &arguments),
        None => many(&arguments),
    }
}

fn replay(seed: u64, arguments: &Arguments) -> ExitCode {
    let report = torture(seed, arguments.bug, arguments.trace);
    report.lines.iter().for_each(|line| println!("{line}"));
    let code = match &report.violation {
        None => {
            println!("nothing wrong");
            ExitCode::SUCCESS
        }
        Some(violation) => {
            println!("VIOLATION: {violation}");
            ExitCode::FAILURE
        }
    };
    println!("seed {seed}: trace hash {}, {} operations", report.hash, report.operations);
    code
}

/// What the workers share.
struct SharedByWorkers {
    next: AtomicU64,
    stop: AtomicBool,
    sum: Mutex<Totals>,
}

#[derive(Default)]
struct Totals {
    seeds: u64,
    operations: usize,
    sometimes: Sometimes,
    failed: Vec<SeedReport>,
}

/// Enough to work on; more would only hide the first.
const MOST_FAILURES: usize = 10;

fn many(arguments: &Arguments) -> ExitCode {
    let start = Instant::now();
    let until = arguments.minutes.map(|minutes| start + Duration::from_secs(60 * minutes));
    let end =
        if until.is_some() { u64::MAX } else { arguments.from.saturating_add(arguments.seeds) };
    let shared = SharedByWorkers {
        next: AtomicU64::new(arguments.from),
        stop: AtomicBool::new(false),
        sum: Mutex::default(),
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| work(&shared, end, until, arguments.bug));
        }
    });
    let sum = shared.sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    conclude(&sum, start.elapsed(), arguments)
}

fn work(shared: &SharedByWorkers, end: u64, until: Option<Instant>, bug: Option<Bug>) {
    loop {
        let seed = shared.next.fetch_add(1, Ordering::Relaxed);
        let out_of_time = until.is_some_and(|until| Instant::now() >= until);
        if seed >= end || out_of_time || shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let report = torture(seed, bug, false);
        let Ok(mut sum) = shared.sum.lock() else { return };
        sum.seeds += 1;
        sum.operations += report.operations;
        sum.sometimes.join(&report.sometimes);
        if sum.seeds % 200 == 0 {
            eprintln!("{} seeds, {} operations", sum.seeds, sum.operations);
        }
        if let Some(violation) = &report.violation {
            eprintln!("seed {seed}: VIOLATION: {violation}");
            sum.failed.push(report);
            if sum.failed.len() >= MOST_FAILURES {
                shared.stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

fn conclude(sum: &Totals, took: Duration, arguments: &Arguments) -> ExitCode {
    if arguments.coverage {
        for (what, count) in sum.sometimes.iter() {
            println!("{count:>10}  {what}");
        }
    }
    let rate = sum.seeds as f64 / took.as_secs_f64().max(0.001);
    println!(
        "{} seeds, {} operations, {:.1} s, {rate:.0} seeds per second",
        sum.seeds,
        sum.operations,
        took.as_secs_f64()
    );
    let bug = arguments.bug.map(|bug| format!(" --bug {bug}")).unwrap_or_default();
    for report in &sum.failed {
        println!(
            "replay: cargo run --release -p cheops-sim -- --seed {} --trace{bug}",
            report.seed
        );
    }
    // A handful of seeds cannot see everything; a thousand must.
    let missing = if sum.seeds >= 300 { sum.sometimes.missing() } else { Vec::new() };
    for what in &missing {
        println!("NEVER HAPPENED: {what}");
    }
    println!("{} passed, {} failed", sum.seeds - sum.failed.len() as u64, sum.failed.len());
    if sum.failed.is_empty() && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
