//! One site of the demo: its folder and config, its agent, and the services beside it.

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use cheops_api::{Client, ClientOptions, DemoSite, Token};
use cheops_core::model::SiteId;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::imagery::{DemoService, Imagery};
use super::links::RelayedLinks;
use super::ports::Ports;
use super::{AgentProgram, LogicProgram, TOKEN, cannot};
use crate::failure::Failure;

/// Where the first site's API is, if that is free: then no command needs `--agent`.
const API_PORT: u16 = 8079;
/// Where the proxies of the first site's services are, if that is free.
const IMAGE_PORT: u16 = 19292;
const COMPUTE_PORT: u16 = 18774;
/// How long an agent may take to stop in order.
const STOPPING: Duration = Duration::from_secs(5);
/// How long an agent has to say that it will be killed.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// One site.
pub(in super::super) struct SiteProcess {
    pub(in super::super) name: SiteId,
    pub(in super::super) api: String,
    pub(in super::super) files: PathBuf,
    /// Where its key-value service is.
    pub(in super::super) kv: String,
    /// The sample application's, if it runs.
    pub(in super::super) services: Vec<DemoService>,
    token: Token,
    config: PathBuf,
    log: PathBuf,
    agent: Option<Child>,
    /// An agent that is about to be killed.
    dying: Option<JoinHandle<()>>,
    _kv: Child,
}

/// What a site is set up with.
pub(super) struct SiteSetup<'a> {
    pub(super) program: &'a Path,
    pub(super) imagery: Option<&'a Imagery>,
    pub(super) links: &'a RelayedLinks,
    pub(super) folder: &'a Path,
    /// What lets in at its agent.
    pub(super) token: &'a Token,
    /// The programs of its `[logic]`.
    pub(super) logic: &'a [LogicProgram],
    /// Which of the sites it is, counted from 0.
    pub(super) at: usize,
}

impl SiteProcess {
    /// Its folder, services and config; all but the agent.
    pub(super) async fn set(
        name: &SiteId,
        mesh: SocketAddr,
        setting: &SiteSetup<'_>,
        ports: &mut Ports,
    ) -> Result<Self, Failure> {
        let folder = setting.folder;
        let files = folder.join("files");
        fs::create_dir_all(&files).map_err(cannot("make a folder"))?;
        let mut take = |usual| ports.take(usual, setting.at).map_err(cannot("find a free port"));
        let api = take(API_PORT)?;
        let mut services = Vec::new();
        if let Some(imagery) = setting.imagery {
            let (image, compute) = (take(IMAGE_PORT)?, take(COMPUTE_PORT)?);
            let failed = || cannot("start the sample application");
            let mut options = vec!["--site", name.as_str()];
            let started = imagery.start("image", &options, image, folder).await;
            services.push(started.map_err(failed())?);
            // As far as compute knows, the proxy is the image service.
            let image = format!("http://{image}");
            options.extend(["--image-url", &image]);
            let started = imagery.start("compute", &options, compute, folder).await;
            services.push(started.map_err(failed())?);
        }
        let (kv_process, kv) = key_values(setting.program).await?;
        let site = Self {
            name: name.clone(),
            api: format!("http://{api}"),
            files,
            kv,
            services,
            token: setting.token.clone(),
            config: folder.join("agent.toml"),
            log: folder.join("agent.log"),
            agent: None,
            dying: None,
            _kv: kv_process,
        };
        let text = site.config_text(api, mesh, setting);
        fs::write(&site.config, text).map_err(cannot("write a config"))?;
        Ok(site)
    }

    fn config_text(&self, api: SocketAddr, mesh: SocketAddr, setting: &SiteSetup<'_>) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let program =
            |it: &LogicProgram| format!("{} = {}\n", quoted(it.name.as_str()), quoted(&it.command));
        let programs: Vec<String> = setting.logic.iter().map(program).collect();
        let mut text = format!(
            "site = \"{}\"\ndata_dir = \"data\"\napplication = \"empty\"\n\n\
             [api]\nlisten = \"{api}\"\ntoken_file = \"../{TOKEN}\"\n\n\
             [mesh]\nlisten = \"{mesh}\"\nidentity = \"identity.pem\"\n\n\
             [shell]\ndirectory = {}\n\n[logic]\n{}\n\
             [[services]]\nname = \"kv\"\nupstream = \"{}\"\n",
            self.name,
            quoted(&self.files.to_string_lossy()),
            programs.concat(),
            self.kv
        );
        // Writing into a text cannot fail.
        for service in &self.services {
            let DemoService { name, proxy, upstream, .. } = service;
            let _infallible = write!(
                text,
                "\n[[services]]\nname = \"{name}\"\nlisten = \"{proxy}\"\n\
                 upstream = \"http://{upstream}\"\n"
            );
            if *name == "compute" {
                text.push_str("[services.cross]\ndivide = [\"/cpus\"]\nsum = [\"/used\"]\n");
            }
        }
        for (peer, address) in setting.links.from(&self.name) {
            let _infallible =
                write!(text, "\n[[peers]]\nsite = \"{peer}\"\naddress = \"{address}\"\n");
        }
        text
    }

