//! How many replicated operations a second many clients get done.

use cheops_api::Wait;
use serde::Serialize;

use crate::bare;
use crate::cluster::{BenchCluster, SITES};
use crate::connection::{Kind, Work, make_resources, operation};
use crate::failure::{BenchFailure, cannot};
use crate::figure::{Figure, Measure};
use crate::load::{AskedOf, Load, LoadClient, LoadLimit, load};
use crate::process::cpu_seconds;
use crate::report::{BenchTarget, Section, Table, TargetVerdict, number};
use crate::stats::{Spread, rate};
use crate::{Bench, Report};

const TITLE: &str = "Operations per second, each waiting for all three sites";
const CLIENTS: [usize; 3] = [1, 8, 32];
/// The number of clients that the targets speak of.
const MANY: usize = 32;
const WANTED_HTTP: f64 = 2000.0;
const WANTED_SHELL: f64 = 0.8;

/// What the clients work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum On {
    /// Each on a resource of its own.
    Different,
    /// All on the same.
    One,
}

impl On {
    fn words(self) -> &'static str {
        match self {
            Self::Different => "different resources",
            Self::One => "one resource",
        }
    }
}

#[derive(Serialize)]
struct Throughput {
    runs: Vec<ThroughputRun>,
    bare_shells_per_second: Vec<Bare>,
}

#[derive(Serialize)]
struct Bare {
    tasks: usize,
    per_second: f64,
}

#[derive(Serialize)]
struct ThroughputRun {
    work: &'static str,
    on: On,
    clients: usize,
    per_second: f64,
    spread: Spread,
    /// Replies that did not say that the operation ran.
    not_run: u64,
    /// Of each agent, without the commands it ran.
    cpu_seconds_per_1000: Vec<f64>,
}

impl ThroughputRun {
    fn name(&self) -> String {
        format!("{} on {}, {} clients", self.work, self.on.words(), self.clients)
    }

    fn wrong(&self) -> Option<String> {
        (self.not_run > 0)
            .then(|| format!("{}: {} replies other than OK", self.name(), self.not_run))
    }
}

pub(crate) async fn measure(bench: &Bench, report: &Report) -> Result<Section, BenchFailure> {
    let (mut runs, all_clients) = (Vec::new(), bench.clients_or(&CLIENTS));
    for work in bench.works().rev() {
        let cluster = bench.cluster().await?;
        for on in [On::Different, On::One] {
            for &clients in &all_clients {
                report.remark(format_args!(
                    "throughput: {}, {clients} clients on {}",
                    work.word(),
                    on.words()
                ));
                runs.push(run(bench, &cluster, work, on, clients).await?);
            }
        }
        cluster.end().await?;
    }
    let mut bare_shells_per_second = Vec::new();
    // They stand beside commands only.
    let with_shell = bench.works().any(|work| work == Work::Shell);
    for &tasks in if with_shell { all_clients.as_slice() } else { &[] } {
        report.remark(format_args!("throughput: bare `sh`, {tasks} at once"));
        let per_second = bare::shell_rate(tasks, bench.time).await?;
        bare_shells_per_second.push(Bare { tasks, per_second });
    }
    section(&Throughput { runs, bare_shells_per_second })
}

async fn run(
    bench: &Bench,
    cluster: &BenchCluster,
    work: Work,
    on: On,
    clients: usize,
) -> Result<ThroughputRun, BenchFailure> {
    let name = |n: usize| match on {
        On::Different => format!("different-{clients}-{n}"),
        On::One => format!("one-{clients}"),
    };
    let mut resources: Vec<_> = (0..clients).map(name).collect();
    let resource_of = resources.clone();
    resources.dedup();
    make_resources(cluster, &resources).await?;
    let plan = |_: ()| -> Result<Vec<LoadClient>, BenchFailure> {
        resource_of
            .iter()
            .enumerate()
            .map(|(n, resource)| {
                let operations = vec![operation(resource, work, Kind::Kept, Wait::All)?];
                Ok(LoadClient {
                    site: cluster.sites[n % SITES].api,
                    of: AskedOf::Agent,
                    operations,
                })
            })
            .collect()
    };
    load(plan(())?, LoadLimit::Time(bench.time / 8)).await?;
    let before = cpu(cluster)?;
    let load = load(plan(())?, LoadLimit::Time(bench.time)).await?;
    let cpu_seconds_per_1000 = cpu(cluster)?
        .iter()
        .zip(before)
        .map(|(after, before)| (after - before) * 1000.0 / load.count() as f64)
        .collect();
    Ok(summed_up(load, work, on, clients, cpu_seconds_per_1000))
}

