//! What an agent costs as a proxy, beside no proxy and beside those that others use.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use crate::cluster::{BenchCluster, SERVICE};
use crate::failure::{BenchFailure, cannot};
use crate::figure::{Figure, Measure, Of};
use crate::paced::{Paced, Question};
use crate::process::{cpu_seconds, resident};
use crate::report::{BenchTarget, Section, Table, TargetVerdict, megabytes, number};
use crate::servers::{BODY, Servers, Tools};
use crate::stats::{Spread, median};
use crate::wrk::wrk;
use crate::{Bench, Report};

const NAME: &str = "proxy";
const TITLE: &str = "An agent as a proxy, beside other proxies in front of the same service";
const CONNECTIONS: [usize; 3] = [1, 32, 256];
/// The number of connections that most targets speak of.
const SOME: usize = 32;
const MANY: usize = 256;
/// Opens connections to the service, and lets everybody find its memory.
const WARMING_UP: Duration = Duration::from_secs(1);
/// The ways take turns in so many blocks, so that all meet the same noise; what is in the middle of
/// the blocks counts.
const BLOCKS: u32 = 9;
/// At half load they are more and shorter, of so many parts of the time: one percent of a block is
/// little, and a machine that is not there for some milliseconds spoils the block that it meets.
/// The shorter they are, the fewer are met; what all of them come to is told as well.
const PACED_BLOCKS: u32 = 200;
const PACED_PARTS: u32 = 80;
/// At half load the first of so many parts of a block is not counted: the one that had its turn
/// before is still in the processors' memory.
const COUNTED_AFTER: usize = 10;
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

const WANTED_OF_HAPROXY: f64 = 0.8;
const WANTED_ADDED_MS: f64 = 0.5;
const WANTED_SCOPE_COST: f64 = 0.15;
const WANTED_BYTES: u64 = 60_000_000;

/// How a request gets to the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum RequestPath {
    Direct,
    Nginx,
    Haproxy,
    NoScope,
    LocalScope,
    RemoteScope,
}

impl RequestPath {
    const ALL: [Self; 6] = [
        Self::Direct,
        Self::Nginx,
        Self::Haproxy,
        Self::NoScope,
        Self::LocalScope,
        Self::RemoteScope,
    ];
    /// Those that are compared at half load.
    const PACED: [Self; 3] = [Self::Direct, Self::Haproxy, Self::NoScope];

    fn of(self) -> Of {
        match self {
            Self::Direct | Self::Nginx | Self::Haproxy => Of::Machine,
            Self::NoScope | Self::LocalScope | Self::RemoteScope => Of::Program,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Haproxy => "HAProxy",
            Self::NoScope => "Cheops, no scope",
            Self::LocalScope => "Cheops, this site",
            Self::RemoteScope => "Cheops, another site",
        }
    }
}

/// Everybody on the way.
struct Scene {
    servers: Servers,
    cluster: BenchCluster,
}

impl Scene {
    async fn set(bench: &Bench, tools: &Tools) -> Result<Self, BenchFailure> {
        let servers = Servers::start(tools, &bench.place).await?;
        let cluster = bench.cluster_before(servers.service.address).await?;
        Ok(Self { servers, cluster })
    }

    fn address(&self, way: RequestPath) -> SocketAddr {
        match way {
            RequestPath::Direct => self.servers.service.address,
            RequestPath::Nginx => self.servers.nginx.address,
            RequestPath::Haproxy => self.servers.haproxy.address,
            RequestPath::NoScope | RequestPath::LocalScope | RequestPath::RemoteScope => {
                self.cluster.sites[0].proxy
            }
        }
    }

    fn header(&self, way: RequestPath) -> Option<String> {
        let scope = |at: usize| format!("X-Scope: {{{SERVICE}: {}}}", self.cluster.sites[at].name);
        match way {
            RequestPath::LocalScope => Some(scope(0)),
            RequestPath::RemoteScope => Some(scope(1)),
            RequestPath::Direct
            | RequestPath::Nginx
            | RequestPath::Haproxy
            | RequestPath::NoScope => None,
        }
    }

