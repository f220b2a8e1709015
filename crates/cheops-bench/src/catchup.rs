//! How long a site that was away takes to catch up.

use std::time::{Duration, Instant};

use cheops_api::{ResourceFilter, ResourceState, Wait};
use serde::Serialize;

use crate::cluster::{BenchCluster, BenchSite, SITES};
use crate::connection::{Kind, Work, make_resources, operation};
use crate::failure::{BenchFailure, cannot};
use crate::figure::{Figure, Measure};
use crate::load::{AskedOf, LoadClient, LoadLimit, load};
use crate::report::{Section, Table, number};
use crate::stats::rate;
use crate::{Bench, Report};

const TITLE: &str =
    "Catching up: 1,000 operations over 100 resources, made while site3 was stopped";
const OPERATIONS: u64 = 1000;
const RESOURCES: usize = 100;
const CLIENTS: usize = 8;
/// Who is away.
const AWAY: usize = SITES - 1;
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Serialize)]
struct CatchUp {
    handed_in_per_second: f64,
    /// From the start of the process until all sites hear each other.
    heard_seconds: f64,
    /// From the start of the process until every site says of every resource that it converged.
    converged_seconds: f64,
}

pub(crate) async fn measure(bench: &Bench, report: &Report) -> Result<Section, BenchFailure> {
    report.remark(format_args!("catch-up: {OPERATIONS} operations while a site is away"));
    let mut cluster = bench.cluster().await?;
    let resources: Vec<_> = (0..RESOURCES).map(|n| format!("catchup-{n}")).collect();
    make_resources(&cluster, &resources).await?;
    cluster.stop_agent(AWAY).await?;
    let client = |n: usize| {
        let own = resources.iter().skip(n).step_by(CLIENTS);
        let made = own.map(|resource| operation(resource, Work::Http, Kind::Kept, Wait::Local));
        Ok(LoadClient {
            site: cluster.sites[0].api,
            of: AskedOf::Agent,
            operations: made.collect::<Result<_, _>>()?,
        })
    };
    let clients: Result<_, BenchFailure> = (0..CLIENTS).map(client).collect();
    let load = load(clients?, LoadLimit::Count(OPERATIONS)).await?;
    let start = Instant::now();
    cluster.start_agent(AWAY)?;
    cluster.all_heard().await?;
    let heard = start.elapsed();
    all_converged(&cluster).await?;
    let converged = start.elapsed();
    cluster.end().await?;
    section(&CatchUp {
        handed_in_per_second: rate(load.count(), load.took),
        heard_seconds: heard.as_secs_f64(),
        converged_seconds: converged.as_secs_f64(),
    })
}

async fn all_converged(cluster: &BenchCluster) -> Result<(), BenchFailure> {
    let waiting = async {
        for site in &cluster.sites {
            while !has_converged(site).await? {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        Ok(())
    };
    let late = |_| Err(BenchFailure::new("the sites did not converge", "time is up"));
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(late)
}

/// Whether a site knows all operations, has run them, and knows that the others know them.
async fn has_converged(site: &BenchSite) -> Result<bool, BenchFailure> {
    let filter = ResourceFilter { limit: Some(1000), ..ResourceFilter::default() };
    let page = site.client()?.resources(&filter).await.map_err(cannot("list resources"))?;
    let known: u64 = page.items.iter().map(|resource| resource.operations).sum();
    let all = page.items.iter().all(|resource| resource.state == ResourceState::Converged);
    Ok(all && known >= OPERATIONS)
}

fn section(caught_up: &CatchUp) -> Result<Section, BenchFailure> {
    let mut table = Table::new(&["after site3 is started again", "seconds"]);
    table.row(vec!["all sites hear each other".to_owned(), number(caught_up.heard_seconds)]);
    table.row(vec![
        "all resources converged at all sites".to_owned(),
        number(caught_up.converged_seconds),
    ]);
    let rate = number(caught_up.handed_in_per_second);
    Ok(Section {
        tables: vec![table],
        notes: vec![format!(
            "While it was away, {CLIENTS} clients handed in {rate} operations a second at site1, \
             waiting for site1."
        )],
        data: serde_json::to_value(caught_up).map_err(cannot("write JSON"))?,
        figures: figures(caught_up),
        ..Section::new("catchup", TITLE)
    })
}

fn figures(caught_up: &CatchUp) -> Vec<Figure> {
    let CatchUp { handed_in_per_second, heard_seconds, converged_seconds } = caught_up;
    vec![
        Figure::new("made while it was away, ops/s", Measure::Rate, *handed_in_per_second),
        Figure::new("all sites hear each other, s", Measure::Time, *heard_seconds),
        Figure::new("all resources converged, s", Measure::Time, *converged_seconds),
    ]
}
