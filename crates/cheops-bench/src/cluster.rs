//! Three sites: real agents in processes of their own, on loopback.

use std::fmt::Write;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use cheops_api::{Client, SiteState};
use cheops_core::model::SiteId;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::failure::{BenchFailure, cannot};
use crate::program::Program;

/// How many sites there are.
pub(crate) const SITES: usize = 3;
/// The name of the service that does nothing.
pub(crate) const SERVICE: &str = "noop";
/// How long agents may take to start, or to stop.
const PATIENCE: Duration = Duration::from_secs(30);

/// The sites. They end with this.
pub(crate) struct BenchCluster {
    pub(crate) sites: Vec<BenchSite>,
    program: Program,
    _dir: tempfile::TempDir,
}

/// One site.
pub(crate) struct BenchSite {
    pub(crate) name: SiteId,
    pub(crate) api: SocketAddr,
    /// Where the agent stands in front of the service.
    pub(crate) proxy: SocketAddr,
    pub(crate) data: PathBuf,
    folder: PathBuf,
    agent: Option<Child>,
}

impl BenchSite {
    pub(crate) fn client(&self) -> Result<Client, BenchFailure> {
        Client::new(&format!("http://{}", self.api)).map_err(cannot("make a client"))
    }

    /// The process, while it runs.
    pub(crate) fn pid(&self) -> Result<u32, BenchFailure> {
        let pid = self.agent.as_ref().and_then(Child::id);
        pid.ok_or_else(|| {
            BenchFailure::new(format!("the agent of {}", self.name), "it does not run")
        })
    }

    fn start(&mut self, program: &Path) -> std::io::Result<()> {
        let log = self.folder.join("agent.log");
        let log = fs::OpenOptions::new().create(true).append(true).open(log)?;
        let agent = Command::new(program)
            .args(["agent", "--with-parent", "--config"])
            .arg(self.folder.join("agent.toml"))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        self.agent = Some(agent);
        Ok(())
    }

    /// Fails, with what it said, if the agent ended.
    fn still_runs(&mut self) -> Result<(), BenchFailure> {
        let ended = self.agent.as_mut().and_then(|agent| agent.try_wait().ok().flatten());
        let Some(status) = ended else { return Ok(()) };
        let log = fs::read_to_string(self.folder.join("agent.log")).unwrap_or_default();
        Err(BenchFailure::new(format!("the agent of {} ended, {status}", self.name), log.trim()))
    }

    async fn hears_all(&self) -> Result<bool, BenchFailure> {
        let Ok(sites) = self.client()?.sites().await else { return Ok(false) };
        let heard = sites.sites.iter().filter(|site| site.state == SiteState::Up).count();
        Ok(heard + 1 == SITES)
    }
}

