//! The demo's sites: processes, folders and links.

use std::fmt::Write;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use cheops_agent::mesh;
use cheops_api::{Client, SiteState};
use cheops_core::model::SiteId;
use tokio::process::{Child, Command};

use crate::failure::Failure;
use crate::look::{BOLD, DIM, GOOD, styled};
use crate::output::Output;
use crate::relay::Relay;

/// Where the first site's API is, if that is free: then no command needs `--agent`.
const USUAL_PORT: u16 = 8079;
/// How long the sites may take to come up.
const PATIENCE: Duration = Duration::from_secs(30);

/// All of it. Ends with the process that made it, whatever happens to that.
pub(super) struct Stage {
    pub(super) sites: Vec<Site>,
    links: Vec<Link>,
    program: PathBuf,
    _dir: tempfile::TempDir,
}

/// One site.
pub(super) struct Site {
    pub(super) name: SiteId,
    pub(super) api: String,
    pub(super) files: PathBuf,
    pub(super) service: String,
    config: PathBuf,
    log: PathBuf,
    agent: Option<Child>,
    _application: Child,
}

/// The way between two sites: one relay for each direction of calls.
struct Link {
    between: [SiteId; 2],
    relays: [Relay; 2],
}

impl Site {
    pub(super) fn client(&self) -> Result<Client, Failure> {
        Client::new(&self.api).map_err(|error| Failure::ours(error.to_string()))
    }
}

fn cannot(what: &str) -> impl FnOnce(std::io::Error) -> Failure {
    let what = format!("the demo cannot {what}");
    move |error| Failure::ours(what).because(error)
}

impl Stage {
    pub(super) async fn start(count: usize, output: &mut Output) -> Result<Self, Failure> {
        let dir = tempfile::Builder::new()
            .prefix("cheops-demo-")
            .tempdir()
            .map_err(cannot("make a folder"))?;
        let program = std::env::current_exe().map_err(cannot("find its own program"))?;
        let authority = dir.path().join("mesh");
        let failed = |error| Failure::ours("the demo cannot make a mesh").because(error);
        mesh::create(&authority).map_err(failed)?;
        let names: Vec<SiteId> =
            (1..=count).filter_map(|n| SiteId::new(&format!("site{n}")).ok()).collect();
        let ports = free_ports(count).map_err(cannot("find free ports"))?;
        let links = links(&names, &ports).await.map_err(cannot("make links"))?;
        let mut stage = Self { sites: Vec::new(), links, program, _dir: dir };
        output.aside(styled(DIM, format!("starting {count} sites ...")));
        for (at, name) in names.iter().enumerate() {
            let folder = stage._dir.path().join(name.as_str());
            let site = stage.site(name, &ports[at], &folder, at).await?;
            mesh::issue(&authority, name, &folder.join("identity.pem")).map_err(failed)?;
            stage.sites.push(site);
        }
        for at in 0..count {
            stage.start_agent(at).map_err(cannot("start an agent"))?;
        }
        stage.all_heard().await?;
        Ok(stage)
    }

    /// A site's folder, application and config.
    async fn site(
        &self,
        name: &SiteId,
        mesh: &SocketAddr,
        folder: &Path,
        at: usize,
    ) -> Result<Site, Failure> {
        let files = folder.join("files");
        fs::create_dir_all(&files).map_err(cannot("make a folder"))?;
        let (application, service) = self.application().await?;
        let api = api_address(at).map_err(cannot("find a free port"))?;
        let config = folder.join("agent.toml");
        let text = self.config(name, api, mesh, &files, &service);
        fs::write(&config, text).map_err(cannot("write a config"))?;
        Ok(Site {
            name: name.clone(),
            api: format!("http://{api}"),
            files,
            service,
            config,
            log: folder.join("agent.log"),
            agent: None,
            _application: application,
        })
    }