    /// Processor time of all proxies on this way so far, if there are any.
    fn cpu(&self, way: RequestPath) -> Result<Option<f64>, BenchFailure> {
        let agent = |at: usize| cpu_seconds(self.cluster.sites[at].pid()?);
        Ok(match way {
            RequestPath::Direct => None,
            RequestPath::Nginx => Some(cpu_seconds(self.servers.nginx.pid()?)?),
            RequestPath::Haproxy => Some(cpu_seconds(self.servers.haproxy.pid()?)?),
            RequestPath::NoScope | RequestPath::LocalScope => Some(agent(0)?),
            RequestPath::RemoteScope => Some(agent(0)? + agent(1)?),
        })
    }

    /// The agent that clients ask.
    fn resident(&self) -> Result<u64, BenchFailure> {
        resident(self.cluster.sites[0].pid()?)
    }

    async fn end(self) -> Result<(), BenchFailure> {
        self.cluster.end().await?;
        self.servers.end().await
    }
}

#[derive(Serialize)]
struct ProxyResult {
    runs: Vec<ProxyRun>,
    half_load: HalfLoad,
    /// Of the agent, after many connections without scope, the most of all blocks. It has had
    /// requests with scopes by then, as an agent at work has.
    resident: u64,
    /// The same before any other work.
    resident_when_new: u64,
}

#[derive(Serialize)]
struct ProxyRun {
    way: RequestPath,
    connections: usize,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// Of all proxies on the way together.
    per_cpu_second: Option<f64>,
}

impl ProxyRun {
    fn in_the_middle(way: RequestPath, connections: usize, blocks: &[Self]) -> Self {
        let middle = |figure: fn(&Self) -> f64| median(blocks.iter().map(figure).collect());
        let per_cpu_second: Option<Vec<_>> =
            blocks.iter().map(|block| block.per_cpu_second).collect();
        Self {
            way,
            connections,
            per_second: middle(|block| block.per_second),
            p50_ms: middle(|block| block.p50_ms),
            p99_ms: middle(|block| block.p99_ms),
            per_cpu_second: per_cpu_second.map(median),
        }
    }
}

#[derive(Serialize)]
struct HalfLoad {
    per_second: f64,
    ways: Vec<PacedWay>,
}

#[derive(Serialize)]
struct PacedWay {
    way: RequestPath,
    blocks: Vec<Spread>,
    /// Of all requests of all blocks, with whatever the machine did meanwhile.
    whole: Spread,
}

impl ProxyResult {
    /// Requests per second of processor time.
    fn per_cpu_second(&self, way: RequestPath) -> f64 {
        let run = self.runs.iter().find(|run| run.way == way && run.connections == SOME);
        run.and_then(|run| run.per_cpu_second).unwrap_or_default()
    }
}

impl PacedWay {
    fn middle(&self, figure: fn(&Spread) -> f64) -> f64 {
        median(self.blocks.iter().map(figure).collect())
    }
}

impl HalfLoad {
    /// What this way adds to the direct one.
    fn added_p99_ms(&self, way: RequestPath) -> f64 {
        let of = |way| self.ways.iter().find(|paced| paced.way == way);
        let p99 = |way| of(way).map_or(0.0, |paced| paced.middle(|spread| spread.p99_ms));
        p99(way) - p99(RequestPath::Direct)
    }
}

/// In place of the measurement, where the tools are missing.
pub(crate) fn skipped(because: &BenchFailure) -> Section {
    Section {
        notes: vec![format!("skipped: {because}")],
        data: json!({ "skipped": because.to_string() }),
        ..Section::new(NAME, TITLE)
    }
}

pub(crate) async fn measure(
    bench: &Bench,
    report: &Report,
    tools: &Tools,
) -> Result<Section, BenchFailure> {
    let scene = Scene::set(bench, tools).await?;
    report.remark(format_args!("proxy: memory, {MANY} connections"));
    run(&scene, tools, RequestPath::NoScope, MANY, bench.time).await?;
    let resident_when_new = scene.resident()?;
    for way in RequestPath::ALL {
        run(&scene, tools, way, SOME, WARMING_UP).await?;
    }
    let (mut runs, mut resident) = (Vec::new(), 0);
    for connections in CONNECTIONS {
        report.remark(format_args!("proxy: {connections} connections"));
        let (turns, taken) = turns(&scene, tools, connections, bench.time).await?;
        runs.extend(turns);
        resident = taken;
    }
    let full = runs.iter().find(|run| run.way == RequestPath::NoScope && run.connections == SOME);
    let per_second = full.map_or(0.0, |run| run.per_second) / 2.0;
    // Half of what the first one reached, for whoever is compared with it: at a rate of its own,
    // the faster one would be asked for more.
    let per_second = *bench.half_load.get_or_init(|| per_second);
    report.remark(format_args!("proxy: half load, {per_second:.0} requests/s"));
    let half_load = half_load(&scene, per_second, bench.time).await?;
    scene.end().await?;
    section(&ProxyResult { runs, half_load, resident, resident_when_new })
}

