//! What it costs a site that has nothing to do to read the states of its resources again and again.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;
use tokio::task::JoinSet;

use crate::cluster::{BenchCluster, SITES};
use crate::connection::{Connection, state_resource};
use crate::failure::{BenchFailure, cannot};
use crate::figure::{Figure, Measure};
use crate::process::cpu_seconds_with_children;
use crate::report::{BenchTarget, Section, Table, TargetVerdict};
use crate::{Bench, Report};

const TITLE: &str = "Reading states: processor time of idle sites that hold 10,000 resources";
const RESOURCES: usize = 10_000;
const CLIENTS: usize = 16;
/// Percent of a core, of what reading costs.
const WANTED_PERCENT: f64 = 2.0;
/// So often that a site is never done with it: then only its own limit bounds what it takes.
const READ_AGAIN: &str = "[shell]\nverify_every = \"5s\"\n";
/// Each state is read once after it was made, a process each.
const PATIENCE: Duration = Duration::from_secs(900);
/// What was put off has happened after that.
const SETTLING: Duration = Duration::from_secs(8);
/// How many of the measurements of other parts one of these lasts: what is read is little at a time.
const TIMES_LONGER: u32 = 5;

#[derive(Serialize)]
struct StatesResult {
    without: IdleCost,
    with: IdleCost,
}

#[derive(Serialize)]
struct IdleCost {
    /// Of each site, in percent of a core; commands that it ran included.
    percent: Vec<f64>,
}

impl IdleCost {
    fn most(&self) -> f64 {
        self.percent.iter().copied().fold(0.0, f64::max)
    }
}

pub(crate) async fn measure(bench: &Bench, report: &Report) -> Result<Section, BenchFailure> {
    report.remark(format_args!("states: {RESOURCES} resources without any"));
    let without = run(bench, None).await?;
    report.remark(format_args!("states: {RESOURCES} resources whose states are read"));
    let read = json!({"State": {"Read": "echo 0", "Write": "cat > /dev/null"}});
    let with = run(bench, Some(&read)).await?;
    section(&StatesResult { without, with })
}

async fn run(bench: &Bench, config: Option<&serde_json::Value>) -> Result<IdleCost, BenchFailure> {
    let cluster = bench.cluster_with(READ_AGAIN).await?;
    make(&cluster, config).await?;
    if config.is_some() {
        all_verified(&cluster).await?;
    }
    tokio::time::sleep(SETTLING).await;
    let used = || -> Result<Vec<f64>, BenchFailure> {
        cluster.sites.iter().map(|site| cpu_seconds_with_children(site.pid()?)).collect()
    };
    let (began, before) = (Instant::now(), used()?);
    tokio::time::sleep(bench.time * TIMES_LONGER).await;
    let (took, after) = (began.elapsed(), used()?);
    cluster.end().await?;
    let percent = |(after, before): (f64, f64)| 100.0 * (after - before) / took.as_secs_f64();
    Ok(IdleCost { percent: after.into_iter().zip(before).map(percent).collect() })
}

async fn make(
    cluster: &BenchCluster,
    config: Option<&serde_json::Value>,
) -> Result<(), BenchFailure> {
    let mut clients = JoinSet::new();
    for n in 0..CLIENTS {
        let site = cluster.sites[n % SITES].api;
        let own = (n..RESOURCES).step_by(CLIENTS);
        let requests = own.map(|at| state_resource(cluster, &format!("state-{at}"), config));
        let requests: Vec<_> = requests.collect::<Result<_, _>>()?;
        clients.spawn(async move {
            let mut connection = Connection::open(site).await?;
            for request in requests {
                connection.hand_in(&request).await?;
            }
            Ok::<_, BenchFailure>(())
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.map_err(cannot("make resources"))??;
    }
    Ok(())
}

async fn all_verified(cluster: &BenchCluster) -> Result<(), BenchFailure> {
    let waiting = async {
        for site in &cluster.sites {
            let client = site.client()?;
            loop {
                let summary = client.summary().await.map_err(cannot("ask for the summary"))?;
                if summary.verified >= RESOURCES as u64 {
                    break;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        Ok(())
    };
    let late = |_| Err(BenchFailure::new("not all states were verified", "time is up"));
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(late)
}

fn section(states: &StatesResult) -> Result<Section, BenchFailure> {
    let mut table = Table::new(&["% of a core", "site1", "site2", "site3"]);
    for (name, cost) in [("without states", &states.without), ("states are read", &states.with)] {
        let cells = cost.percent.iter().map(|percent| format!("{percent:.2}"));
        table.row([name.to_owned()].into_iter().chain(cells).collect());
    }
    let reading = states.with.most() - states.without.most();
    let target = BenchTarget {
        of: "reading states, the busiest site",
        wanted: format!("< {WANTED_PERCENT} % of a core"),
        measured: format!("{reading:.2} %"),
        verdict: TargetVerdict::of(reading < WANTED_PERCENT),
    };
    let figure = |name: &str, value| Figure::new(name, Measure::Amount, value);
    Ok(Section {
        tables: vec![table],
        targets: vec![target],
        data: serde_json::to_value(states).map_err(cannot("write JSON"))?,
        figures: vec![
            figure("idle without states, % of a core", states.without.most()),
            figure("idle with states, % of a core", states.with.most()),
        ],
        ..Section::new("states", TITLE)
    })
}
