//! How long a client waits for a request that two sites keep, as a program sends it through the proxy.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Serialize;

use crate::cluster::{BenchCluster, SERVICE};
use crate::failure::{BenchFailure, cannot};
use crate::figure::{Figure, Measure};
use crate::load::{AskedOf, LoadClient, LoadLimit, load};
use crate::process::cpu_seconds;
use crate::report::{Section, Table, number};
use crate::stats::{Spread, rate};
use crate::{Bench, Report};

const TITLE: &str = "Requests with a body of 1 KiB that two sites keep, through the proxy";
const CLIENTS: [usize; 2] = [1, 32];
/// So many of the sites keep what is made; each of them is asked by a part of the clients.
const KEPT_BY: usize = 2;
const BODY_BYTES: usize = 1024;
/// Nothing arrives at a service for so long once all sites have carried out everything.
const QUIET: Duration = Duration::from_millis(300);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(60);

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplicatedRequest {
    /// Something new each time.
    Post,
    /// The same again, which replaces what was there.
    Put,
}

impl ReplicatedRequest {
    const ALL: [Self; 2] = [Self::Post, Self::Put];

    fn method(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }

    fn path(self, clients: usize, n: usize) -> String {
        match self {
            Self::Post => "/things".to_owned(),
            Self::Put => format!("/things/{clients}-{n}"),
        }
    }
}

#[derive(Serialize)]
struct ReplicatedRun {
    method: &'static str,
    clients: usize,
    per_second: f64,
    spread: Spread,
    /// Of each agent, until all that it was to do was done.
    cpu_seconds_per_1000: Vec<f64>,
}

impl ReplicatedRun {
    fn name(&self) -> String {
        match self.clients {
            1 => format!("{}, 1 client", self.method),
            clients => format!("{}, {clients} clients", self.method),
        }
    }
}

pub(crate) async fn measure(bench: &Bench, report: &Report) -> Result<Section, BenchFailure> {
    let cluster = bench.cluster().await?;
    let mut runs = Vec::new();
    for asked in ReplicatedRequest::ALL {
        for clients in bench.clients_or(&CLIENTS) {
            report.remark(format_args!("replicated: {}, {clients} clients", asked.method()));
            runs.push(run(bench, &cluster, asked, clients).await?);
        }
    }
    cluster.end().await?;
    section(&runs)
}

async fn run(
    bench: &Bench,
    cluster: &BenchCluster,
    asked: ReplicatedRequest,
    clients: usize,
) -> Result<ReplicatedRun, BenchFailure> {
    let plan = || -> Vec<LoadClient> {
        let client = |n: usize| {
            let site: SocketAddr = cluster.sites[n % KEPT_BY].proxy;
            let operations = vec![request(cluster, asked, &asked.path(clients, n))];
            LoadClient { site, of: AskedOf::Service, operations }
        };
        (0..clients).map(client).collect()
    };
    load(plan(), LoadLimit::Time(bench.time / 8)).await?;
    all_done(bench).await?;
    let cpu = || -> Result<Vec<f64>, BenchFailure> {
        cluster.sites.iter().map(|site| cpu_seconds(site.pid()?)).collect()
    };
    let before = cpu()?;
    let load = load(plan(), LoadLimit::Time(bench.time)).await?;
    all_done(bench).await?;
    let per_1000 = |(after, before): (&f64, f64)| (after - before) * 1000.0 / load.count() as f64;
    Ok(ReplicatedRun {
        method: asked.method(),
        clients,
        per_second: rate(load.count(), load.took),
        cpu_seconds_per_1000: cpu()?.iter().zip(before).map(per_1000).collect(),
        spread: Spread::of(load.times),
    })
}

fn request(cluster: &BenchCluster, asked: ReplicatedRequest, path: &str) -> Bytes {
    let sites: Vec<_> = cluster.sites[..KEPT_BY].iter().map(|site| site.name.as_str()).collect();
    let (method, scope) = (asked.method(), sites.join(" & "));
    let body = "x".repeat(BODY_BYTES);
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nx-scope: {{{SERVICE}: {scope}}}\r\n\
         content-type: text/plain\r\ncontent-length: {BODY_BYTES}\r\n\r\n{body}"
    )
    .into()
}

/// Waits until the other sites have caught up: clients are answered before.
async fn all_done(bench: &Bench) -> Result<(), BenchFailure> {
    let began = Instant::now();
    let (mut answered, mut since) = (bench.service.answered(), began);
    while since.elapsed() < QUIET {
        if began.elapsed() > PATIENCE {
            return Err(BenchFailure::new("the sites did not come to rest", "time is up"));
        }
        tokio::time::sleep(LOOK_EVERY).await;
        let now = bench.service.answered();
        if now != answered {
            (answered, since) = (now, Instant::now());
        }
    }
    Ok(())
}

fn section(runs: &[ReplicatedRun]) -> Result<Section, BenchFailure> {
    let mut table = Table::new(&["", "requests/s", "p50 ms", "p99 ms", "CPU s per 1,000"]);
    let mut figures = Vec::new();
    for run in runs {
        let name = run.name();
        let cpu: Vec<_> = run.cpu_seconds_per_1000.iter().copied().map(number).collect();
        table.row(vec![
            name.clone(),
            number(run.per_second),
            number(run.spread.p50_ms),
            number(run.spread.p99_ms),
            cpu.join(" "),
        ]);
        let cpu = run.cpu_seconds_per_1000.iter().sum();
        figures.push(Figure::new(format!("{name}: requests/s"), Measure::Rate, run.per_second));
        figures.push(Figure::new(format!("{name}: p50 ms"), Measure::Time, run.spread.p50_ms));
        figures.push(Figure::new(format!("{name}: p99 ms"), Measure::Time, run.spread.p99_ms));
        let what = format!("{name}: CPU s per 1,000, all agents");
        figures.push(Figure::new(what, Measure::Amount, cpu));
    }
    Ok(Section {
        tables: vec![table],
        notes: vec![
            "A client is answered by its site as soon as the request is durable and done there; CPU \
             counts until the other site has done it too."
                .to_owned(),
        ],
        data: serde_json::to_value(runs).map_err(cannot("write JSON"))?,
        figures,
        ..Section::new("replicated", TITLE)
    })
}
