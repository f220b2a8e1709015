//! The sample application of two services, which comes with this program and is run by Node. It
//! knows nothing of Cheops: see `examples/imagery`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

macro_rules! of_example {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/imagery/", $name)),
        )
    };
}

const PROGRAMS: [(&str, &str); 4] = [
    of_example!("image.mjs"),
    of_example!("compute.mjs"),
    of_example!("service.mjs"),
    ("with-parent.cjs", include_str!("with-parent.cjs")),
];

/// The first version of Node that has all that the application uses.
const OLDEST_NODE: (u32, u32) = (18, 13);
/// How long a service may take to come up.
const PATIENCE: Duration = Duration::from_secs(30);

/// The application's programs, in a folder.
pub(super) struct Imagery {
    folder: PathBuf,
}

/// One service of it, at one site.
pub(in super::super) struct DemoService {
    pub(in super::super) name: &'static str,
    /// Where clients and the other service find it: the agent's proxy.
    pub(in super::super) proxy: SocketAddr,
    /// Where it listens itself.
    pub(in super::super) upstream: SocketAddr,
    start: ServiceStart,
    process: Option<Child>,
}

/// How to start a service.
struct ServiceStart {
    programs: PathBuf,
    program: String,
    options: Vec<String>,
    data: PathBuf,
    log: PathBuf,
}

/// What this machine lacks to run it, in one line.
pub(super) async fn lacks() -> Option<String> {
    let needs = |found: String| {
        let (major, minor) = OLDEST_NODE;
        Some(format!("the sample application needs Node {major}.{minor} or later; {found}"))
    };
    let asked = Command::new("node").arg("--version").stdin(Stdio::null()).output().await;
    let said = match asked {
        Ok(ran) => String::from_utf8_lossy(&ran.stdout).trim().to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return needs("`node` was not found".to_owned());
        }
        Err(error) => return needs(format!("`node` cannot be run: {error}")),
    };
    match version(&said) {
        Some(found) if found >= OLDEST_NODE => None,
        _ => needs(format!("`node --version` says `{said}`")),
    }
}

fn version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.strip_prefix('v')?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

impl Imagery {
    /// Writes the programs into a new folder.
    pub(super) fn write(folder: &Path) -> std::io::Result<Self> {
        fs::create_dir_all(folder)?;
        for (name, text) in PROGRAMS {
            fs::write(folder.join(name), text)?;
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// Starts a service behind that proxy, with what it keeps in this folder.
    pub(super) async fn start(
        &self,
        name: &'static str,
        options: &[&str],
        proxy: SocketAddr,
        folder: &Path,
    ) -> std::io::Result<DemoService> {
        let start = ServiceStart {
            programs: self.folder.clone(),
            program: format!("{name}.mjs"),
            options: options.iter().map(|&option| option.to_owned()).collect(),
            data: folder.join(name),
            log: folder.join(format!("{name}.log")),
        };
        let (process, upstream) = start.at("127.0.0.1:0").await?;
        Ok(DemoService { name, proxy, upstream, start, process: Some(process) })
    }
}

impl DemoService {
    /// Kills it, and says whether it ran.
    pub(super) async fn kill(&mut self) -> std::io::Result<bool> {
        match self.process.take() {
            Some(mut process) => process.kill().await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Starts it again where it was, and says whether it did not run.
    pub(super) async fn revive(&mut self) -> std::io::Result<bool> {
        if self.process.is_some() {
            return Ok(false);
        }
        let (process, _) = self.start.at(&self.upstream.to_string()).await?;
        self.process = Some(process);
        Ok(true)
    }
}

impl ServiceStart {
    async fn at(&self, listen: &str) -> std::io::Result<(Child, SocketAddr)> {
        let mut process = self.spawn(listen)?;
        let mut line = String::new();
        if let Some(out) = process.stdout.take() {
            tokio::time::timeout(PATIENCE, BufReader::new(out).read_line(&mut line)).await??;
        }
        match line.trim().strip_prefix("listening on http://").map(str::parse) {
            Some(Ok(address)) => Ok((process, address)),
            _ => {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let said = format!("`node {}` did not come up: {}", self.program, log.trim());
                Err(std::io::Error::other(said))
            }
        }
    }

    fn spawn(&self, listen: &str) -> std::io::Result<Child> {
        let log = fs::OpenOptions::new().create(true).append(true).open(&self.log)?;
        Command::new("node")
            .arg("--require")
            .arg(self.programs.join("with-parent.cjs"))
            .arg(self.programs.join(&self.program))
            .args(["--listen", listen, "--data"])
            .arg(&self.data)
            .args(&self.options)
            // Its own group, so that Ctrl-C reaches the demo alone.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_is_told_by_its_version() {
        assert_eq!(version("v20.20.2"), Some((20, 20)));
        assert_eq!(version("v18.9.0-pre"), Some((18, 9)));
        for other in ["", "20.1.0", "v20", "Node.js"] {
            assert_eq!(version(other), None, "{other}");
        }
    }
}
