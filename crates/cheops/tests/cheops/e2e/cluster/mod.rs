//! Sites for a test: each with its folder, its agent, its application, and ways to the others that
//! can be cut. All of it ends with the cluster, and nothing is left behind.

mod counter;
mod full;
mod ground;
mod network;
mod redis;
mod site;

use std::fmt::Write;
use std::fs;
use std::ops::{Index, IndexMut};
use std::process::Command;
use std::time::{Duration, Instant};

use cheops_api::Client;

pub(crate) use counter::{Counter, PORT as COUNTER_PORT};
pub(crate) use full::SmallDisk;
use ground::Ground;
use network::Network;
pub(crate) use redis::Redis;
pub(crate) use site::{Site, big_file, first, shell, waiting_for};

const MOST_SITES: u8 = 8;
/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits until something holds. The test fails if it takes too long.
pub(crate) async fn until(what: &str, holds: impl AsyncFnMut() -> bool) {
    until_within(PATIENCE, what, holds).await;
}

/// The same, with another idea of too long.
pub(crate) async fn until_within(
    patience: Duration,
    what: &str,
    mut holds: impl AsyncFnMut() -> bool,
) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < patience, "waited in vain until {what}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What is to be in the cluster.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) sites: u8,
    pub(crate) redis: bool,
    /// More of each site's config, `__HOST__` being where this process can listen for it, and
    /// `__SITE__` where the site's own processes can listen.
    pub(crate) config: String,
    /// More of what each config says of its API.
    pub(crate) api: &'static str,
}

impl Setup {
    pub(crate) fn sites(sites: u8) -> Self {
        Self { sites, redis: false, config: String::new(), api: "" }
    }

    /// Agents that ask programs of their site for nothing.
    pub(crate) fn without_token(self) -> Self {
        Self { api: "auth = \"none\"\n", ..self }
    }

    pub(crate) fn with_redis(self) -> Self {
        Self { redis: true, ..self }
    }

    pub(crate) fn config(self, config: &str) -> Self {
        Self { config: config.to_owned(), ..self }
    }

    /// Everything but the agents.
    pub(crate) async fn set(self) -> Cluster {
        assert!(self.sites <= MOST_SITES);
        let ground = Ground::take();
        fs::create_dir_all(ground.folder()).unwrap();
        let network = Network::between(self.sites, &ground).await;
        let mut cluster = Cluster { sites: Vec::new(), network, ground };
        cluster.mesh("mesh");
        for number in 1..=self.sites {
            let site = cluster.site(number, &self).await;
            cluster.sites.push(site);
        }
        cluster
    }

    /// All of it, the sites hearing each other.
    pub(crate) async fn start(self) -> Cluster {
        let mut cluster = self.set().await;
        cluster.start_all().await;
        cluster
    }
}

/// Sites, numbered from 1.
pub(crate) struct Cluster {
    // First, for the agents must be gone before what they stand on.
    sites: Vec<Site>,
    network: Network,
    ground: Ground,
}

impl Index<u8> for Cluster {
    type Output = Site;

    fn index(&self, number: u8) -> &Site {
        &self.sites[usize::from(number) - 1]
    }
}

impl IndexMut<u8> for Cluster {
    fn index_mut(&mut self, number: u8) -> &mut Site {
        &mut self.sites[usize::from(number) - 1]
    }
}

impl Cluster {
    pub(crate) fn count(&self) -> u8 {
        u8::try_from(self.sites.len()).unwrap()
    }

    pub(crate) fn sites(&self) -> impl Iterator<Item = &Site> {
        self.sites.iter()
    }

    pub(crate) fn numbers(&self) -> std::ops::RangeInclusive<u8> {
        1..=self.count()
    }

    /// All sites, as a user names them.
    pub(crate) fn everywhere(&self) -> String {
        let names: Vec<&str> = self.sites().map(|site| site.name.as_str()).collect();
        names.join(" & ")
    }

    /// A folder of the test's own.
    pub(crate) fn folder(&self) -> std::path::PathBuf {
        self.ground.folder()
    }

    /// Makes a mesh of that name.
    pub(crate) fn mesh(&self, name: &str) {
        cheops(&["mesh", "new", "--dir", self.path(name).as_str()]);
    }

    /// Gives a site its identity in that mesh.
    pub(crate) fn issue(&self, mesh: &str, site: &str, out: &str) {
        cheops(&["mesh", "issue", site, "--dir", &self.path(mesh), "--out", &self.path(out)]);
    }