/// All ways, and what the agent had resident after those without scope.
async fn turns(
    scene: &Scene,
    tools: &Tools,
    connections: usize,
    time: Duration,
) -> Result<(Vec<ProxyRun>, u64), BenchFailure> {
    let mut taken = 0;
    let mut blocks = RequestPath::ALL.map(|way| (way, Vec::new()));
    for _ in 0..BLOCKS {
        for (way, blocks) in &mut blocks {
            blocks.push(run(scene, tools, *way, connections, time / BLOCKS).await?);
            if *way == RequestPath::NoScope {
                taken = scene.resident()?.max(taken);
            }
        }
    }
    let middle = |(way, blocks): &(RequestPath, Vec<ProxyRun>)| {
        ProxyRun::in_the_middle(*way, connections, blocks)
    };
    Ok((blocks.iter().map(middle).collect(), taken))
}

async fn run(
    scene: &Scene,
    tools: &Tools,
    way: RequestPath,
    connections: usize,
    time: Duration,
) -> Result<ProxyRun, BenchFailure> {
    let header = scene.header(way);
    let before = scene.cpu(way)?;
    let heard = wrk(&tools.wrk, scene.address(way), header.as_deref(), connections, time).await?;
    let used = scene.cpu(way)?.zip(before).map(|(after, before)| after - before);
    Ok(ProxyRun {
        way,
        connections,
        per_second: heard.per_second,
        p50_ms: heard.p50_ms,
        p99_ms: heard.p99_ms,
        per_cpu_second: used.filter(|used| *used > 0.0).map(|used| heard.requests as f64 / used),
    })
}

async fn half_load(
    scene: &Scene,
    per_second: f64,
    time: Duration,
) -> Result<HalfLoad, BenchFailure> {
    let addresses = RequestPath::PACED.map(|way| (way, scene.address(way)));
    let ways = tokio::task::spawn_blocking(move || paced(addresses, per_second, time)).await;
    let ways = ways.map_err(cannot("wait for a client"))?;
    Ok(HalfLoad { per_second, ways: ways.map_err(cannot("keep up half of the load"))? })
}

/// Blocks the thread.
fn paced(
    ways: [(RequestPath, SocketAddr); 3],
    per_second: f64,
    time: Duration,
) -> io::Result<Vec<PacedWay>> {
    let question = Question { request: REQUEST, answer_end: BODY.as_bytes() };
    let connect = |(way, to)| Ok((way, Paced::connect(to, SOME, question)?, Vec::new()));
    let mut ways: Vec<_> = ways.into_iter().map(connect).collect::<io::Result<_>>()?;
    for _ in 0..PACED_BLOCKS {
        for (_, paced, blocks) in &mut ways {
            let mut block = paced.keep(per_second, time / PACED_PARTS)?;
            blocks.push(block.split_off(block.len() / COUNTED_AFTER));
        }
    }
    let spread = |(way, _, blocks): (_, _, Vec<Vec<Duration>>)| PacedWay {
        way,
        whole: Spread::of(blocks.concat()),
        blocks: blocks.into_iter().map(Spread::of).collect(),
    };
    Ok(ways.into_iter().map(spread).collect())
}