impl BenchCluster {
    /// Starts the sites, in a new folder in that one, and waits until each hears all others.
    pub(crate) async fn start(
        program: &Program,
        place: &Path,
        service: SocketAddr,
        more: &str,
    ) -> Result<Self, BenchFailure> {
        let dir = tempfile::Builder::new().prefix("cheops-bench-").tempdir_in(place);
        let dir = dir.map_err(cannot("make a folder"))?;
        let authority = dir.path().join("mesh");
        program.make_mesh(&authority).await?;
        let names: Vec<SiteId> =
            (1..=SITES).filter_map(|n| SiteId::new(&format!("site{n}")).ok()).collect();
        let addresses = addresses().map_err(cannot("find free ports"))?;
        let mut sites = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let folder = dir.path().join(name.as_str());
            fs::create_dir_all(&folder).map_err(cannot("make a folder"))?;
            let text = config(at, program, &names, &addresses, service) + "\n" + more;
            fs::write(folder.join("agent.toml"), text).map_err(cannot("write a config"))?;
            program.issue(&authority, name, &folder.join("identity.pem")).await?;
            let data = folder.join("data");
            let (name, api, proxy) = (name.clone(), addresses.apis[at], addresses.proxies[at]);
            sites.push(BenchSite { name, api, proxy, data, folder, agent: None });
        }
        let mut cluster = Self { sites, program: program.clone(), _dir: dir };
        for at in 0..SITES {
            cluster.start_agent(at)?;
        }
        cluster.all_heard().await?;
        Ok(cluster)
    }

    pub(crate) fn start_agent(&mut self, at: usize) -> Result<(), BenchFailure> {
        let started = self.sites[at].start(&self.program.path);
        started.map_err(cannot(&format!("start `{}`", self.program.path.display())))
    }

    /// Waits until every site hears all others.
    pub(crate) async fn all_heard(&mut self) -> Result<(), BenchFailure> {
        let waiting = async {
            for site in &mut self.sites {
                while !site.hears_all().await? {
                    site.still_runs()?;
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            Ok(())
        };
        let late = |_| Err(BenchFailure::new("the sites did not find each other", "time is up"));
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(late)
    }

    /// Ends an agent as a service manager would.
    pub(crate) async fn stop_agent(&mut self, at: usize) -> Result<(), BenchFailure> {
        let pid = i32::try_from(self.sites[at].pid()?).ok().and_then(Pid::from_raw);
        let pid =
            pid.ok_or_else(|| BenchFailure::new("cannot stop an agent", "it has no process"))?;
        kill_process(pid, Signal::TERM).map_err(cannot("stop an agent"))?;
        let Some(mut agent) = self.sites[at].agent.take() else { return Ok(()) };
        let late = |_| BenchFailure::new("an agent did not stop", "time is up");
        let status = tokio::time::timeout(PATIENCE, agent.wait()).await.map_err(late)?;
        status.map(|_| ()).map_err(cannot("wait for an agent"))
    }

    /// Ends all of it, in order.
    pub(crate) async fn end(mut self) -> Result<(), BenchFailure> {
        for site in &mut self.sites {
            site.still_runs()?;
            // Its input closes: that is its sign to stop.
            drop(site.agent.as_mut().and_then(|agent| agent.stdin.take()));
        }
        for site in &mut self.sites {
            if let Some(agent) = &mut site.agent {
                let _late = tokio::time::timeout(PATIENCE, agent.wait()).await;
            }
        }
        Ok(())
    }
}

fn config(
    at: usize,
    program: &Program,
    names: &[SiteId],
    addresses: &ListenAddresses,
    service: SocketAddr,
) -> String {
    let ListenAddresses { apis, proxies, links } = addresses;
    let mut text = format!(
        "site = \"{}\"\ndata_dir = \"data\"\napplication = \"empty\"\n\n\
         [api]\nlisten = \"{}\"\n{}\n\
         [mesh]\nlisten = \"{}\"\nidentity = \"identity.pem\"\n\n\
         [[services]]\nname = \"{SERVICE}\"\nlisten = \"{}\"\nupstream = \"http://{service}\"\n",
        names[at],
        apis[at],
        program.auth.line(),
        links[at],
        proxies[at]
    );
    for (other, name) in names.iter().enumerate().filter(|(other, _)| *other != at) {
        let address = links[other];
        // Writing into a text cannot fail.
        let _infallible = write!(text, "\n[[peers]]\nsite = \"{name}\"\naddress = \"{address}\"\n");
    }
    text
}

/// Where each site listens: its API, the proxy of its service, its end of the links.
struct ListenAddresses {
    apis: Vec<SocketAddr>,
    proxies: Vec<SocketAddr>,
    links: Vec<SocketAddr>,
}

/// Free addresses. They are held until all are found, so that none is found twice.
fn addresses() -> std::io::Result<ListenAddresses> {
    let free = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let held: Vec<_> = (0..2 * SITES).map(free).collect::<Result<_, _>>()?;
    let links: Vec<_> =
        (0..SITES).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>()?;
    let mut apis: Vec<_> = held.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?;
    Ok(ListenAddresses {
        proxies: apis.split_off(SITES),
        apis,
        links: links.iter().map(UdpSocket::local_addr).collect::<Result<_, _>>()?,
    })
}