    fn path(&self, name: &str) -> String {
        self.folder().join(name).to_str().unwrap().to_owned()
    }

    async fn site(&self, number: u8, setup: &Setup) -> Site {
        let name = format!("site{number}");
        let folder = self.folder().join(&name);
        let files = folder.join("files");
        fs::create_dir_all(&files).unwrap();
        self.issue("mesh", &name, &format!("{name}/identity.pem"));
        let redis = if setup.redis { Some(Redis::start(&files).await) } else { None };
        let api = self.network.api(number, &self.ground);
        let config = folder.join("agent.toml");
        fs::write(&config, self.config(number, setup)).unwrap();
        let data = folder.join("data");
        let socket = format!("unix:{}", data.join("api.sock").display());
        Site {
            name,
            files,
            data,
            config,
            log: folder.join("agent.log"),
            api: format!("http://{api}"),
            client: Client::new(&socket).unwrap(),
            socket,
            host: self.host_of(number),
            redis,
            agent: None,
        }
    }

    fn config(&self, number: u8, setup: &Setup) -> String {
        let mut text = format!(
            "site = \"site{number}\"\ndata_dir = \"data\"\napplication = \"empty\"\n\n\
             [api]\nlisten = \"{}\"\n{}\n\
             [mesh]\nlisten = \"{}\"\nidentity = \"identity.pem\"\n\n\
             [shell]\ndirectory = \"files\"\n\n{}\n",
            self.network.api(number, &self.ground),
            setup.api,
            self.network.mesh(number, &self.ground),
            setup
                .config
                .replace("__HOST__", &self.host_of(number).to_string())
                .replace("__SITE__", &self.address_of(number).to_string()),
        );
        for other in (1..=setup.sites).filter(|other| *other != number) {
            let address = self.network.peer(number, other);
            let peer = format!("\n[[peers]]\nsite = \"site{other}\"\naddress = \"{address}\"\n");
            text.write_str(&peer).unwrap();
        }
        text
    }

    /// Where processes of a site listen, for each other and for this one.
    pub(crate) fn address_of(&self, number: u8) -> std::net::IpAddr {
        self.network.address(number, &self.ground)
    }

    /// What starts a program at a site.
    pub(crate) fn command(&self, number: u8, program: &str) -> Command {
        self.network.command(number, program)
    }

    fn host_of(&self, number: u8) -> std::net::IpAddr {
        self.network.host_of(number, &self.ground)
    }

    pub(crate) fn start_agent(&mut self, number: u8) {
        let command = self.network.command(number, env!("CARGO_BIN_EXE_cheops"));
        self[number].start(command);
    }

    /// Starts every agent, and waits until they hear each other.
    pub(crate) async fn start_all(&mut self) {
        for number in self.numbers() {
            self.start_agent(number);
        }
        for site in &mut self.sites {
            site.is_ready().await;
        }
        self.all_hear().await;
    }

    /// Starts an agent again, and waits until it answers.
    pub(crate) async fn restart(&mut self, number: u8) {
        self.start_agent(number);
        self[number].is_ready().await;
    }

    pub(crate) async fn all_hear(&self) {
        for site in &self.sites {
            until("all sites hear each other", async || {
                site.reaches().await + 1 == self.sites.len()
            })
            .await;
        }
    }

    pub(crate) async fn nobody_hears(&self) {
        for site in &self.sites {
            until("no site hears another", async || site.hears().await == 0).await;
        }
    }

    pub(crate) fn cut(&self) {
        self.network.set_all_cut(true);
    }

    pub(crate) fn heal(&self) {
        self.network.set_all_cut(false);
    }

    pub(crate) fn cut_off(&self, site: u8) {
        self.network.set_cut_off(site, true);
    }

    pub(crate) fn join(&self, site: u8) {
        self.network.set_cut_off(site, false);
    }

    /// Waits until every site says of a resource that all is done.
    pub(crate) async fn converges(&self, id: &str) {
        use cheops_api::ResourceState::Converged;
        for site in &self.sites {
            let mut state = None;
            until(&format!("{id} converges at {}", site.name), async || {
                state = site.state(id).await;
                state == Some(Converged)
            })
            .await;
        }
    }
}

fn cheops(arguments: &[&str]) {
    let ran = Command::new(env!("CARGO_BIN_EXE_cheops")).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for site in &self.sites {
                eprintln!("--- the log of {} ends with\n{}", site.name, site.log_tail());
            }
        }
    }
}