fn section(proxy: &ProxyResult) -> Result<Section, BenchFailure> {
    let mut table = Table::new(&[
        "as fast as answers come",
        "connections",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "requests per CPU s",
    ]);
    for run in &proxy.runs {
        table.row(vec![
            run.way.words().to_owned(),
            run.connections.to_string(),
            number(run.per_second),
            number(run.p50_ms),
            number(run.p99_ms),
            run.per_cpu_second.map(number).unwrap_or_default(),
        ]);
    }
    let mut half =
        Table::new(&["half load, ms", "p50", "p95", "p99", "p99 added", "p99 of all blocks"]);
    for paced in &proxy.half_load.ways {
        let figures = [
            paced.middle(|spread| spread.p50_ms),
            paced.middle(|spread| spread.p95_ms),
            paced.middle(|spread| spread.p99_ms),
            proxy.half_load.added_p99_ms(paced.way),
            paced.whole.p99_ms,
        ];
        let words = paced.way.words().to_owned();
        half.row(std::iter::once(words).chain(figures.map(number)).collect());
    }
    Ok(Section {
        tables: vec![table, half],
        notes: vec![
            "All figures are medians over blocks in which the ways take turns. Requests per CPU s: of \
             the proxy; by another site, of both agents."
                .to_owned(),
            format!(
                "Half load: {:.0} requests/s, half of what Cheops without scope reached with {SOME} \
                 connections; time counts from when a request was due.",
                proxy.half_load.per_second
            ),
            format!(
                "The agent has {} MB resident after {MANY} connections without scope, {} MB if it did \
                 nothing before.",
                megabytes(proxy.resident),
                megabytes(proxy.resident_when_new)
            ),
        ],
        targets: targets(proxy),
        data: serde_json::to_value(proxy).map_err(cannot("write JSON"))?,
        figures: figures(proxy),
        ..Section::new(NAME, TITLE)
    })
}

fn figures(proxy: &ProxyResult) -> Vec<Figure> {
    let mut figures = Vec::new();
    for run in &proxy.runs {
        let name = format!("{}, {} connections", run.way.words(), run.connections);
        let figure = |what: &str, measure, value| Figure {
            of: run.way.of(),
            ..Figure::new(format!("{name}: {what}"), measure, value)
        };
        figures.push(figure("requests/s", Measure::Rate, run.per_second));
        figures.push(figure("p99 ms", Measure::Time, run.p99_ms));
        let of_cpu = run.per_cpu_second;
        figures.extend(of_cpu.map(|of_cpu| figure("requests per CPU s", Measure::Rate, of_cpu)));
    }
    for paced in &proxy.half_load.ways {
        let name = format!("{}, half load: p99 ms", paced.way.words());
        let p99 = paced.middle(|spread| spread.p99_ms);
        figures.push(Figure { of: paced.way.of(), ..Figure::new(name, Measure::Time, p99) });
    }
    for (when, bytes) in [("new", proxy.resident_when_new), ("at work", proxy.resident)] {
        let name = format!("agent after {MANY} connections, {when}: RSS MB");
        figures.push(Figure::new(name, Measure::Amount, bytes as f64 / 1e6));
    }
    figures
}

fn targets(proxy: &ProxyResult) -> Vec<BenchTarget> {
    let plain = proxy.per_cpu_second(RequestPath::NoScope);
    let of_haproxy = plain / proxy.per_cpu_second(RequestPath::Haproxy);
    let scope_cost = plain / proxy.per_cpu_second(RequestPath::LocalScope) - 1.0;
    let added = proxy.half_load.added_p99_ms(RequestPath::NoScope);
    let by_haproxy = proxy.half_load.added_p99_ms(RequestPath::Haproxy);
    vec![
        BenchTarget {
            of: "proxy: requests per CPU s, 32 connections",
            wanted: format!("≥ {WANTED_OF_HAPROXY} × HAProxy"),
            measured: format!("{} ×", number(of_haproxy)),
            verdict: TargetVerdict::of(of_haproxy >= WANTED_OF_HAPROXY),
        },
        BenchTarget {
            of: "proxy: p99 added at half load",
            wanted: format!("≤ {WANTED_ADDED_MS} ms"),
            measured: format!("{} ms, HAProxy {}", number(added), number(by_haproxy)),
            verdict: TargetVerdict::of(added <= WANTED_ADDED_MS),
        },
        BenchTarget {
            of: "proxy: CPU that a scope of this site adds",
            wanted: format!("< {:.0} %", WANTED_SCOPE_COST * 100.0),
            measured: format!("{:.0} %", scope_cost * 100.0),
            verdict: TargetVerdict::of(scope_cost < WANTED_SCOPE_COST),
        },
        BenchTarget {
            of: "proxy: agent after 256 connections",
            wanted: format!("< {} MB RSS", megabytes(WANTED_BYTES)),
            measured: format!("{} MB", megabytes(proxy.resident)),
            verdict: TargetVerdict::of(proxy.resident < WANTED_BYTES),
        },
    ]
}
