//! The demo's sites: processes, folders and links.
//!
//! | file | what it does |
//! | --- | --- |
//! | `site` | one site: its folder, config, agent and services |
//! | `imagery` | the sample application, run by Node |
//! | `links`, `ports` | ways between sites that can be cut, and where to listen |

mod imagery;
mod links;
mod ports;
mod site;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cheops_agent::mesh;
use cheops_api::{Demo, DemoLink, SiteState, Token};
use cheops_core::model::{OperationType, SiteId};
use tokio::sync::Mutex;

use self::imagery::Imagery;
use self::links::RelayedLinks;
use self::ports::Ports;
use self::site::SiteSetup;
use crate::failure::Failure;
use crate::look::{DIM, styled};
use crate::output::VerbOutput;

pub(super) use self::ports::Scheme;
pub(super) use self::site::SiteProcess;

/// How long the sites may take to come up.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often to look whether the sites have noticed something.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long an agent may take to say whom it hears.
const ASKING: Duration = Duration::from_secs(1);

/// The token of all agents, beside their folders.
const TOKEN: &str = "api.token";

/// A cluster that several may give orders to.
pub(super) type SharedCluster = Arc<Mutex<DemoCluster>>;

/// All of it. Ends with the process that made it, whatever happens to that.
pub(super) struct DemoCluster {
    pub(super) sites: Vec<SiteProcess>,
    /// What this machine lacks to run the sample application, if that does not run.
    pub(super) lacks: Option<String>,
    links: RelayedLinks,
    run: AgentProgram,
    /// What lets in at all of its agents.
    token: Token,
    _dir: tempfile::TempDir,
}

/// A program of every site's `[logic]`.
#[derive(Debug, Clone)]
pub(super) struct LogicProgram {
    name: OperationType,
    command: String,
}

impl LogicProgram {
    /// As it is given: `NAME=COMMAND`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let expected =
            "expected a name and a command, such as `shopping=python3 /srv/logic/shopping.py`";
        let (name, command) = text.split_once('=').ok_or(expected)?;
        if command.trim().is_empty() {
            return Err(expected.to_owned());
        }
        let name = OperationType::new(name).map_err(|error| error.to_string())?;
        Ok(Self { name, command: command.to_owned() })
    }
}

/// How agents are run.
struct AgentProgram {
    program: PathBuf,
    /// Where the demo takes orders of their pages, if it takes any.
    control: Option<PathBuf>,
}

fn cannot(what: &str) -> impl FnOnce(std::io::Error) -> Failure {
    let what = format!("the demo cannot {what}");
    move |error| Failure::ours(what).because(error)
}

impl DemoCluster {
    pub(super) async fn start(
        count: usize,
        scheme: Scheme,
        control: Option<PathBuf>,
        logic: &[LogicProgram],
        output: &mut VerbOutput,
    ) -> Result<Self, Failure> {
        let dir = tempfile::Builder::new()
            .prefix("cheops-demo-")
            .tempdir()
            .map_err(cannot("make a folder"))?;
        let program = std::env::current_exe().map_err(cannot("find its own program"))?;
        let authority = dir.path().join("mesh");
        let failed = |error| Failure::ours("the demo cannot make a mesh").because(error);
        mesh::create(&authority).map_err(failed)?;
        let names = (1..=count).filter_map(|n| SiteId::new(&format!("site{n}")).ok());
        let addresses = ports::for_datagrams(count).map_err(cannot("find free ports"))?;
        let named: Vec<_> = names.zip(addresses).collect();
        let links = RelayedLinks::between(&named).await.map_err(cannot("make links"))?;
        output.aside(styled(DIM, format!("starting {count} sites ...")));
        let lacks = imagery::lacks().await;
        let imagery = match lacks {
            None => Some(Imagery::write(&dir.path().join("imagery"))),
            Some(_) => None,
        };
        let imagery = imagery.transpose().map_err(cannot("write the sample application"))?;
        let token = cheops_agent::api_token(&dir.path().join(TOKEN))
            .map_err(|error| Failure::ours("the demo cannot make a token").because(error))?;
        let mut ports = Ports::new(scheme);
        let run = AgentProgram { program, control };
        let mut cluster = Self { sites: Vec::new(), lacks, links, run, token, _dir: dir };
        for (at, (name, address)) in named.iter().enumerate() {
            let folder = cluster._dir.path().join(name.as_str());
            let setting = SiteSetup {
                program: &cluster.run.program,
                imagery: imagery.as_ref(),
                links: &cluster.links,
                folder: &folder,
                token: &cluster.token,
                logic,
                at,
            };
            let site = SiteProcess::set(name, *address, &setting, &mut ports).await?;
            mesh::issue(&authority, name, &folder.join("identity.pem")).map_err(failed)?;
            cluster.sites.push(site);
        }
        drop(ports);
        for site in &mut cluster.sites {
            site.start_agent(&cluster.run).map_err(cannot("start an agent"))?;
        }
        cluster.settled(PATIENCE).await?;
        Ok(cluster)
    }

