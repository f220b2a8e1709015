//! What a site costs among few others and among many: agents that start at the same moment and know the
//! address of one of them.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use cheops_api::{Client, SiteState, Wait};
use cheops_core::model::SiteId;
use serde::Serialize;
use tokio::process::{Child, Command};

use crate::connection::{Connection, Kind, Work, operation, resource_at};
use crate::failure::{BenchFailure, cannot};
use crate::figure::{Figure, Measure};
use crate::process::{cpu_seconds, resident};
use crate::program::Program;
use crate::report::{BenchTarget, Section, Table, TargetVerdict, number};
use crate::stats::{Spread, median};
use crate::{Bench, Report};

const TITLE: &str = "Many sites: agents that start at once and know the address of one";
/// How many there are, if nothing is said. The first is what the others are compared with.
const SITES: [usize; 4] = [5, 10, 50, 200];
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// What follows from a start is over after that.
const SETTLING: Duration = Duration::from_secs(30);
/// How many of the measurements of other parts a rest lasts: little happens in it.
const TIMES_LONGER: u32 = 5;
const RESOURCES: usize = 10;
const OPERATIONS: usize = 20;
const WANTED_SECONDS: f64 = 60.0;
const WANTED_PERCENT: f64 = 50.0;
const WANTED_MEGABYTES: f64 = 30.0;
const WANTED_RATIO: f64 = 1.5;

#[derive(Serialize)]
struct ManyResult {
    sites: usize,
    /// From the first start until every agent saw every other alive.
    all_know_s: f64,
    /// Milliseconds of processor time per second at rest, of one agent.
    idle_ms: f64,
    /// The same of the one that takes most.
    idle_most_ms: f64,
    /// Of all of them together, in percent of a core.
    idle_percent: f64,
    /// At the median.
    resident_mb: f64,
    /// Over three sites drawn by lot.
    operation: Spread,
}

pub(crate) async fn measure(bench: &Bench, report: &Report) -> Result<Section, BenchFailure> {
    let mut results = Vec::new();
    let counts = if bench.sites.is_empty() { SITES.to_vec() } else { bench.sites.clone() };
    for count in counts {
        report.remark(format_args!("sites: {count}"));
        results.push(run(bench, count).await?);
    }
    section(&results)
}

async fn run(bench: &Bench, count: usize) -> Result<ManyResult, BenchFailure> {
    let mut mesh = ManySites::prepare(&bench.program, &bench.place, count).await?;
    let began = Instant::now();
    mesh.start(&bench.program.path)?;
    mesh.all_know().await?;
    let all_know_s = began.elapsed().as_secs_f64();
    tokio::time::sleep(SETTLING).await;
    let (began, before) = (Instant::now(), mesh.cpu_seconds()?);
    tokio::time::sleep(bench.time * TIMES_LONGER).await;
    let (took, after) = (began.elapsed().as_secs_f64(), mesh.cpu_seconds()?);
    let idle: Vec<f64> =
        after.iter().zip(&before).map(|(after, before)| 1000.0 * (after - before) / took).collect();
    let resident_mb =
        median(mesh.resident()?.into_iter().map(|bytes| bytes as f64 / 1e6).collect());
    let operation = mesh.operations().await?;
    mesh.end().await;
    Ok(ManyResult {
        sites: count,
        all_know_s,
        idle_ms: idle.iter().sum::<f64>() / count as f64,
        idle_most_ms: idle.iter().copied().fold(0.0, f64::max),
        idle_percent: idle.iter().sum::<f64>() / 10.0,
        resident_mb,
        operation,
    })
}

/// The agents. They end with this.
struct ManySites {
    dir: tempfile::TempDir,
    names: Vec<SiteId>,
    apis: Vec<SocketAddr>,
    agents: Vec<Child>,
}

