//! What an agent takes of memory and disk, idle and after many operations.

use std::time::Duration;

use cheops_api::Wait;
use serde::Serialize;

use crate::cluster::{BenchCluster, SITES};
use crate::connection::{Kind, Work, make_resources, operation};
use crate::failure::{BenchFailure, cannot};
use crate::figure::{Figure, Measure};
use crate::load::{AskedOf, LoadClient, LoadLimit, load};
use crate::process::{disk, resident};
use crate::report::{BenchTarget, Section, Table, TargetVerdict, megabytes, number};
use crate::{Bench, Report};

const TITLE: &str = "Memory and disk per site; 10,000 operations over 100 resources, 32 clients";
const OPERATIONS: u64 = 10_000;
const RESOURCES: usize = 100;
const CLIENTS: usize = 32;
const WANTED_BYTES: u64 = 30_000_000;
/// What was put off has happened after that.
const SETTLING: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct MemoryResult {
    runs: Vec<MemoryRun>,
}

#[derive(Serialize)]
struct MemoryRun {
    history: &'static str,
    idle: Vec<AgentUsage>,
    after: Vec<AgentUsage>,
    /// Requests that reached the service, and how many should have.
    requests: u64,
    requests_wanted: u64,
}

impl MemoryRun {
    /// Of the largest of the three agents each.
    fn figures(&self) -> Vec<Figure> {
        let history = self.history;
        let most = |taken: &[AgentUsage], of: fn(&AgentUsage) -> u64| {
            taken.iter().map(of).max().unwrap_or_default() as f64 / 1e6
        };
        let figure = |when: &str, what: &str, megabytes: f64| {
            let name = format!("history {history}, {when}: {what} MB");
            Figure::new(name, Measure::Amount, megabytes)
        };
        let (resident, disk) =
            (|taken: &AgentUsage| taken.resident, |taken: &AgentUsage| taken.disk);
        vec![
            figure("idle", "RSS", most(&self.idle, resident)),
            figure("idle", "disk", most(&self.idle, disk)),
            figure("after", "RSS", most(&self.after, resident)),
            figure("after", "disk", most(&self.after, disk)),
        ]
    }

    fn wrong(&self) -> Option<String> {
        let Self { history, requests, requests_wanted, .. } = self;
        (requests != requests_wanted).then(|| {
            format!("history {history}: {requests} requests, {requests_wanted} should have been")
        })
    }
}

/// What one agent takes, in bytes.
#[derive(Serialize)]
struct AgentUsage {
    site: String,
    resident: u64,
    disk: u64,
}

pub(crate) async fn measure(bench: &Bench, report: &Report) -> Result<Section, BenchFailure> {
    let mut runs = Vec::new();
    for (kind, history) in [(Kind::Kept, "kept"), (Kind::Replacing, "replaced")] {
        report.remark(format_args!("memory: {OPERATIONS} operations, history {history}"));
        runs.push(run(bench, kind, history).await?);
    }
    section(&MemoryResult { runs })
}

async fn run(bench: &Bench, kind: Kind, history: &'static str) -> Result<MemoryRun, BenchFailure> {
    let cluster = bench.cluster().await?;
    let idle = taken(&cluster)?;
    let asked_before = bench.service.answered();
    let resources: Vec<_> = (0..RESOURCES).map(|n| format!("memory-{n}")).collect();
    make_resources(&cluster, &resources).await?;
    // Each resource belongs to one client, so that no operation has a rival.
    let client = |n: usize| {
        let own = resources.iter().skip(n).step_by(CLIENTS);
        let operations = own.map(|resource| operation(resource, Work::Http, kind, Wait::All));
        Ok(LoadClient {
            of: AskedOf::Agent,
            site: cluster.sites[n % SITES].api,
            operations: operations.collect::<Result<_, _>>()?,
        })
    };
    let clients: Result<_, BenchFailure> = (0..CLIENTS).map(client).collect();
    load(clients?, LoadLimit::Count(OPERATIONS)).await?;
    let requests = bench.service.answered() - asked_before;
    tokio::time::sleep(SETTLING).await;
    let after = taken(&cluster)?;
    cluster.end().await?;
    let requests_wanted = (OPERATIONS + RESOURCES as u64) * SITES as u64;
    Ok(MemoryRun { history, idle, after, requests, requests_wanted })
}

fn taken(cluster: &BenchCluster) -> Result<Vec<AgentUsage>, BenchFailure> {
    let of = |site: &crate::cluster::BenchSite| {
        let disk = disk(&site.data).map_err(cannot("measure a folder"))?;
        Ok(AgentUsage { site: site.name.to_string(), resident: resident(site.pid()?)?, disk })
    };
    cluster.sites.iter().map(of).collect()
}

fn section(memory: &MemoryResult) -> Result<Section, BenchFailure> {
    let mut table = Table::new(&["", "site", "RSS MB", "disk MB", "disk bytes per operation"]);
    let mut notes = Vec::new();
    for run in &memory.runs {
        for taken in &run.idle {
            let row = ["idle".to_owned(), taken.site.clone(), megabytes(taken.resident)];
            table.row(row.into_iter().chain([megabytes(taken.disk), String::new()]).collect());
        }
        for (taken, idle) in run.after.iter().zip(&run.idle) {
            let grown = taken.disk.saturating_sub(idle.disk) as f64 / OPERATIONS as f64;
            table.row(vec![
                format!("after {OPERATIONS} operations, history {}", run.history),
                taken.site.clone(),
                megabytes(taken.resident),
                megabytes(taken.disk),
                number(grown),
            ]);
        }
        notes.push(format!(
            "history {}: {} requests reached the services, {} should have",
            run.history, run.requests, run.requests_wanted
        ));
    }
    let idle = memory.runs.iter().flat_map(|run| &run.idle).map(|taken| taken.resident).max();
    let idle = idle.unwrap_or_default();
    let target = BenchTarget {
        of: "idle agent, the largest",
        wanted: format!("< {} MB RSS", megabytes(WANTED_BYTES)),
        measured: format!("{} MB", megabytes(idle)),
        verdict: TargetVerdict::of(idle < WANTED_BYTES),
    };
    Ok(Section {
        tables: vec![table],
        notes,
        targets: vec![target],
        data: serde_json::to_value(memory).map_err(cannot("write JSON"))?,
        figures: memory.runs.iter().flat_map(MemoryRun::figures).collect(),
        wrong: memory.runs.iter().filter_map(MemoryRun::wrong).collect(),
        ..Section::new("memory", TITLE)
    })
}
