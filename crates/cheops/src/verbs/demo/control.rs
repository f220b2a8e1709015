//! Orders to a demo that runs in another terminal, through a socket in the user's own folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

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
    /// Kill a site's agent, as a power cut would
    Stop {
        /// Which
        site: SiteId,
    },
    /// Start a killed agent again
    Start {
        /// Which
        site: SiteId,
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
            let limit = std::time::Duration::from_secs(10);
            let _late = tokio::time::timeout(limit, answer(stream, stage)).await;
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
    match order {
        Order::Cut { sites } => {
            let links = stage.set_cut(&sites, true)?;
            Ok(format!("{} cut; each site goes on alone", counted(links, "link")))
        }
        Order::Heal { sites } => {
            let links = stage.set_cut(&sites, false)?;
            Ok(format!(
                "{} healed; the sites find each other within a second",
                counted(links, "link")
            ))
        }
        Order::Stop { site } => {
            stage.kill(&site).await?;
            Ok(format!("the agent of {site} was killed; `cheops demo start {site}` starts it"))
        }
        Order::Start { site } => {
            stage.revive(&site)?;
            Ok(format!("the agent of {site} goes on where it was stopped"))
        }
    }
}