    pub(in super::super) fn client(&self) -> Result<Client, Failure> {
        let options = ClientOptions { token: Some(self.token.clone()), authorities: None };
        Client::with(&self.api, &options).map_err(|error| Failure::ours(error.to_string()))
    }

    /// A service of the sample application.
    pub(in super::super) fn service(&self, name: &str) -> Option<&DemoService> {
        self.services.iter().find(|service| service.name == name)
    }

    pub(super) fn service_mut(&mut self, name: &str) -> Result<&mut DemoService, String> {
        let found = self.services.iter_mut().find(|service| service.name == name);
        found.ok_or_else(|| format!("{} has no service `{name}` that can be stopped", self.name))
    }

    pub(super) fn start_agent(&mut self, run: &AgentProgram) -> std::io::Result<()> {
        let log = fs::OpenOptions::new().create(true).append(true).open(&self.log)?;
        let control =
            run.control.iter().flat_map(|path| [OsStr::new("--demo-control"), path.as_ref()]);
        let agent = Command::new(&run.program)
            .args(["agent", "--with-parent", "--config"])
            .arg(&self.config)
            .args(control)
            // Its own group, so that Ctrl-C reaches the demo alone, which then ends it in order.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        self.agent = Some(agent);
        Ok(())
    }

    pub(super) fn is_up(&self) -> bool {
        self.agent.is_some()
    }

    /// Whether its agent runs, and has not ended by itself.
    pub(super) fn runs(&mut self) -> bool {
        self.is_up() && self.still_runs().is_ok()
    }

    /// What a page is told of it.
    pub(super) fn told(&mut self) -> DemoSite {
        let service =
            |service: &DemoService| (service.name.to_owned(), format!("http://{}", service.proxy));
        let kv = ("kv".to_owned(), self.kv.clone());
        DemoSite {
            site: self.name.to_string(),
            running: self.runs(),
            api: self.api.clone(),
            services: self.services.iter().map(service).chain([kv]).collect(),
        }
    }

    /// Kills the agent, after its last words.
    pub(super) fn kill_agent_soon(&mut self) {
        let Some(mut agent) = self.agent.take() else { return };
        self.dying = Some(tokio::spawn(async move {
            tokio::time::sleep(LAST_WORDS).await;
            let _gone = agent.kill().await;
        }));
    }

    /// Waits until an agent that is about to be killed was.
    pub(super) async fn is_gone(&mut self) {
        if let Some(dying) = self.dying.take() {
            let _gone = dying.await;
        }
    }

    /// Kills the agent, and says whether it ran.
    pub(super) async fn kill_agent(&mut self) -> std::io::Result<bool> {
        match self.agent.take() {
            Some(mut agent) => agent.kill().await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Whether the agent does what it was started for; if not, why.
    pub(super) fn still_runs(&mut self) -> Result<(), Failure> {
        let ended = self.agent.as_mut().and_then(|agent| agent.try_wait().ok().flatten());
        let Some(status) = ended else { return Ok(()) };
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let said = format!("the agent of {} ended: {status}", self.name);
        Err(Failure::ours(said).because(log.trim().to_owned()))
    }

    /// The agent's input closes: that is its sign to stop.
    pub(super) fn tell_to_stop(&mut self) {
        drop(self.agent.as_mut().and_then(|agent| agent.stdin.take()));
    }

    /// Waits for the agent to stop, and ends the services.
    pub(super) async fn ended(&mut self) {
        self.is_gone().await;
        if let Some(agent) = &mut self.agent {
            let _late = tokio::time::timeout(STOPPING, agent.wait()).await;
        }
        for service in &mut self.services {
            // Waited for: what still writes would be in the way of removing the folder.
            let _gone = service.kill().await;
        }
    }
}

/// A small key-value service of ours, and where it listens.
async fn key_values(program: &Path) -> Result<(Child, String), Failure> {
    let mut child = Command::new(program)
        .args(["sample", "--with-parent"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(cannot("start the key-value service"))?;
    let out = child.stdout.take().ok_or_else(|| Failure::ours("the service has no output"))?;
    let mut line = String::new();
    let read = BufReader::new(out).read_line(&mut line).await;
    read.map_err(cannot("hear from the key-value service"))?;
    Ok((child, line.trim().to_owned()))
}
