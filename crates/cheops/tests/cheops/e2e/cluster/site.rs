//! One site: its agent, its application, and how a test talks to them.

use std::fs::{self, File, OpenOptions};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use cheops_api::{
    Action, Client, ClientError, Cursor, Operation, Resource, ResourceFilter, ResourceState,
    ResourceSummary, ShellAction, SiteState, Submit, SubmitEvent, Upload, Wait,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::redis::Redis;
use super::until;

/// How much of a log is shown when a test fails.
const TAIL: usize = 40;

pub(crate) struct Site {
    pub(crate) name: String,
    /// Where its commands run.
    pub(crate) files: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) log: PathBuf,
    /// The agent's address, for programs of the site.
    pub(crate) api: String,
    /// The agent's socket, as the command line takes it.
    pub(crate) socket: String,
    /// Where this process can listen for the site.
    pub(crate) host: IpAddr,
    pub(crate) redis: Option<Redis>,
    pub(super) client: Client,
    pub(super) agent: Option<Child>,
}

/// A shell operation for a resource that is known; whoever wants more says so.
pub(crate) fn shell(kind: &str, command: impl Into<String>) -> Submit {
    Submit {
        kind: kind.to_owned(),
        sites: None,
        config: None,
        profile: None,
        action: Action::Shell(ShellAction { command: command.into() }),
        force: false,
        wait: Wait::All,
        timeout_ms: 60_000,
    }
}

/// The first operation of a resource: it says where the resource lives and how conflicts are
/// resolved.
pub(crate) fn first(submit: Submit, sites: &str, config: &str) -> Submit {
    let config: Value = serde_json::from_str(config).unwrap();
    Submit { sites: Some(sites.to_owned()), config: Some(config), ..submit }
}

pub(crate) fn waiting_for(wait: Wait, submit: Submit) -> Submit {
    Submit { wait, ..submit }
}

impl Site {
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Hands in an operation and hears it out; its name, and what was heard.
    pub(crate) async fn hand_in(
        &self,
        id: &str,
        submit: &Submit,
        files: &[Upload],
    ) -> Result<(String, Vec<SubmitEvent>), ClientError> {
        let mut lines = self.client.submit(id, submit, files).await?;
        let (mut events, mut name) = (Vec::new(), String::new());
        while let Some(event) = lines.next().await? {
            if let SubmitEvent::Accepted { operation, .. } = &event {
                name.clone_from(operation);
            }
            events.push(event);
        }
        Ok((name, events))
    }

    /// The same without files, and it must be taken in.
    pub(crate) async fn does(&self, id: &str, submit: &Submit) -> String {
        let handed_in = self.hand_in(id, submit, &[]).await;
        let (name, events) = handed_in
            .unwrap_or_else(|error| panic!("{} takes nothing in for {id}: {error:?}", self.name));
        assert!(!name.is_empty(), "{events:?}");
        name
    }

    pub(crate) async fn resource(&self, id: &str) -> Option<Resource> {
        self.client.resource(id).await.ok()
    }

    pub(crate) async fn state(&self, id: &str) -> Option<ResourceState> {
        self.resource(id).await.map(|resource| resource.summary.state)
    }

    /// All operations of a resource, page by page.
    pub(crate) async fn operations(&self, id: &str) -> Vec<Operation> {
        let mut operations = Vec::new();
        let mut cursor = Cursor { limit: Some(1000), ..Cursor::default() };
        loop {
            let page = self.client.operations(id, &cursor).await.unwrap();
            operations.extend(page.items);
            match page.next {
                Some(next) => cursor.after = Some(next),
                None => return operations,
            }
        }
    }

    /// All resources, page by page.
    pub(crate) async fn resources(&self) -> Vec<ResourceSummary> {
        let mut resources = Vec::new();
        let mut filter = ResourceFilter { limit: Some(1000), ..ResourceFilter::default() };
        loop {
            let page = self.client.resources(&filter).await.unwrap();
            resources.extend(page.items);
            match page.next {
                Some(next) => filter.after = Some(next),
                None => return resources,
            }
        }
    }

    pub(crate) async fn hears(&self) -> usize {
        let Ok(sites) = self.client.sites().await else { return 0 };
        sites.sites.iter().filter(|site| site.state == SiteState::Up).count()
    }

    /// How many it could send a request to now. After a short cut a site is still taken for heard
    /// while there is no link to it yet; a link has a round trip.
    pub(crate) async fn reaches(&self) -> usize {
        let Ok(sites) = self.client.sites().await else { return 0 };
        let linked =
            |site: &&cheops_api::Site| site.state == SiteState::Up && site.round_trip_ms.is_some();
        sites.sites.iter().filter(linked).count()
    }

    /// A file that its commands wrote; nothing if there is none.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.files.join(name)).unwrap_or_default()
    }

    /// Changes a file without asking anybody.
    pub(crate) fn change_file(&self, name: &str, text: &str) {
        fs::write(self.files.join(name), text).unwrap();
    }

    pub(crate) fn redis(&self, arguments: &[&str]) -> String {
        self.redis.as_ref().unwrap().ask(arguments)
    }

    /// The command line, talking to this site's agent.
    pub(crate) fn cheops(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cheops"));
        command.args(["--agent", &self.socket]).args(arguments).stdin(Stdio::null());
        command.output().unwrap()
    }

    pub(crate) fn start(&mut self, mut command: Command) {
        assert!(self.agent.is_none(), "{} runs already", self.name);
        let log = OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        let agent = command
            .env("REDIS_CLI", "redis-cli -s redis.sock")
            .env("CURL", "curl -K curlrc")
            .args(["agent", "--with-parent", "--config"])
            .arg(&self.config)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.agent = Some(agent.unwrap());
    }

    pub(crate) async fn is_ready(&mut self) {
        let (client, log) = (self.client.clone(), self.log.clone());
        let agent = self.agent.as_mut().unwrap();
        until("the agent is ready", async || {
            if let Ok(Some(ended)) = agent.try_wait() {
                panic!("the agent ended: {ended}\n{}", tail(&log));
            }
            client.readyz().await.is_ok()
        })
        .await;
    }

    /// The most memory that its agent has held at once, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let agent = self.agent.as_ref().unwrap().id();
        let status = fs::read_to_string(format!("/proc/{agent}/status")).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = peak.and_then(|peak| peak.trim().strip_suffix(" kB")).unwrap();
        kibibytes.parse::<u64>().unwrap() << 10
    }

    /// As a power cut would.
    pub(crate) fn kill(&mut self) {
        let mut agent = self.agent.take().unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
    }

    /// Asks the agent to stop, and waits until it has.
    pub(crate) async fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.ended().await
    }

    /// As a terminal does that is closed.
    pub(crate) fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    fn signal(&self, signal: Signal) {
        let agent = self.agent.as_ref().unwrap();
        let pid = Pid::from_raw(i32::try_from(agent.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until the agent has ended.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let mut agent = self.agent.take().unwrap();
        let mut status = None;
        until("the agent ends", async || {
            status = agent.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }

    pub(crate) fn log_tail(&self) -> String {
        tail(&self.log)
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}

/// A file of that size, whose content nothing else has.
pub(crate) fn big_file(path: &Path, mebibytes: usize) {
    use std::io::{Read, Write};
    let mut random = File::open("/dev/urandom").unwrap();
    let mut file = File::create(path).unwrap();
    let mut piece = vec![0; 1 << 20];
    for _ in 0..mebibytes {
        random.read_exact(&mut piece).unwrap();
        file.write_all(&piece).unwrap();
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            let _ended = agent.kill();
            let _gone = agent.wait();
        }
    }
}