impl ManySites {
    async fn prepare(program: &Program, place: &Path, count: usize) -> Result<Self, BenchFailure> {
        let dir = tempfile::Builder::new().prefix("cheops-bench-").tempdir_in(place);
        let dir = dir.map_err(cannot("make a folder"))?;
        let authority = dir.path().join("mesh");
        program.make_mesh(&authority).await?;
        let names: Vec<SiteId> =
            (1..=count).filter_map(|n| SiteId::new(&format!("site{n}")).ok()).collect();
        // They are held until all are found, so that none is found twice.
        let held = (0..count).map(|_| {
            let api = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            Ok((api, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?))
        });
        let held: Vec<_> =
            held.collect::<std::io::Result<_>>().map_err(cannot("find free ports"))?;
        let addresses = held.iter().map(|(api, link)| Ok((api.local_addr()?, link.local_addr()?)));
        let addresses: Vec<_> =
            addresses.collect::<std::io::Result<_>>().map_err(cannot("find free ports"))?;
        for (at, name) in names.iter().enumerate() {
            let folder = dir.path().join(name.as_str());
            fs::create_dir_all(&folder).map_err(cannot("make a folder"))?;
            let (api, link) = addresses[at];
            let mut text = format!(
                "site = \"{name}\"\ndata_dir = \"data\"\napplication = \"empty\"\n\n\
                 [api]\nlisten = \"{api}\"\nsocket = \"off\"\n{}\n\
                 [mesh]\nlisten = \"{link}\"\nidentity = \"identity.pem\"\n",
                program.auth.line()
            );
            if at > 0 {
                let (site, address) = (&names[0], addresses[0].1);
                text += &format!("\n[[peers]]\nsite = \"{site}\"\naddress = \"{address}\"\n");
            }
            fs::write(folder.join("agent.toml"), text).map_err(cannot("write a config"))?;
            program.issue(&authority, name, &folder.join("identity.pem")).await?;
        }
        let apis = addresses.into_iter().map(|(api, _)| api).collect();
        Ok(Self { dir, names, apis, agents: Vec::new() })
    }

    fn start(&mut self, program: &Path) -> Result<(), BenchFailure> {
        for name in &self.names {
            let folder = self.dir.path().join(name.as_str());
            let log = fs::File::create(folder.join("agent.log")).map_err(cannot("make a log"))?;
            let agent = Command::new(program)
                .args(["agent", "--with-parent", "--config"])
                .arg(folder.join("agent.toml"))
                .process_group(0)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(log)
                .kill_on_drop(true)
                .spawn();
            self.agents.push(agent.map_err(cannot("start an agent"))?);
        }
        Ok(())
    }