    /// What lets commands in at each agent, by its address.
    pub(super) fn tokens(&self) -> BTreeMap<String, String> {
        let token = self.token.secret();
        self.sites.iter().map(|site| (site.api.clone(), token.to_owned())).collect()
    }

    /// Waits until every site that runs hears those that it can hear, has told them all it knows,
    /// and has noticed that it hears nobody else.
    pub(super) async fn settled(&mut self, patience: Duration) -> Result<(), Failure> {
        let waiting = async {
            while !self.is_settled().await? {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            Ok(())
        };
        let late = || Failure::ours("the sites were not connected to each other in time");
        tokio::time::timeout(patience, waiting).await.unwrap_or_else(|_| Err(late()))
    }

    /// Whether this is so now. Fails if an agent ended by itself.
    pub(super) async fn is_settled(&mut self) -> Result<bool, Failure> {
        for at in 0..self.sites.len() {
            if self.sites[at].is_up() && !self.knows_who_is_there(at).await? {
                self.sites[at].still_runs()?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn knows_who_is_there(&self, at: usize) -> Result<bool, Failure> {
        let site = &self.sites[at];
        let client = site.client()?;
        // Others wait for the cluster meanwhile.
        let seen = tokio::time::timeout(ASKING, client.sites()).await;
        let Ok(Ok(seen)) = seen else { return Ok(false) };
        // A broken link has no round trip. That the site behind it is away may be said later.
        let hears = |other: &SiteProcess| {
            let mut seen = seen.sites.iter();
            let seen = seen.find(|seen| seen.site == other.name.as_str())?;
            (seen.state == SiteState::Up && seen.round_trip_ms.is_some()).then_some(seen)
        };
        let mut others = self.sites.iter().filter(|other| other.name != site.name);
        Ok(others.all(|other| {
            match other.is_up() && self.links.are_whole(&site.name, &other.name) {
                true => hears(other).is_some_and(|seen| seen.behind_on == 0),
                false => hears(other).is_none(),
            }
        }))
    }

    /// Cuts, or heals, the link between these two; all links if nobody is named.
    pub(super) fn set_cut(&mut self, sites: &[SiteId], cut: bool) -> Result<usize, String> {
        for site in sites {
            self.known(site)?;
        }
        Ok(self.links.set_cut(sites, cut))
    }

    /// How all of it is now.
    pub(super) fn told(&mut self) -> Demo {
        let link = |(one, other, cut): (&SiteId, &SiteId, bool)| DemoLink {
            a: one.to_string(),
            b: other.to_string(),
            cut,
        };
        Demo {
            sites: self.sites.iter_mut().map(SiteProcess::told).collect(),
            links: self.links.all().map(link).collect(),
        }
    }

    /// Whether a site's agent runs.
    pub(super) fn is_up(&mut self, site: &SiteId) -> Result<bool, String> {
        Ok(self.known(site)?.runs())
    }

    /// Kills an agent as a power cut would, once it has had the time to say that it will be.
    pub(super) fn kill_soon(&mut self, site: &SiteId) -> Result<(), String> {
        self.known(site)?.kill_agent_soon();
        Ok(())
    }

    fn known(&mut self, site: &SiteId) -> Result<&mut SiteProcess, String> {
        known(&mut self.sites, site)
    }

    /// Kills an agent as a power cut would, or one of the services of its site.
    pub(super) async fn kill(
        &mut self,
        site: &SiteId,
        service: Option<&str>,
    ) -> Result<(), String> {
        let found = self.known(site)?;
        let killed = match service {
            None => found.kill_agent().await,
            Some(name) => found.service_mut(name)?.kill().await,
        };
        match killed {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("`{}` of {site} does not run", service.unwrap_or("agent"))),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Starts what was killed again.
    pub(super) async fn revive(
        &mut self,
        site: &SiteId,
        service: Option<&str>,
    ) -> Result<(), String> {
        let Self { sites, run, .. } = self;
        let found = known(sites, site)?;
        let revived = match service {
            None if found.runs() => Ok(false),
            None => {
                found.is_gone().await;
                found.start_agent(run).map(|()| true)
            }
            Some(name) => found.service_mut(name)?.revive().await,
        };
        match revived {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("`{}` of {site} runs already", service.unwrap_or("agent"))),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Ends all of it, in order.
    pub(super) async fn end(&mut self) {
        for site in &mut self.sites {
            site.tell_to_stop();
        }
        for site in &mut self.sites {
            site.ended().await;
        }
    }
}

fn known<'a>(sites: &'a mut [SiteProcess], site: &SiteId) -> Result<&'a mut SiteProcess, String> {
    let found = sites.iter_mut().find(|known| known.name == *site);
    found.ok_or_else(|| format!("there is no site `{site}` in this demo"))
}