fn summed_up(
    load: Load,
    work: Work,
    on: On,
    clients: usize,
    cpu_seconds_per_1000: Vec<f64>,
) -> ThroughputRun {
    ThroughputRun {
        work: work.word(),
        on,
        clients,
        per_second: rate(load.count(), load.took),
        not_run: load.count() * SITES as u64 - load.ran,
        spread: Spread::of(load.times),
        cpu_seconds_per_1000,
    }
}

fn cpu(cluster: &BenchCluster) -> Result<Vec<f64>, BenchFailure> {
    cluster.sites.iter().map(|site| cpu_seconds(site.pid()?)).collect()
}

fn section(throughput: &Throughput) -> Result<Section, BenchFailure> {
    let mut table =
        Table::new(&["", "clients", "ops/s", "p50 ms", "p99 ms", "CPU s per 1,000", "not run"]);
    for run in &throughput.runs {
        let cpu: Vec<_> = run.cpu_seconds_per_1000.iter().copied().map(number).collect();
        table.row(vec![
            format!("{} on {}", run.work, run.on.words()),
            run.clients.to_string(),
            number(run.per_second),
            number(run.spread.p50_ms),
            number(run.spread.p99_ms),
            cpu.join(" "),
            run.not_run.to_string(),
        ]);
    }
    let mut bare = Table::new(&["bare `sh -c true`", "at once", "runs/s"]);
    let mut fastest: f64 = 0.0;
    for Bare { tasks, per_second } in &throughput.bare_shells_per_second {
        bare.row(vec![String::new(), tasks.to_string(), number(*per_second)]);
        fastest = fastest.max(*per_second);
    }
    let is_beside_shells = !throughput.bare_shells_per_second.is_empty();
    Ok(Section {
        tables: std::iter::once(table).chain(is_beside_shells.then_some(bare)).collect(),
        notes: vec![
            "Clients, service and agents share this machine; a third of the clients asks each \
             site."
                .to_owned(),
            "CPU s per 1,000: processor time of each agent per 1,000 operations, without the commands \
             that it ran. Not run: replies other than OK."
                .to_owned(),
        ],
        targets: targets(&throughput.runs, fastest),
        data: serde_json::to_value(throughput).map_err(cannot("write JSON"))?,
        figures: figures(throughput),
        wrong: throughput.runs.iter().filter_map(ThroughputRun::wrong).collect(),
        ..Section::new("throughput", TITLE)
    })
}

fn figures(throughput: &Throughput) -> Vec<Figure> {
    let mut figures = Vec::new();
    for run in &throughput.runs {
        let name = run.name();
        let cpu: f64 = run.cpu_seconds_per_1000.iter().sum();
        figures.push(Figure::new(format!("{name}: ops/s"), Measure::Rate, run.per_second));
        figures.push(Figure::new(format!("{name}: p99 ms"), Measure::Time, run.spread.p99_ms));
        let what = format!("{name}: CPU s per 1,000, all agents");
        figures.push(Figure::new(what, Measure::Amount, cpu));
    }
    for Bare { tasks, per_second } in &throughput.bare_shells_per_second {
        let name = format!("bare `sh -c true`, {tasks} at once: runs/s");
        figures.push(Figure::of_machine(name, Measure::Rate, *per_second));
    }
    figures
}

/// Those of what was measured.
fn targets(runs: &[ThroughputRun], fastest: f64) -> Vec<BenchTarget> {
    let measured = |work: Work| {
        let mut runs = runs.iter().filter(|run| run.work == work.word() && run.on == On::Different);
        runs.find(|run| run.clients == MANY).map(|run| run.per_second)
    };
    let http = measured(Work::Http).map(|http| BenchTarget {
        of: "HTTP, 32 clients",
        wanted: format!("≥ {WANTED_HTTP} ops/s"),
        measured: format!("{} ops/s", number(http)),
        verdict: TargetVerdict::of(http >= WANTED_HTTP),
    });
    let shell = measured(Work::Shell).map(|per_second| {
        let shells = per_second * SITES as f64;
        let ratio = if fastest > 0.0 { shells / fastest } else { 0.0 };
        BenchTarget {
            of: "shell, 32 clients: commands run",
            wanted: format!("≥ {:.0} % of bare", WANTED_SHELL * 100.0),
            measured: format!("{:.0} % ({shells:.0} of {fastest:.0}/s)", ratio * 100.0),
            verdict: TargetVerdict::of(ratio >= WANTED_SHELL),
        }
    });
    http.into_iter().chain(shell).collect()
}
