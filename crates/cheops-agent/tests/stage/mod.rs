//! A few agents on this machine, each with its own data directory.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use cheops_agent::{Agent, Setup, mesh};
use cheops_api::{Action, Client, ShellAction, Submit, SubmitEvent, Upload, Wait};
use cheops_core::engine::Application;
use cheops_core::model::SiteId;

/// How long anything may take before a test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Agents that know each other.
pub(crate) struct Stage {
    dir: tempfile::TempDir,
    setups: Vec<Setup>,
    agents: Vec<Option<Agent>>,
}

impl Stage {
    /// So many sites, all heard by each other.
    pub(crate) async fn of(sites: usize) -> Self {
        Self::with(sites, |_| {}).await
    }

    /// The same, with something changed in how they are set up.
    pub(crate) async fn with(sites: usize, change: impl Fn(&mut Setup)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let authority = dir.path().join("mesh");
        mesh::create(&authority).unwrap();
        let names: Vec<SiteId> = (1..=sites).map(|n| SiteId::new(&format!("site{n}")).unwrap()).collect();
        let addresses: Vec<SocketAddr> = free_ports(sites);
        let mut setups = Vec::new();
        for (name, address) in names.iter().zip(&addresses) {
            let identity = dir.path().join(format!("{name}.pem"));
            mesh::issue(&authority, name, &identity).unwrap();
            let others = names.iter().zip(&addresses).filter(|(other, _)| *other != name);
            let mut setup = Setup {
                site: name.clone(),
                data_dir: dir.path().join(name.as_str()),
                api_listen: "127.0.0.1:0".parse().unwrap(),
                mesh_listen: *address,
                advertise: None,
                identity,
                peers: others.map(|(other, at)| (other.clone(), at.to_string())).collect(),
                services: BTreeMap::new(),
                time_limit: Duration::from_secs(60),
                output_limit: 64 * 1024,
                jobs_at_once: 64,
                shell_dir: None,
                retention: Duration::from_secs(3600),
                application: Application::MayHoldState,
                keep_free: 0,
            };
            change(&mut setup);
            setups.push(setup);
        }
        let mut stage = Self { dir, setups, agents: Vec::new() };
        for site in 0..sites {
            stage.agents.push(None);
            stage.start(site).await;
        }
        stage.all_up().await;
        stage
    }

    pub(crate) async fn start(&mut self, site: usize) {
        self.agents[site] = Some(Agent::start(self.setups[site].clone()).await.unwrap());
    }

    pub(crate) async fn stop(&mut self, site: usize) {
        self.agents[site].take().unwrap().stop().await;
    }

    async fn all_up(&self) {
        for site in 0..self.agents.len() {
            until("every site is heard", async || {
                let sites = self.client(site).sites().await.unwrap().sites;
                let heard = sites.iter().filter(|site| site.state.word() == "up").count();
                heard + 1 == self.agents.len()
            })
            .await;
        }
    }

    pub(crate) fn client(&self, site: usize) -> Client {
        let address = self.agents[site].as_ref().unwrap().api_address();
        Client::new(&format!("http://{address}")).unwrap()
    }

    /// The path of a file that all sites share: tests write to it what each of them does.
    pub(crate) fn file(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    /// Hands an operation in, and hears all there is to hear.
    pub(crate) async fn submit(&self, site: usize, id: &str, submit: &Submit) -> Vec<SubmitEvent> {
        self.submit_with(site, id, submit, &[]).await
    }

    pub(crate) async fn submit_with(
        &self,
        site: usize,
        id: &str,
        submit: &Submit,
        files: &[Upload],
    ) -> Vec<SubmitEvent> {
        let mut lines = self.client(site).submit(id, submit, files).await.unwrap();
        let mut events = Vec::new();
        while let Some(event) = lines.next().await.unwrap() {
            events.push(event);
        }
        events
    }
}

/// Waits until something holds, and fails if it never does.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(waited.await.is_ok(), "never came true: {what}");
}

/// A shell operation that waits for all.
pub(crate) fn shell(sites: &str, kind: &str, command: &str) -> Submit {
    Submit {
        kind: kind.into(),
        sites: Some(sites.into()).filter(|sites: &String| !sites.is_empty()),
        config: None,
        profile: None,
        action: Action::Shell(ShellAction { command: command.into() }),
        force: false,
        wait: Wait::All,
        timeout_ms: 20_000,
    }
}

/// Who replied what, in order of name.
pub(crate) fn replies(events: &[SubmitEvent]) -> Vec<(&str, &str)> {
    let mut replies: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            SubmitEvent::Reply(said) => Some((said.site.as_str(), said.reply.status.word())),
            _ => None,
        })
        .collect();
    replies.sort_unstable();
    replies
}

fn free_ports(count: usize) -> Vec<SocketAddr> {
    // Held until all are found, so that none is found twice.
    let sockets: Vec<_> = (0..count).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    sockets.iter().map(|socket| socket.local_addr().unwrap()).collect()
}
