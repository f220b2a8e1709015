//! The agent's front door for people and programs. A handler parses, asks once, and prints.
//!
//! | file | what it serves |
//! | --- | --- |
//! | `read` | sites, one resource, its operations and why they are so |
//! | `history` | what happened, also what no site needs any more |
//! | `list`, `summary` | all resources: pages of them, and how many there are of what kind |
//! | `submit`, `upload` | operations, and the files that come with them |
//! | `decide` | the operator's word on an operation |
//! | `services` | whether any site has the service that an operation is for |
//! | `legacy` | `/exec` and `/show` as the first Cheops had them |
//! | `show` | reading commands at many sites |
//! | `changes` | the feed of changes |
//! | `status` | health, metrics, the OpenAPI document |
//! | `matrix` | profiles, and trying a matrix |
//! | `cross` | what the id of a resource over several sites says |
//! | `ui` | the pages |
//! | `demo` | what is passed on to the demo that the agent is part of |
//! | `forward` | requests that another site answers |
//! | `guard` | from which pages may be asked |
//! | `access`, `login`, `principal` | who is let in, a browser too; who that is |
//! | `refusal`, `wire` | how errors look; how things look on the wire |

mod access;
mod backup;
mod changes;
mod cross;
mod decide;
mod demo;
mod dry_run;
mod forward;
mod guard;
mod history;
mod legacy;
mod list;
mod login;
mod matrix;
mod metered;
mod principal;
mod read;
mod refusal;
mod services;
mod show;
mod status;
mod submit;
mod summary;
mod ui;
mod upload;
mod wire;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use cheops_api::paths;
use cheops_core::model::{ResourceId, SiteId};
use cheops_mesh::{IncomingFiles, Peers};
use cheops_proxy::{Proxies, Reserve};
use cheops_store::{BackupMaker, Blobs, Feed};
use metrics_exporter_prometheus::PrometheusHandle;
use refusal::HttpRefusal;
use upload::UploadRoom;

use crate::driver::Driver;
use crate::exec::Executor;

pub(crate) use access::{Access, Came};
pub(crate) use summary::Counted;

/// How large a request may be, but for the files that come with it.
const LARGEST_BODY: usize = 2 * 1024 * 1024;
/// How long anyone may wait for replies.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// What handlers work with.
pub(crate) struct Api {
    pub(crate) site: SiteId,
    pub(crate) driver: Driver,
    pub(crate) peers: Peers,
    pub(crate) executor: Executor,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) incoming: IncomingFiles,
    /// Room on the disk for files that come with requests, shared with the proxies' bodies.
    pub(crate) reserve: Reserve,
    pub(crate) feed: Arc<dyn Feed>,
    pub(crate) backup: BackupMaker,
    pub(crate) metrics: PrometheusHandle,
    pub(crate) advertise: Option<String>,
    /// The services of this site, by name.
    pub(crate) services: Vec<String>,
    pub(crate) counted: Counted,
    /// In front of the services, for what only they know: resources over several sites.
    pub(crate) proxies: Proxies,
    /// Who is let in.
    pub(crate) access: Arc<Access>,
    /// Where the demo takes orders, if the agent is part of one.
    pub(crate) demo: Option<PathBuf>,
}

impl Api {
    fn upload_room(&self) -> UploadRoom<'_> {
        UploadRoom { blobs: &*self.blobs, reserve: &self.reserve }
    }
}

type SharedApi = Arc<Api>;

/// Everything the agent serves to people and programs.
pub(crate) fn router(api: SharedApi) -> Router {
    Router::new()
        .route(paths::EXEC, post(legacy::exec))
        .route(paths::LEGACY_SHOW, post(legacy::show))
        .route(paths::SITES, get(read::sites))
        .route(paths::SITE, get(read::sites_seen_by))
        .route(paths::SUMMARY, get(summary::summary))
        .route(paths::BACKUP, post(backup::backup))
        .route(paths::PROFILES, get(matrix::all_profiles))
        .route(paths::MATRIX, post(matrix::try_one))
        .route(paths::ALL_CROSS, get(cross::seen))
        .route(paths::CROSS, get(cross::parts))
        .route(paths::CROSS_VALUE, get(cross::value))
        .route(paths::DEMO, get(demo::pass_on))
        .route(paths::DEMO_LINKS, post(demo::pass_on))
        .route(paths::DEMO_SITES, post(demo::pass_on))
        .route(paths::RESOURCES, get(list::resources))
        .route(paths::RESOURCE, get(read::resource).delete(submit::delete))
        .route(paths::OPERATIONS, get(read::operations).post(submit::operation))
        .route(paths::OPERATION, get(read::operation))
        .route(paths::SHOW, post(show::show))
        .route(paths::EXPLAIN, get(read::explain))
        .route(paths::HISTORY, get(history::history))
        .route(paths::PAST, get(history::past))
        .route(paths::RECORDED, get(history::recorded))
        .route(paths::DRY_RUN, post(dry_run::dry_run))
        .route(paths::DECISION, post(decide::decide))
        .route(paths::CHANGES, get(changes::all))
        .route(paths::LATEST_CHANGES, get(changes::latest))
        .route(paths::CHANGES_OF, get(changes::of_resource))
        .route(paths::LOGIN_LINKS, post(login::make_link))
        .route(paths::LOGIN, get(login::enter))
        .route(paths::HEALTHZ, get(status::healthz))
        .route(paths::READYZ, get(status::readyz))
        .route(paths::METRICS, get(status::metrics))
        .route(paths::OPENAPI, get(status::openapi))
        .route("/", get(ui::page))
        .fallback(ui::page)
        .method_not_allowed_fallback(refusal::no_such_method)
        // Files may be of any size: what is not a file is bounded where it is read.
        .layer(DefaultBodyLimit::disable())
        .with_state(api)
}

/// What other agents may pass on: what is about one resource or the sites, and nothing else.
pub(crate) fn router_for_peers(api: SharedApi) -> Router {
    // Who asks only whether it is here is not told more.
    let resource = get(read::resource).head(read::is_held).delete(submit::delete);
    Router::new()
        .route(paths::SITES, get(read::sites))
        .route(paths::RESOURCE, resource)
        .route(paths::HOLDING, get(read::holding))
        .route(paths::OPERATIONS, get(read::operations).post(submit::operation))
        .route(paths::OPERATION, get(read::operation))
        .route(paths::SHOW, post(show::show))
        .route(paths::EXPLAIN, get(read::explain))
        .route(paths::HISTORY, get(history::history))
        .route(paths::PAST, get(history::past))
        .route(paths::RECORDED, get(history::recorded))
        .route(paths::DRY_RUN, post(dry_run::dry_run))
        .route(paths::DECISION, post(decide::decide))
        .fallback(refusal::no_such_page)
        .layer(axum::middleware::from_fn(principal::told_by_peer))
        .layer(DefaultBodyLimit::disable())
        .with_state(api)
}

/// The same for whoever connects to the API's address or socket.
pub(crate) fn guarded(
    router: Router,
    access: Arc<Access>,
    listen: SocketAddr,
    is_tls: bool,
) -> Router {
    let guard = guard::Guard::new(listen, is_tls);
    router
        .layer(axum::middleware::from_fn_with_state(access, access::check))
        .layer(axum::middleware::from_fn_with_state(guard, guard::check))
}

fn resource_id(text: &str) -> Result<ResourceId, HttpRefusal> {
    ResourceId::new(text).map_err(|error| HttpRefusal::bad("not a resource", error.to_string()))
}
