//! Orders to a demo that runs, through a socket in the user's own folder: those typed in another
//! terminal, and those of its agents' pages.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use axum::routing::{get, post};
use cheops_core::model::SiteId;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use tokio::net::{UnixListener, UnixStream};

use super::cluster::{LOOK_EVERY, SharedCluster};
use super::page;
use crate::demo_socket::{BoxedError, TOKENS, asked, path as socket};
use crate::failure::{Failure, Verdict};
use crate::output::{Format, VerbOutput};
use crate::text::counted;

/// How long the sites may take to notice what was done.
const SETTLING: Duration = Duration::from_secs(8);
/// Where orders that are typed go.
const ORDERS: &str = "/orders";

/// What can be ordered.
#[derive(Debug, Clone, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "order")]
pub(super) enum Order {
    /// Cut the link between two sites, all links of one, or all there are
    Cut {
        /// Whose
        #[arg(num_args = 0..=2)]
        sites: Vec<SiteId>,
    },
    /// Heal what was cut
    Heal {
        /// Whose
        #[arg(num_args = 0..=2)]
        sites: Vec<SiteId>,
    },
    /// Kill a site's agent, as a power cut would, or one of its services
    Stop {
        /// Whose
        site: SiteId,
        /// `image` or `compute`; the agent if not given
        service: Option<String>,
    },
    /// Start again what was killed
    Start {
        /// Whose
        site: SiteId,
        /// `image` or `compute`; the agent if not given
        service: Option<String>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct ControlAnswer {
    ok: bool,
    told: String,
}

/// Sends an order to the demo that runs.
pub(super) async fn send(order: &Order, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let away = |error: std::io::Error| {
        Failure::away("no demo can be reached")
            .because(error)
            .hint("start one in another terminal: cheops demo")
    };
    let stream = UnixStream::connect(socket()).await.map_err(away)?;
    output.status("waiting until the sites have noticed ...");
    let answer = answered(stream, order).await.map_err(std::io::Error::other).map_err(away)?;
    if !answer.ok {
        return Err(Failure::caller(answer.told));
    }
    match output.format {
        Format::Json => output.json(&answer)?,
        Format::Table => output.line(answer.told)?,
    }
    Ok(Verdict::Fine)
}

async fn answered(stream: UnixStream, order: &Order) -> Result<ControlAnswer, BoxedError> {
    let request = Request::post(ORDERS)
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(serde_json::to_vec(order)?))?;
    asked(stream, request).await
}

/// Where a demo takes orders.
pub(super) struct Control {
    listener: UnixListener,
    removes: Removes,
}

/// A socket that is removed when the demo ends.
struct Removes(PathBuf);

impl Control {
    pub(super) async fn listen() -> Result<Self, Failure> {
        let path = socket();
        if UnixStream::connect(&path).await.is_ok() {
            return Err(Failure::caller("a demo runs already")
                .hint("end it with Ctrl-C in its terminal, or use it: cheops sites"));
        }
        // What a demo left behind that was killed.
        let _none = fs::remove_file(&path);
        let cannot = |error| {
            Failure::ours(format!("the demo cannot listen at `{}`", path.display())).because(error)
        };
        let listener = UnixListener::bind(&path).map_err(cannot)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(cannot)?;
        Ok(Self { listener, removes: Removes(path) })
    }

    /// Where it is, for the agents.
    pub(super) fn path(&self) -> &Path {
        &self.removes.0
    }

    /// Takes orders, for ever.
    pub(super) async fn serve(self, cluster: SharedCluster) {
        let Self { listener, removes: _until_then } = self;
        let tokens = Json(cluster.lock().await.tokens());
        let router = page::router()
            .route(ORDERS, post(carry_out))
            .route(TOKENS, get(async move || tokens))
            .with_state(cluster);
        let _for_ever = axum::serve(listener, router).await;
    }
}

impl Drop for Removes {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.0);
    }
}

async fn carry_out(
    State(cluster): State<SharedCluster>,
    Json(order): Json<Order>,
) -> Json<ControlAnswer> {
    Json(match done(&cluster, order).await {
        Ok(told) => ControlAnswer { ok: true, told },
        Err(told) => ControlAnswer { ok: false, told },
    })
}

async fn done(shared: &SharedCluster, order: Order) -> Result<String, String> {
    let mut cluster = shared.lock().await;
    let done = match order {
        Order::Cut { sites } => {
            let links = cluster.set_cut(&sites, true)?;
            let who = if sites.is_empty() { "each site goes on alone" } else { "both sides go on" };
            format!("{} cut; {who}", counted(links, "link"))
        }
        Order::Heal { sites } => {
            let links = cluster.set_cut(&sites, false)?;
            format!("{} healed", counted(links, "link"))
        }
        Order::Stop { site, service } => {
            cluster.kill(&site, service.as_deref()).await?;
            let (what, more) = (called(service.as_deref()), service.map(|name| format!(" {name}")));
            let again = format!("cheops demo start {site}{}", more.unwrap_or_default());
            format!("{what} of {site} was killed; `{again}` starts it")
        }
        Order::Start { site, service } => {
            cluster.revive(&site, service.as_deref()).await?;
            format!("{} of {site} goes on where it was stopped", called(service.as_deref()))
        }
    };
    drop(cluster);
    // So that whatever is typed next finds the sites as one would expect.
    Ok(match is_settled(shared).await {
        true => done,
        false => format!("{done}; the sites have yet to notice"),
    })
}

/// Waits until the sites have noticed. Others may look and order meanwhile.
async fn is_settled(cluster: &SharedCluster) -> bool {
    let began = Instant::now();
    while began.elapsed() < SETTLING {
        let settled = cluster.lock().await.is_settled().await.ok();
        match settled {
            Some(false) => tokio::time::sleep(LOOK_EVERY).await,
            settled => return settled.is_some(),
        }
    }
    false
}

fn called(service: Option<&str>) -> String {
    service.map_or_else(|| "the agent".to_owned(), |name| format!("the {name} service"))
}
