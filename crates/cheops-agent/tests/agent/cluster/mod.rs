//! A few agents on this machine, each with its own data directory.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

mod link_log;
mod network;

use std::fmt::Write;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cheops_agent::config::AgentConfig;
use cheops_agent::{Agent, mesh};
use cheops_api::{Action, Client, ShellAction, Submit, SubmitEvent, Upload, Wait};
use cheops_core::model::SiteId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

pub(crate) use link_log::LinkLog;
pub(crate) use network::{Network, Way};

/// How long anything may take before a test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A service that answers the first request of each connection by exactly these bytes, which may
/// depend on its head, and closes it.
pub(crate) async fn service(
    answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let answer = answer.clone();
            tokio::spawn(async move {
                let (mut heard, mut piece) = (Vec::new(), [0; 4096]);
                while !heard.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut piece).await {
                        Ok(0) | Err(_) => return,
                        Ok(read) => heard.extend_from_slice(&piece[..read]),
                    }
                }
                let _gone = stream.write_all(&answer(&String::from_utf8_lossy(&heard))).await;
                let _gone = stream.shutdown().await;
                // Closed while something is unread, a connection may take the answer along.
                while matches!(stream.read(&mut piece).await, Ok(read) if read > 0) {}
            });
        }
    });
    address
}

/// Agents that know each other.
pub(crate) struct Cluster {
    dir: tempfile::TempDir,
    configs: Vec<AgentConfig>,
    agents: Vec<Option<Agent>>,
}

impl Cluster {
    /// So many sites, all heard by each other.
    pub(crate) async fn of(sites: usize) -> Self {
        Self::with(sites, "").await
    }

    /// The same, with more said in each config.
    pub(crate) async fn with(sites: usize, more: &str) -> Self {
        Self::reached(sites, |_| more.to_owned(), |_, _, at| at).await
    }

    /// The same, with something else said in the config of each site.
    pub(crate) async fn each(sites: usize, more: impl Fn(usize) -> String) -> Self {
        Self::reached(sites, more, |_, _, at| at).await
    }

    /// The same, where one site looks for another at the address that `looks_at` says, given both
    /// and the address that is right.
    pub(crate) async fn reached(
        sites: usize,
        more: impl Fn(usize) -> String,
        looks_at: impl Fn(usize, usize, SocketAddr) -> SocketAddr,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let authority = dir.path().join("mesh");
        mesh::create(&authority).unwrap();
        let name = |n: usize| SiteId::new(&format!("site{}", n + 1)).unwrap();
        let ports = free_ports(sites);
        let mut configs = Vec::new();
        for site in 0..sites {
            let identity = dir.path().join(format!("{}.pem", name(site)));
            mesh::issue(&authority, &name(site), &identity).unwrap();
            let mut text = format!(
                "site = \"{0}\"\ndata_dir = \"{0}\"\n[api]\nlisten = \"127.0.0.1:0\"\nauth = \"none\"\n\
                 [mesh]\nlisten = \"{1}\"\nidentity = \"{0}.pem\"\n{2}\n",
                name(site),
                ports[site],
                more(site)
            );
            for other in (0..sites).filter(|other| *other != site) {
                let (peer, at) = (name(other), looks_at(site, other, ports[other]));
                write!(text, "[[peers]]\nsite = \"{peer}\"\naddress = \"{at}\"\n").unwrap();
            }
            let file = dir.path().join("agent.toml");
            configs.push(AgentConfig::parse(&text, &file, |_| None).unwrap());
        }
        let mut cluster = Self { dir, configs, agents: Vec::new() };
        for site in 0..sites {
            cluster.agents.push(None);
            cluster.start(site).await;
        }
        cluster.all_up().await;
        cluster
    }

    pub(crate) async fn start(&mut self, site: usize) {
        // In one process, what was stopped lets go of its ports and its lock a little later.
        let starting = tokio::time::timeout(PATIENCE, async {
            loop {
                match Agent::start(self.configs[site].clone()).await {
                    Ok(agent) => return agent,
                    Err(error) => eprintln!("not yet: {error:?}"),
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        self.agents[site] = Some(starting.await.unwrap());
    }

    /// Another agent with the identity of that site, on a disk and at an address of its own.
    pub(crate) async fn start_twin(&self, site: usize) -> Agent {
        let mut config = self.configs[site].clone();
        config.data_dir = self.dir.path().join("twin");
        config.api.socket = None;
        config.mesh.as_mut().unwrap().listen = free_ports(1)[0];
        Agent::start(config).await.unwrap()
    }

    pub(crate) async fn stop(&mut self, site: usize) {
        self.agents[site].take().unwrap().stop().await;
    }

    /// The disk of a site that is stopped is gone, and its application with it.
    pub(crate) fn lose(&mut self, site: usize) {
        std::fs::remove_dir_all(&self.configs[site].data_dir).unwrap();
        self.configs[site].application = cheops_core::engine::Application::Empty;
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

    pub(crate) fn api_address(&self, site: usize) -> SocketAddr {
        self.agents[site].as_ref().unwrap().api_address()
    }

    /// Where the site's proxies listen, in the order of its config.
    pub(crate) fn mesh_address(&self, site: usize) -> SocketAddr {
        self.agents[site].as_ref().unwrap().mesh_address().unwrap()
    }

    pub(crate) fn proxy_address(&self, site: usize, service: usize) -> SocketAddr {
        self.agents[site].as_ref().unwrap().proxy_addresses()[service]
    }

    pub(crate) fn client(&self, site: usize) -> Client {
        Client::new(&format!("http://{}", self.api_address(site))).unwrap()
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
