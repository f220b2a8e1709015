//! How long one replicated operation takes, beside the bare cost of the same work.

use std::time::Instant;

use cheops_api::Wait;
use serde::Serialize;

use crate::bare::{self, EchoConnection, Requests};
use crate::cluster::BenchCluster;
use crate::connection::{Connection, Kind, Work, make_resources, operation};
use crate::failure::{BenchFailure, cannot};
use crate::figure::{Figure, Measure};
use crate::report::{BenchTarget, Section, Table, TargetVerdict, number};
use crate::stats::Spread;
use crate::{Bench, Report};

const TITLE: &str =
    "Latency of one replicated operation, waiting for all three sites, one at a time";
/// How many operations are measured.
const COUNT: usize = 500;
/// Work and bare cost take turns in blocks of so many, so that both meet the same noise.
const BLOCK: usize = 50;
const WANTED_MS: f64 = 2.0;

#[derive(Serialize)]
struct Latency {
    round_trip: Spread,
    works: Vec<OfWork>,
}

#[derive(Serialize)]
struct OfWork {
    work: &'static str,
    operation: Spread,
    bare_in_turn: Spread,
    bare_at_once: Spread,
    /// Over the bare cost in turn and a round trip, in the median.
    overhead_ms: f64,
    overhead_at_once_ms: f64,
}

pub(crate) async fn measure(bench: &Bench, report: &Report) -> Result<Section, BenchFailure> {
    let cluster = bench.cluster().await?;
    let mut echo = EchoConnection::start().await.map_err(cannot("make an echo"))?;
    let mut trips = Vec::new();
    for _ in 0..2 * COUNT {
        trips.push(echo.round_trip().await.map_err(cannot("hear an echo"))?);
    }
    let round_trip = Spread::of(trips.split_off(COUNT));
    let mut works = Vec::new();
    for work in bench.works() {
        report.remark(format_args!("latency: {}", work.word()));
        works.push(of_work(bench, &cluster, work, round_trip.p50_ms).await?);
    }
    cluster.end().await?;
    section(&Latency { round_trip, works })
}

async fn of_work(
    bench: &Bench,
    cluster: &BenchCluster,
    work: Work,
    round_trip_ms: f64,
) -> Result<OfWork, BenchFailure> {
    let resource = format!("latency-{}", work.word().split(' ').next().unwrap_or_default());
    make_resources(cluster, std::slice::from_ref(&resource)).await?;
    let operation = operation(&resource, work, Kind::Kept, Wait::All)?;
    let mut connection = Connection::open(cluster.sites[0].api).await?;
    let mut requests = Requests::to(bench.service.address).await?;
    for _ in 0..BLOCK {
        connection.hand_in(&operation).await?;
    }
    let (mut times, mut in_turn, mut at_once) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..COUNT / BLOCK {
        for _ in 0..BLOCK {
            let start = Instant::now();
            connection.hand_in(&operation).await?;
            times.push(start.elapsed());
        }
        for _ in 0..BLOCK {
            in_turn.push(match work {
                Work::Shell => bare::shell_in_turn().await?,
                Work::Http => requests.in_turn().await?,
            });
            at_once.push(match work {
                Work::Shell => bare::shell_at_once().await?,
                Work::Http => requests.at_once().await?,
            });
        }
    }
    let operation = Spread::of(times);
    let (bare_in_turn, bare_at_once) = (Spread::of(in_turn), Spread::of(at_once));
    Ok(OfWork {
        work: work.word(),
        operation,
        bare_in_turn,
        bare_at_once,
        overhead_ms: operation.p50_ms - bare_in_turn.p50_ms - round_trip_ms,
        overhead_at_once_ms: operation.p50_ms - bare_at_once.p50_ms - round_trip_ms,
    })
}

fn section(latency: &Latency) -> Result<Section, BenchFailure> {
    let mut table = Table::new(&["ms", "p50", "p95", "p99"]);
    let mut row = |what: String, spread: &Spread| {
        let times = [spread.p50_ms, spread.p95_ms, spread.p99_ms];
        table.row(std::iter::once(what).chain(times.map(number)).collect());
    };
    let mut notes = Vec::new();
    for of in &latency.works {
        row(format!("{}: replicated to three sites", of.work), &of.operation);
        row(format!("{}: bare, three in turn", of.work), &of.bare_in_turn);
        row(format!("{}: bare, three at once", of.work), &of.bare_at_once);
        notes.push(format!(
            "{}: {} ms over three in turn and a round trip (this is the target's), {} ms over \
             three at once and a round trip",
            of.work,
            number(of.overhead_ms),
            number(of.overhead_at_once_ms)
        ));
    }
    row("round trip on loopback".to_owned(), &latency.round_trip);
    let target = |of: &OfWork| BenchTarget {
        of: if of.work == Work::Shell.word() { "overhead, shell" } else { "overhead, HTTP" },
        wanted: format!("< {WANTED_MS} ms"),
        measured: format!("{} ms", number(of.overhead_ms)),
        verdict: TargetVerdict::of(of.overhead_ms < WANTED_MS),
    };
    Ok(Section {
        tables: vec![table],
        notes,
        targets: latency.works.iter().map(target).collect(),
        data: serde_json::to_value(latency).map_err(cannot("write JSON"))?,
        figures: figures(latency),
        ..Section::new("latency", TITLE)
    })
}

fn figures(latency: &Latency) -> Vec<Figure> {
    let mut figures = Vec::new();
    for OfWork { work, operation, bare_in_turn, .. } in &latency.works {
        let times =
            [("p50", operation.p50_ms), ("p95", operation.p95_ms), ("p99", operation.p99_ms)];
        let figure = |(what, ms)| Figure::new(format!("{work}: {what} ms"), Measure::Time, ms);
        figures.extend(times.map(figure));
        let bare = format!("{work}: bare, three in turn, p50 ms");
        figures.push(Figure::of_machine(bare, Measure::Time, bare_in_turn.p50_ms));
    }
    let round_trip = latency.round_trip.p50_ms;
    figures.push(Figure::of_machine("round trip on loopback, p50 ms", Measure::Time, round_trip));
    figures
}