    /// Waits until every agent sees all others alive.
    async fn all_know(&mut self) -> Result<(), BenchFailure> {
        let until = Instant::now() + PATIENCE;
        for at in 0..self.names.len() {
            loop {
                let alive = alive_at(self.apis[at]).await;
                if alive == Some(self.names.len()) {
                    break;
                }
                if let Ok(Some(status)) = self.agents[at].try_wait() {
                    let log = self.dir.path().join(self.names[at].as_str()).join("agent.log");
                    let log = fs::read_to_string(log).unwrap_or_default();
                    let what = format!("the agent of {} ended, {status}", self.names[at]);
                    return Err(BenchFailure::new(what, log.trim()));
                }
                if Instant::now() > until {
                    let seen = alive.map_or("nothing".to_owned(), |alive| alive.to_string());
                    let what = format!("{} does not see all alive", self.names[at]);
                    return Err(BenchFailure::new(what, format!("it sees {seen}")));
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        Ok(())
    }

    fn pids(&self) -> impl Iterator<Item = Result<u32, BenchFailure>> {
        let gone = || BenchFailure::new("an agent", "it does not run");
        self.agents.iter().map(move |agent| agent.id().ok_or_else(gone))
    }

    fn cpu_seconds(&self) -> Result<Vec<f64>, BenchFailure> {
        self.pids().map(|pid| cpu_seconds(pid?)).collect()
    }

    fn resident(&self) -> Result<Vec<u64>, BenchFailure> {
        self.pids().map(|pid| resident(pid?)).collect()
    }

    /// How long operations take over three sites each that are drawn by lot, once there are links.
    async fn operations(&self) -> Result<Spread, BenchFailure> {
        let (mut times, mut lot) = (Vec::new(), 7_usize);
        for n in 0..RESOURCES {
            let mut three = Vec::new();
            while three.len() < 3 {
                lot = lot
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let at = (lot >> 33) % self.names.len();
                if !three.contains(&at) {
                    three.push(at);
                }
            }
            let names: Vec<_> = three.iter().map(|at| self.names[*at].as_str()).collect();
            let resource = format!("many-{n}");
            let mut connection = Connection::open(self.apis[three[0]]).await?;
            connection.hand_in(&resource_at(&names.join(" & "), &resource)?).await?;
            let next = operation(&resource, Work::Shell, Kind::Replacing, Wait::All)?;
            for _ in 0..OPERATIONS {
                let began = Instant::now();
                connection.hand_in(&next).await?;
                times.push(began.elapsed());
            }
        }
        Ok(Spread::of(times))
    }

    async fn end(mut self) {
        for agent in &mut self.agents {
            // Its input closes: that is its sign to stop.
            drop(agent.stdin.take());
        }
        for agent in &mut self.agents {
            let _late = tokio::time::timeout(Duration::from_secs(30), agent.wait()).await;
        }
    }
}

/// How many sites an agent sees alive, itself included; nothing, while it does not answer.
async fn alive_at(api: SocketAddr) -> Option<usize> {
    let client = Client::new(&format!("http://{api}")).ok()?;
    let sites = client.sites().await.ok()?;
    let is_alive = |state| matches!(state, SiteState::Up | SiteState::Myself);
    Some(sites.sites.iter().filter(|site| is_alive(site.state)).count())
}

fn section(results: &[ManyResult]) -> Result<Section, BenchFailure> {
    let header =
        ["sites", "all know all", "idle ms/s", "most", "all, % of a core", "RSS MB", "p50 ms"];
    let mut table = Table::new(&header);
    let mut figures = Vec::new();
    for result in results {
        table.row(vec![
            result.sites.to_string(),
            format!("{:.1} s", result.all_know_s),
            format!("{:.2}", result.idle_ms),
            format!("{:.2}", result.idle_most_ms),
            format!("{:.1}", result.idle_percent),
            number(result.resident_mb),
            format!("{:.1}", result.operation.p50_ms),
        ]);
        let mut figure = |what: &str, measure, value| {
            figures.push(Figure::new(format!("{} sites: {what}", result.sites), measure, value));
        };
        figure("all know all, s", Measure::Time, result.all_know_s);
        figure("idle ms/s of an agent", Measure::Amount, result.idle_ms);
        figure("RSS MB at the median", Measure::Amount, result.resident_mb);
        figure("operation over three, p50 ms", Measure::Time, result.operation.p50_ms);
    }
    let mut targets = Vec::new();
    if let (Some(few), Some(many)) = (results.first(), results.last()) {
        let mut target = |of, wanted: String, measured: f64, unit: &str, most: f64| {
            let (measured, verdict) =
                (format!("{measured:.1}{unit}"), TargetVerdict::of(measured < most));
            targets.push(BenchTarget { of, wanted, measured, verdict });
        };
        let ratio = many.operation.p50_ms / few.operation.p50_ms.max(0.001);
        let (seconds, percent) = (WANTED_SECONDS, WANTED_PERCENT);
        target(
            "most sites: all know all",
            format!("< {seconds} s"),
            many.all_know_s,
            " s",
            seconds,
        );
        target(
            "most sites: all at rest",
            format!("< {percent} % of a core"),
            many.idle_percent,
            " %",
            percent,
        );
        target(
            "most sites: memory",
            format!("< {WANTED_MEGABYTES} MB"),
            many.resident_mb,
            " MB",
            WANTED_MEGABYTES,
        );
        target(
            "operation, most/fewest sites",
            format!("< {WANTED_RATIO}"),
            ratio,
            "",
            WANTED_RATIO,
        );
    }
    Ok(Section {
        tables: vec![table],
        targets,
        data: serde_json::to_value(results).map_err(cannot("write JSON"))?,
        figures,
        ..Section::new("sites", TITLE)
    })
}
