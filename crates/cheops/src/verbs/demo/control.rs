//! Orders to a demo that runs in another terminal, through a socket in the user's own folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use cheops_core::model::SiteId;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::stage::Stage;
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};
use crate::text::counted;

/// How long an order may be.
const LONGEST: u64 = 4 * 1024;

/// How long an order may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much of that is for the sites to notice.
const SETTLING: Duration = Duration::from_secs(8);

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
struct Answer {
    ok: bool,
    told: String,
}

fn socket() -> PathBuf {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let user = std::env::var("USER").unwrap_or_else(|_| "user".into());
    match own.filter(|dir| dir.is_dir()) {
        Some(dir) => dir.join("cheops-demo.sock"),
        None => std::env::temp_dir().join(format!("cheops-demo-{user}.sock")),
    }
}

/// Sends an order to the demo that runs.
pub(super) async fn send(order: &Order, output: &mut Output) -> Result<Verdict, Failure> {
    let away = |error: std::io::Error| {
        Failure::away("no demo can be reached")
            .because(error)
            .hint("start one in another terminal: cheops demo")
    };
    let mut stream = UnixStream::connect(socket()).await.map_err(away)?;
    let mut line = serde_json::to_vec(order).map_err(std::io::Error::other).map_err(away)?;
    line.push(b'\n');
    stream.write_all(&line).await.map_err(away)?;
    output.status("waiting until the sites have noticed ...");
    let mut answer = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut answer).await.map_err(away)?;
    let answer: Answer =
        serde_json::from_str(&answer).map_err(std::io::Error::other).map_err(away)?;
    if !answer.ok {
        return Err(Failure::caller(answer.told));
    }
    match output.format {
        Format::Json => output.json(&answer)?,
        Format::Table => output.line(answer.told)?,
    }
    Ok(Verdict::Fine)
}

/// Where a demo takes orders. Removed when it ends.
pub(super) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

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
        Ok(Self { listener, path })
    }

    /// Takes orders, one after the other, for ever.
    pub(super) async fn serve(&self, stage: &mut Stage) {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else { continue };
            let _late = tokio::time::timeout(PATIENCE, answer(stream, stage)).await;
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.path);
    }
}

async fn answer(mut stream: UnixStream, stage: &mut Stage) -> std::io::Result<()> {
    let mut line = String::new();
    BufReader::new((&mut stream).take(LONGEST)).read_line(&mut line).await?;
    let done = match serde_json::from_str(&line) {
        Ok(order) => carry_out(order, stage).await,
        Err(error) => Err(error.to_string()),
    };
    let answer = match done {
        Ok(told) => Answer { ok: true, told },
        Err(told) => Answer { ok: false, told },
    };
    let mut line = serde_json::to_vec(&answer).map_err(std::io::Error::other)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

async fn carry_out(order: Order, stage: &mut Stage) -> Result<String, String> {
    let done = match order {
        Order::Cut { sites } => {
            let links = stage.set_cut(&sites, true)?;
            let who = if sites.is_empty() { "each site goes on alone" } else { "both sides go on" };
            format!("{} cut; {who}", counted(links, "link"))
        }
        Order::Heal { sites } => {
            let links = stage.set_cut(&sites, false)?;
            format!("{} healed", counted(links, "link"))
        }
        Order::Stop { site, service } => {
            stage.kill(&site, service.as_deref()).await?;
            let (what, more) = (called(service.as_deref()), service.map(|name| format!(" {name}")));
            let again = format!("cheops demo start {site}{}", more.unwrap_or_default());
            format!("{what} of {site} was killed; `{again}` starts it")
        }
        Order::Start { site, service } => {
            stage.revive(&site, service.as_deref()).await?;
            format!("{} of {site} goes on where it was stopped", called(service.as_deref()))
        }
    };
    // So that whatever is typed next finds the sites as one would expect.
    Ok(match stage.settled(SETTLING).await {
        Ok(()) => done,
        Err(_) => format!("{done}; the sites have yet to notice"),
    })
}

fn called(service: Option<&str>) -> String {
    service.map_or_else(|| "the agent".to_owned(), |name| format!("the {name} service"))
}