    fn config(
        &self,
        name: &SiteId,
        api: SocketAddr,
        mesh: &SocketAddr,
        files: &Path,
        service: &str,
    ) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut text = format!(
            "site = \"{name}\"\ndata_dir = \"data\"\napplication = \"empty\"\n\n\
             [api]\nlisten = \"{api}\"\n\n\
             [mesh]\nlisten = \"{mesh}\"\nidentity = \"identity.pem\"\n\n\
             [shell]\ndirectory = {}\n\n\
             [[services]]\nname = \"kv\"\nupstream = \"{service}\"\n",
            quoted(&files.to_string_lossy())
        );
        for link in &self.links {
            for (from, to) in [(0, 1), (1, 0)] {
                if link.between[from] == *name {
                    // Writing into a text cannot fail.
                    let _infallible = write!(
                        text,
                        "\n[[peers]]\nsite = \"{}\"\naddress = \"{}\"\n",
                        link.between[to],
                        link.relays[from].address()
                    );
                }
            }
        }
        text
    }

    /// One instance of the sample application, and where it listens.
    async fn application(&self) -> Result<(Child, String), Failure> {
        use tokio::io::{AsyncBufReadExt, BufReader};
        let mut child = Command::new(&self.program)
            .args(["sample", "--with-parent"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(cannot("start the sample application"))?;
        let out =
            child.stdout.take().ok_or_else(|| Failure::ours("the application has no output"))?;
        let mut line = String::new();
        let read = BufReader::new(out).read_line(&mut line).await;
        read.map_err(cannot("hear from the sample application"))?;
        Ok((child, line.trim().to_owned()))
    }

    fn start_agent(&mut self, at: usize) -> std::io::Result<()> {
        let Some(site) = self.sites.get_mut(at) else { return Ok(()) };
        let log = fs::OpenOptions::new().create(true).append(true).open(&site.log)?;
        let agent = Command::new(&self.program)
            .args(["agent", "--with-parent", "--config"])
            .arg(&site.config)
            // Its own group, so that Ctrl-C reaches the demo alone, which then ends it in order.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        site.agent = Some(agent);
        Ok(())
    }

    async fn all_heard(&mut self) -> Result<(), Failure> {
        let waiting = async {
            for at in 0..self.sites.len() {
                while !self.hears_all(at).await? {
                    self.still_runs(at)?;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .unwrap_or_else(|_| Err(Failure::ours("the sites did not find each other in time")))
    }

    async fn hears_all(&self, at: usize) -> Result<bool, Failure> {
        let Ok(sites) = self.sites[at].client()?.sites().await else { return Ok(false) };
        let heard = sites.sites.iter().filter(|site| site.state == SiteState::Up).count();
        Ok(heard + 1 == self.sites.len())
    }

    fn still_runs(&mut self, at: usize) -> Result<(), Failure> {
        let Some(site) = self.sites.get_mut(at) else { return Ok(()) };
        let ended = site.agent.as_mut().and_then(|agent| agent.try_wait().ok().flatten());
        let Some(status) = ended else { return Ok(()) };
        let log = fs::read_to_string(&site.log).unwrap_or_default();
        let said = format!("the agent of {} ended: {status}", site.name);
        Err(Failure::ours(said).because(log.trim().to_owned()))
    }

    /// Cuts, or heals, the link between these two; all links if nobody is named.
    pub(super) fn set_cut(&mut self, sites: &[SiteId], cut: bool) -> Result<usize, String> {
        self.known(sites)?;
        let concerns = |link: &&Link| sites.iter().all(|site| link.between.contains(site));
        let links = self.links.iter().filter(concerns);
        let relays = links.flat_map(|link| &link.relays);
        let changed = relays.filter(|relay| relay.is_cut() != cut).map(|relay| relay.set_cut(cut));
        Ok(changed.count() / 2)
    }

    fn known(&self, sites: &[SiteId]) -> Result<(), String> {
        match sites.iter().find(|site| self.sites.iter().all(|known| known.name != **site)) {
            Some(stranger) => Err(format!("there is no site `{stranger}` in this demo")),
            None => Ok(()),
        }
    }

    /// Kills an agent as a power cut would.
    pub(super) async fn kill(&mut self, site: &SiteId) -> Result<(), String> {
        self.known(std::slice::from_ref(site))?;
        let found = self.sites.iter_mut().find(|known| known.name == *site);
        match found.and_then(|site| site.agent.take()) {
            Some(mut agent) => agent.kill().await.map_err(|error| error.to_string()),
            None => Err(format!("`{site}` does not run")),
        }
    }

    /// Starts a killed agent again.
    pub(super) fn revive(&mut self, site: &SiteId) -> Result<(), String> {
        self.known(std::slice::from_ref(site))?;
        let at = self.sites.iter().position(|known| known.name == *site);
        match at {
            Some(at) if self.sites[at].agent.is_none() => {
                self.start_agent(at).map_err(|error| error.to_string())
            }
            _ => Err(format!("`{site}` runs already")),
        }
    }

    /// Ends all of it, in order.
    pub(super) async fn end(mut self) {
        for site in &mut self.sites {
            // Its input closes: that is its sign to stop.
            drop(site.agent.as_mut().and_then(|agent| agent.stdin.take()));
        }
        for site in &mut self.sites {
            if let Some(agent) = &mut site.agent {
                let _late = tokio::time::timeout(Duration::from_secs(5), agent.wait()).await;
            }
        }
    }

    /// What runs where, in a few lines.
    pub(super) fn overview(&self) -> Vec<String> {
        let line = |site: &Site| {
            format!(
                "  {}  {}  {}",
                styled(BOLD, &site.name),
                styled(GOOD, &site.api),
                styled(DIM, format!("files in {}, kv at {}", site.files.display(), site.service))
            )
        };
        self.sites.iter().map(line).collect()
    }
}

async fn links(names: &[SiteId], ports: &[SocketAddr]) -> std::io::Result<Vec<Link>> {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut links = Vec::new();
    for (a, name) in names.iter().enumerate() {
        for (b, other) in names.iter().enumerate().skip(a + 1) {
            let forth = Relay::start(loopback, ports[b]).await?;
            let back = Relay::start(loopback, ports[a]).await?;
            let between = [name.clone(), other.clone()];
            links.push(Link { between, relays: [forth, back] });
        }
    }
    Ok(links)
}

fn free_ports(count: usize) -> std::io::Result<Vec<SocketAddr>> {
    // Held until all are found, so that none is found twice.
    let sockets: Vec<_> =
        (0..count).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>()?;
    sockets.iter().map(UdpSocket::local_addr).collect()
}

fn api_address(at: usize) -> std::io::Result<SocketAddr> {
    let usual = USUAL_PORT.saturating_add(u16::try_from(at).unwrap_or(u16::MAX));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, usual))
        .or_else(|_taken| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    listener.local_addr()
}
