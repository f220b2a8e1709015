//! Runs seeds and says what came of them.
//!
//! `--seeds N` runs many and fails if any found a violation, or if something that must happen
//! sometimes never did. `--seed N --trace` replays one. `--minutes M` goes on for that long.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is what the program is for")]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// When there is an end to it.
#[derive(Debug, Clone, Copy)]
enum SoakEnd {
    /// Before that seed, or when there are failures enough to work on.
    Seed(u64),
    /// As late as was asked for, whatever fails: who looks for what is rare has time.
    Time(Instant),
}

impl SoakEnd {
    fn is_reached(self, next_seed: u64, failures: u64) -> bool {
        match self {
            Self::Seed(end) => next_seed >= end || failures >= MOST_FAILURES,
            Self::Time(end) => Instant::now() >= end,
        }
    }
}

/// What the workers share.
struct SharedByWorkers {
    next: AtomicU64,
    failures: AtomicU64,
    sum: Mutex<Totals>,
}

#[derive(Default)]
struct Totals {
    seeds: u64,
    operations: usize,
    sometimes: Sometimes,
    failures: u64,
    /// The first of them.
    failed_seeds: Vec<u64>,
}

/// Enough to work on; more would only hide the first.
const MOST_FAILURES: u64 = 10;

fn many(arguments: &Arguments) -> ExitCode {
    let start = Instant::now();
    let until = match arguments.minutes {
        Some(minutes) => SoakEnd::Time(start + Duration::from_secs(60 * minutes)),
        None => SoakEnd::Seed(arguments.from.saturating_add(arguments.seeds)),
    };
    let shared = SharedByWorkers {
        next: AtomicU64::new(arguments.from),
        failures: AtomicU64::new(0),
        sum: Mutex::default(),
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| work(&shared, until, arguments.bug));
        }
    });
    let sum = shared.sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    conclude(&sum, start.elapsed(), arguments)
}

fn work(shared: &SharedByWorkers, until: SoakEnd, bug: Option<Bug>) {
    loop {
        let seed = shared.next.fetch_add(1, Ordering::Relaxed);
        if until.is_reached(seed, shared.failures.load(Ordering::Relaxed)) {
            return;
        }
        let report = torture(seed, bug, false);
        let Ok(mut sum) = shared.sum.lock() else { return };
        if let Some(violation) = &report.violation {
            eprintln!("seed {seed}: VIOLATION: {violation}");
            shared.failures.fetch_add(1, Ordering::Relaxed);
        }
        sum.add(&report);
        if sum.seeds % 200 == 0 {
            eprintln!("{} seeds, {} operations", sum.seeds, sum.operations);
        }
    }
}

impl Totals {
    fn add(&mut self, report: &SeedReport) {
        self.seeds += 1;
        self.operations += report.operations;
        self.sometimes.join(&report.sometimes);
        if report.violation.is_some() {
            self.failures += 1;
            if self.failures <= MOST_FAILURES {
                self.failed_seeds.push(report.seed);
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
    for seed in &sum.failed_seeds {
        println!("replay: cargo run --release -p cheops-sim -- --seed {seed} --trace{bug}");
    }
    // A handful of seeds cannot see everything; a thousand must.
    let missing = if sum.seeds >= 300 { sum.sometimes.missing() } else { Vec::new() };
    for what in &missing {
        println!("NEVER HAPPENED: {what}");
    }
    println!("{} passed, {} failed", sum.seeds - sum.failures, sum.failures);
    if sum.failures == 0 && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_minutes_as_were_asked_for_are_used_whatever_fails() {
        let now = Instant::now();
        let (later, earlier) =
            (SoakEnd::Time(now + Duration::from_secs(3_600)), SoakEnd::Time(now));
        assert!(!later.is_reached(u64::MAX, 1_000));
        assert!(earlier.is_reached(1, 0));
    }

    #[test]
    fn so_many_seeds_as_were_asked_for_are_run_unless_there_is_enough_to_work_on() {
        let end = SoakEnd::Seed(1_001);
        assert!(!end.is_reached(1_000, MOST_FAILURES - 1));
        assert!(end.is_reached(1_000, MOST_FAILURES));
        assert!(end.is_reached(1_001, 0));
    }

    #[test]
    fn of_many_failures_all_are_counted_and_the_first_are_named() {
        let mut sum = Totals::default();
        let violation = || Some(cheops_sim::Violation("wrong".into()));
        for seed in 1..=40 {
            let report = SeedReport { seed, violation: violation(), ..an_empty_report() };
            sum.add(&report);
        }
        assert_eq!((sum.seeds, sum.failures), (40, 40));
        assert_eq!(sum.failed_seeds, (1..=MOST_FAILURES).collect::<Vec<_>>());
    }

    fn an_empty_report() -> SeedReport {
        SeedReport {
            seed: 0,
            hash: String::new(),
            sometimes: Sometimes::default(),
            operations: 0,
            violation: None,
            lines: Vec::new(),
        }
    }
}
