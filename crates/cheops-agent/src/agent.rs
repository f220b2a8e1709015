//! One agent, put together from its parts, and taken apart in order.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use cheops_api::Token;
use cheops_core::engine::Settings;
use cheops_core::model::{Author, Incarnation, SaysAlready, SiteId};
use cheops_mesh::identity::{Identity, MeshError};
use cheops_mesh::{Border, IncomingFiles, PeerRouter, Peers, PeersError, Seals};
use cheops_proxy::{IdDirectory, Naming};
use cheops_proxy::{Listening, Means, Proxies, Remembered, Reserve, Threads};
use cheops_record::CertificateError;
use cheops_services::{ConnectorError, Services};
use cheops_store::{
    Certificates, Claim, Far, OpenError, Opened, ProgressReporter, StoreOptions, Voucher,
};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::actuators::SiteActuators;
use crate::api_server::{self, ApiServer, Socket, SocketError, TlsError, TokenError};
use crate::config::{AgentConfig, Auth, LONGEST_SOCKET, ServiceConfig, WebhooksConfig};
use crate::content::{KeptStates, SiteContent};
use crate::driver::{self, Actuators, AgentFailure, Driver, DriverThread, Signer, room_left};
use crate::exec::{
    AnswerRules, ExecError, ExecSettings, Executor, RequestSettings, RunToken, end_leftovers,
};
use crate::hooks::{self, HookSettings, Hooks, HooksError};
use crate::http::{Access, Api, Counted, guarded, router, router_for_peers};
use crate::ports::{
    KeptCertificates, ProxiesForPeers, ProxyPeers, ProxySignatures, SiteFiles, SiteOperations,
};
use crate::telemetry;

/// Why an agent does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The certificate is another site's.
    #[error("`{}` is the identity of site `{found}`, and this is site `{site}`", .path.display())]
    WrongIdentity {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        found: SiteId,
        /// Who asks.
        site: SiteId,
    },
    /// The identity cannot be read.
    #[error("the identity of this site cannot be used")]
    Identity(#[from] MeshError),
    /// The data directory cannot be used.
    #[error("the data directory cannot be used")]
    Store(#[from] OpenError),
    /// The mesh port cannot be used.
    #[error("the other sites cannot be reached")]
    Peers(#[from] PeersError),
    /// The API's port cannot be used.
    #[error("the API's address `{address}` cannot be used")]
    Api {
        /// As configured.
        address: SocketAddr,
        /// What came of it.
        source: io::Error,
    },
    /// The API's socket cannot be used.
    #[error("the API's socket cannot be used")]
    Socket(#[from] SocketError),
    /// There is no token to ask for.
    #[error("the API's token cannot be used")]
    Token(#[from] TokenError),
    /// The API has no certificate.
    #[error("the API's certificate cannot be used")]
    Tls(#[from] TlsError),
    /// The port of a service's proxy cannot be used.
    #[error("the address `{address}` for service `{service}` cannot be used")]
    Service {
        /// The service.
        service: String,
        /// As configured.
        address: SocketAddr,
        /// What came of it.
        source: io::Error,
    },
    /// Services cannot be asked.
    #[error("services cannot be asked")]
    Services(#[from] ConnectorError),
    /// Nobody can be told what happens.
    #[error("hooks cannot be run")]
    Hooks(#[from] HooksError),
    /// Commands cannot be run.
    #[error("commands cannot be run")]
    Exec(#[from] ExecError),
    /// The system refuses something an agent cannot do without.
    #[error("the system refuses {what}")]
    System {
        /// What.
        what: &'static str,
        /// How.
        source: io::Error,
    },
}

impl StartError {
    /// What to do about it, where that can be told.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::WrongIdentity { site, .. } => {
                Some(format!("`cheops mesh issue {site}` makes the right one"))
            }
            Self::Store(error) => error.hint().map(str::to_owned),
            Self::Api { source, .. } => Some(not_to_be_had(source, "api.listen")),
            Self::Socket(_) => {
                Some("`api.socket` names another path, or says `off`: then there is none".into())
            }
            Self::Token(error) => Some(error.hint()),
            Self::Tls(_) => {
                Some("`api.tls` names a file with the certificate and its key, as PEM".into())
            }
            Self::Identity(MeshError::Readable { path, .. }) => Some(format!(
                "`chmod 600 {}`; who may have read it can speak for this site",
                path.display()
            )),
            Self::Identity(MeshError::OfAnother { path, .. }) => Some(format!(
                "`chown` {} to who runs the agent; who owned it can speak for this site",
                path.display()
            )),
            Self::Peers(PeersError::Listen { source, .. }) => {
                Some(not_to_be_had(source, "mesh.listen"))
            }
            Self::Identity(_) | Self::Peers(PeersError::Identity(_)) => {
                Some("`cheops mesh issue SITE` makes one, and `mesh.identity` names it".into())
            }
            Self::Service { source, .. } if source.kind() == io::ErrorKind::AddrNotAvailable => {
                Some(not_to_be_had(source, "listen"))
            }
            Self::Service { .. } => Some(
                "does the service itself listen there? `listen` in `[[services]]` is where the \
                 proxy is, `upstream` where the service is"
                    .into(),
            ),
            Self::Services(ConnectorError::Roots(_)) => Some(
                "services with an `https` upstream are trusted by the system's certificates; on \
                 Debian the package `ca-certificates` brings them"
                    .into(),
            ),
            Self::Services(_) | Self::Exec(_) | Self::Hooks(_) | Self::System { .. } => None,
        }
    }
}

/// Why an address cannot be listened on, most likely.
fn not_to_be_had(error: &io::Error, setting: &str) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("is another agent running? `{setting}` names the address")
        }
        io::ErrorKind::AddrNotAvailable => {
            format!("`{setting}` must be an address of this machine; `0.0.0.0` is all of them")
        }
        _ => format!("`{setting}` names the address"),
    }
}

/// A running agent.
pub struct Agent {
    driver: Driver,
    executor: Executor,
    peers: Peers,
    api_address: SocketAddr,
    api_url: String,
    api_socket: Option<PathBuf>,
    mesh_address: Option<SocketAddr>,
    proxy_addresses: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    proxying: Vec<JoinHandle<()>>,
    /// Held to the end: who went over to another protocol is served as long as the agent runs.
    _proxy_threads: Option<Arc<Threads>>,
    following: JoinHandle<()>,
    /// Of what the metrics were told.
    sorting: JoinHandle<()>,
    thread: DriverThread,
}

/// What is kept free on the disk for what is already under way.
const KEEP_FREE: u64 = 32 * 1024 * 1024;
/// What files of other sites, and uploads that several sites keep, leave free: as much again, so
/// that operations of this site are not refused because of them.
const ROOM_BESIDE_FILES: u64 = 2 * KEEP_FREE;
/// How long a data directory may be in use before another agent must be at work in it.
const LETTING_GO: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How long running commands may take to end when the agent is asked to stop.
const DRAIN: Duration = Duration::from_secs(20);

fn system(what: &'static str) -> impl FnOnce(io::Error) -> StartError {
    move |source| StartError::System { what, source }
}

fn random() -> Result<u64, StartError> {
    let mut bytes = [0; 8];
    let no_reason = |_| io::Error::other("it does not say why");
    let filled = SystemRandom::new().fill(&mut bytes).map_err(no_reason);
    filled.map_err(system("random numbers"))?;
    Ok(u64::from_le_bytes(bytes))
}

impl Agent {
    /// Starts one: claims its data directory, takes its ports, opens its log, ends what an earlier
    /// start left running, and goes on where that one stopped.
    ///
    /// # Errors
    ///
    /// When something it cannot do without is missing; nothing is left running then.
    pub async fn start(config: AgentConfig) -> Result<Self, StartError> {
        // First of all: whoever keeps a counter at hand takes it from here.
        let metrics = telemetry::count();
        let identity = identity(&config)?;
        let claim = claim(&config.data_dir).await?;
        let token = token(&config)?;
        let ports = AgentPorts::take(&config).await?;
        let signer = Signer(identity.as_ref().map(Identity::site_key).transpose()?.map(Arc::new));
        let opened = open(claim, &config, &signer).await?;
        let me = Author { site: config.site.clone(), incarnation: opened.incarnation };
        let border = border(identity.as_ref(), &opened.certificates)?;
        let seals = Seals::new(&me.site, signer.0.clone(), border.as_ref().map(Border::keyring));
        let peers = peers(&config, &me, identity.as_ref(), border)?;
        let replicas = replicas(&config);
        let memory = Remembered::new(&config.proxy, &config.data_dir);
        let services = services(&config)?;
        let requests = requests(&config, &replicas, &memory);
        let kept = KeptStates::default();
        let executor = executor(&config, &opened, kept.clone(), services.clone(), requests)?;

        let (blobs, feed) = (opened.blobs.clone(), opened.feed.clone());
        let dir = config.data_dir.clone();
        let files = SiteFiles { blobs: blobs.clone(), feed: feed.clone(), dir: dir.clone() };
        let files = Arc::new(files);
        let incoming = IncomingFiles::new(files.clone(), ROOM_BESIDE_FILES);
        let actuators = SiteActuators {
            kept,
            runtime: tokio::runtime::Handle::current(),
            executor: executor.clone(),
            peers: peers.clone(),
            incoming: incoming.clone(),
            snapshots: opened.snapshots.clone(),
            replicas: replicas.clone(),
        };
        let backup = opened.backup.clone();
        let (driver, thread) = driver(&config, &me, opened, Box::new(actuators), signer)?;

        let mesh_address = peers.local_address();
        let api_address = ports.api.address();
        let access = Arc::new(Access::new(&config.api, token.as_ref(), api_address));
        let (is_tls, api_socket) = (config.api.tls.is_some(), ports.api.socket());
        let api_url = format!("{}://{api_address}", if is_tls { "https" } else { "http" });
        let reserve = Reserve::new(move || room_left(&dir), ROOM_BESIDE_FILES);
        let means = Means {
            peers: Arc::new(ProxyPeers(peers.clone())),
            operations: Arc::new(SiteOperations {
                me: config.site.clone(),
                driver: driver.clone(),
            }),
            bodies: files,
            replicas,
            memory,
            signatures: Arc::new(ProxySignatures(seals)),
            services,
            reserve: reserve.clone(),
        };
        let proxies = Proxies::new(&config.site, &config.services, &config.proxy, means);
        let api = Arc::new(Api {
            access: access.clone(),
            site: config.site.clone(),
            driver: driver.clone(),
            peers: peers.clone(),
            executor: executor.clone(),
            blobs: blobs.clone(),
            incoming: incoming.clone(),
            reserve,
            feed: feed.clone(),
            backup,
            metrics: metrics.clone(),
            advertise: advertised(&config, mesh_address),
            services: config.services.iter().map(|service| service.name.to_string()).collect(),
            counted: Counted::default(),
            proxies: proxies.clone(),
            demo: config.demo.clone(),
        });
        let threads = ports.threads_for_proxies()?;
        let hooks =
            Hooks::new(config.hooks, hook_settings(&config.webhooks, &me), executor.clone())?;

        // From here on nothing can fail, and somebody may be listening.
        let services_for_peers = Arc::new(ProxiesForPeers(proxies.clone()));
        let for_peers = PeerRouter::new(router_for_peers(api.clone()), services_for_peers);
        peers.start(Arc::new(driver.clone()), &incoming, &for_peers);
        let follower = hooks::Follower { hooks, feed, driver: driver.clone(), me };
        let following = tokio::spawn(follower.run());
        let (stop, stopping) = watch::channel(false);
        let proxy_addresses = ports.proxy_addresses.clone();
        let router = guarded(router(api), access, api_address, is_tls);
        let (serving, proxying) = ports.serve(router, &proxies, threads.as_ref(), &stopping);
        Ok(Self {
            driver,
            executor,
            peers,
            api_address,
            api_url,
            api_socket,
            mesh_address,
            proxy_addresses,
            stop,
            serving,
            proxying,
            _proxy_threads: threads,
            following,
            sorting: telemetry::keep_sorted(metrics),
            thread,
        })
    }

    /// Where people and programs reach it.
    pub fn api_address(&self) -> SocketAddr {
        self.api_address
    }

    /// The same as a URL.
    pub fn api_url(&self) -> &str {
        &self.api_url
    }

    /// The same as a socket of this machine, if there is one.
    pub fn api_socket(&self) -> Option<&Path> {
        self.api_socket.as_deref()
    }

    /// Where other sites reach it, if it has any.
    pub fn mesh_address(&self) -> Option<SocketAddr> {
        self.mesh_address
    }

    /// Where clients reach the services, in the order of the config.
    pub fn proxy_addresses(&self) -> &[SocketAddr] {
        &self.proxy_addresses
    }

    /// Waits until it cannot go on, which is never while all is well. What is left to do then is to
    /// stop it.
    pub async fn failed(&mut self) -> AgentFailure {
        self.thread.failed().await
    }

    /// Takes nothing new in, lets what runs come to its end, and stops.
    pub async fn stop(self) {
        let _nobody = self.stop.send(true);
        // Answers that are under way may need the links.
        for proxying in self.proxying {
            let _ended = proxying.await;
        }
        let drained = self.driver.drain(DRAIN).await;
        self.peers.close().await;
        if drained {
            self.thread.join().await;
        } else {
            tracing::warn!(
                "some commands did not end in time; they are ended, and their results unknown"
            );
        }
        // Hooks that are under way are told again at the next start.
        self.sorting.abort();
        self.following.abort();
        let _aborted = self.following.await;
        self.executor.stop().await;
        let mut serving = self.serving;
        if tokio::time::timeout(Duration::from_secs(1), &mut serving).await.is_err() {
            // Somebody still follows the changes; they go on at another time.
            serving.abort();
            let _aborted = serving.await;
        }
    }
}

/// What people, programs and clients of services reach it at: taken first, served last.
struct AgentPorts {
    api: ApiServer,
    proxies: Vec<Listening>,
    proxy_addresses: Vec<SocketAddr>,
}

impl AgentPorts {
    async fn take(config: &AgentConfig) -> Result<Self, StartError> {
        let address = config.api.listen;
        let api = TcpListener::bind(address)
            .await
            .map_err(|source| StartError::Api { address, source })?;
        let tls = config.api.tls.as_deref().map(api_server::acceptor).transpose()?;
        let most = config.api.connections_per_address;
        let api = ApiServer::new(api, tls, socket(config)?, most);
        let api = api.map_err(system("its own address"))?;
        let (mut proxies, mut proxy_addresses) = (Vec::new(), Vec::new());
        for service in &config.services {
            let Some(address) = service.listen else { continue };
            let bound = Listening::bind(service.name.as_str(), address).await;
            let service = service.name.to_string();
            let port = bound.map_err(|source| StartError::Service { service, address, source })?;
            proxy_addresses.push(port.address().map_err(system("its own address"))?);
            proxies.push(port);
        }
        Ok(Self { api, proxies, proxy_addresses })
    }

    /// None where there is no proxy.
    fn threads_for_proxies(&self) -> Result<Option<Arc<Threads>>, StartError> {
        let threads = (!self.proxies.is_empty()).then(Threads::start).transpose();
        Ok(threads.map_err(system("a thread"))?.map(Arc::new))
    }

    /// Serves the API, and each proxy, until the agent stops.
    fn serve(
        self,
        router: Router,
        proxies: &Proxies,
        threads: Option<&Arc<Threads>>,
        stopping: &watch::Receiver<bool>,
    ) -> (JoinHandle<()>, Vec<JoinHandle<()>>) {
        let serving = tokio::spawn(self.api.serve(router, stopping.clone()));
        let proxying = self.proxies.into_iter().zip(threads.into_iter().cycle());
        let proxying = proxying.map(|(port, threads)| {
            tokio::spawn(port.serve(proxies.clone(), threads.clone(), stopping.clone()))
        });
        (serving, proxying.collect())
    }
}

/// What whoever comes by the API's address has to show; none if nothing is asked for.
fn token(config: &AgentConfig) -> Result<Option<Token>, StartError> {
    match config.api.auth {
        Auth::Token => Ok(Some(api_server::api_token(&config.api.token_file)?)),
        Auth::None => {
            let listen = config.api.listen;
            tracing::warn!(
                %listen,
                "the API asks for no token: every user of this machine can run commands as this \
                 agent (`auth = \"none\"` in `[api]`)"
            );
            Ok(None)
        }
    }
}

/// The API's socket, unless there is to be none.
fn socket(config: &AgentConfig) -> Result<Option<Socket>, StartError> {
    let Some(path) = &config.api.socket else { return Ok(None) };
    // One that was named is refused where it is read.
    if path.as_os_str().len() > LONGEST_SOCKET {
        let path = path.display();
        tracing::warn!(
            %path,
            "there is no socket for the API: the path is too long; `api.socket` can name another"
        );
        return Ok(None);
    }
    Ok(Some(Socket::bind(path)?))
}

/// Who this site is to the others. A site without a mesh has nobody to prove it to.
fn identity(config: &AgentConfig) -> Result<Option<Identity>, StartError> {
    let Some(mesh) = &config.mesh else { return Ok(None) };
    let identity = Identity::read(&mesh.identity)?;
    if identity.site == config.site {
        return Ok(Some(identity));
    }
    let (path, site) = (mesh.identity.clone(), config.site.clone());
    Err(StartError::WrongIdentity { path, found: identity.site, site })
}

/// The data directory, once nothing of an earlier start holds it. An agent that was killed while it
/// started a command leaves a child with all that the agent had open, ports included, until that
/// child is its own program: so the claim comes before the ports, and is worth a moment's wait.
async fn claim(dir: &Path) -> Result<Claim, StartError> {
    let began = Instant::now();
    loop {
        match Claim::on(dir) {
            Err(OpenError::InUse { .. }) if began.elapsed() < LETTING_GO => {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            claimed => return Ok(claimed?),
        }
    }
}

async fn open(claim: Claim, config: &AgentConfig, signer: &Signer) -> Result<Opened, StartError> {
    let site = config.site.clone();
    let options = StoreOptions {
        audit_retention: config.audit.retention,
        audit_bytes: config.audit.size,
        vouch: voucher(config, signer),
        progress: told_in_the_log(),
        ..StoreOptions::default()
    };
    let incarnation = Incarnation::drawn(random()?).0;
    let opened = tokio::task::spawn_blocking(move || claim.open(&site, || incarnation, options));
    Ok(opened.await.map_err(io::Error::other).map_err(system("a thread"))??)
}

/// A site of a mesh answers for what it had before there were signatures, or before it had a key.
fn voucher(config: &AgentConfig, signer: &Signer) -> Voucher {
    let Some(key) = signer.0.clone() else { return Voucher::default() };
    let site = config.site.clone();
    Voucher::new(move |entries| key.answer_for(&site, entries))
}

/// Tells how far something has come that is done at a start, once a second and when it is done.
fn told_in_the_log() -> ProgressReporter {
    const EVERY: Duration = Duration::from_secs(1);
    let told = std::sync::Mutex::new(None::<(&'static str, Instant)>);
    ProgressReporter::new(move |far: Far| {
        let Far { doing, done, of } = far;
        let mut told = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_due = told.is_none_or(|(what, at)| what != doing || at.elapsed() > EVERY);
        if is_due || (done == of && of > 0) {
            *told = Some((doing, Instant::now()));
            tracing::info!(done, of, "{doing}");
        }
    })
}

fn peers(
    config: &AgentConfig,
    me: &Author,
    identity: Option<&Identity>,
    border: Option<Border>,
) -> Result<Peers, StartError> {
    let others = config.peers.iter().map(|peer| (peer.site.clone(), peer.address.to_string()));
    let mesh = config.mesh.as_ref().map(|mesh| mesh.listen).zip(identity);
    Ok(Peers::bind(me, random()?, mesh, border, others)?)
}

/// Whose word is let in. What this site itself signs is known from the start.
fn border(
    identity: Option<&Identity>,
    kept: &Arc<dyn Certificates>,
) -> Result<Option<Border>, StartError> {
    let Some(identity) = identity else { return Ok(None) };
    let unusable = |error: CertificateError| PeersError::Identity(error.to_string());
    let kept = Arc::new(KeptCertificates(kept.clone()));
    let border = Border::new(identity.keyring().map_err(unusable)?, kept);
    for own in identity.certificates() {
        border.learn(own).map_err(unusable)?;
    }
    Ok(Some(border))
}

/// Where the others are told to find this site.
fn advertised(config: &AgentConfig, bound: Option<SocketAddr>) -> Option<String> {
    let told = config.mesh.as_ref().and_then(|mesh| mesh.advertise.as_ref());
    told.map(ToString::to_string).or(bound.map(|address| address.to_string()))
}

fn driver(
    config: &AgentConfig,
    me: &Author,
    opened: Opened,
    actuators: Box<dyn Actuators>,
    signer: Signer,
) -> Result<(Driver, DriverThread), StartError> {
    let start = driver::DriverStart {
        settings: engine_settings(config, me.clone()),
        signer,
        records: opened.records,
        log: opened.log,
        actuators,
        data_dir: config.data_dir.clone(),
        keep_free: KEEP_FREE,
    };
    driver::start(start).map_err(system("a thread"))
}

fn replicas(config: &AgentConfig) -> IdDirectory {
    let prefix = |service: &ServiceConfig| {
        let prefix = service.upstream.path().trim_end_matches('/');
        (service.name.to_string(), prefix.to_owned())
    };
    IdDirectory::of(config.site.clone(), config.services.iter().map(prefix).collect())
}

/// What runs commands, once nothing runs any more of an earlier start.
fn executor(
    config: &AgentConfig,
    opened: &Opened,
    kept: KeptStates,
    services: Services,
    requests: RequestSettings,
) -> Result<Executor, StartError> {
    let run = RunToken::new(&config.data_dir).map_err(system("a token for commands"))?;
    let ended = end_leftovers(&run).map_err(system("a look at its processes"))?;
    if ended > 0 {
        tracing::warn!(ended, "commands of an earlier life of this agent were ended");
    }
    let (blobs, snapshots) = (opened.blobs.clone(), opened.snapshots.clone());
    let stored = SiteContent { blobs, snapshots, kept };
    Ok(Executor::new(ExecSettings { services, requests, ..exec_settings(config, run) }, stored)?)
}

/// Where the services of this site are, for whoever asks them.
fn services(config: &AgentConfig) -> Result<Services, ConnectorError> {
    let upstream = |service: &ServiceConfig| (service.name.to_string(), service.upstream.clone());
    Services::new(config.site.as_str(), config.services.iter().map(upstream))
}

/// What requests that are operations need to know of the services and of those that pass.
fn requests(config: &AgentConfig, replicas: &IdDirectory, memory: &Remembered) -> RequestSettings {
    let rules = |service: &ServiceConfig| {
        let rules = AnswerRules {
            naming: Naming::new(&service.id),
            says_already: SaysAlready {
                done: service.replication.already_done.clone(),
                gone: service.replication.already_gone.clone(),
            },
        };
        (service.name.to_string(), rules)
    };
    let trusting = config.services.iter().filter(|service| service.trust_correlation);
    let trusting: BTreeSet<_> = trusting.map(|service| service.name.to_string()).collect();
    let memory = memory.clone();
    RequestSettings {
        rules: config.services.iter().map(rules).collect(),
        replicas: replicas.clone(),
        mark: Arc::new(move |service, headers| memory.mark(headers, trusting.contains(service))),
        answer_limit: config.proxy.answer_limit,
    }
}

fn exec_settings(config: &AgentConfig, run: RunToken) -> ExecSettings {
    let scratch = config.data_dir.join("run");
    ExecSettings {
        time_limit: config.shell.time_limit,
        shows_at_once: config.shell.jobs_at_once,
        output_limit: config.shell.output_limit,
        alone: config.alone,
        programs: config.logic.clone(),
        shell_dir: config.shell.directory.clone(),
        ..ExecSettings::new(config.site.clone(), run, scratch)
    }
}

fn hook_settings(config: &WebhooksConfig, me: &Author) -> HookSettings {
    HookSettings {
        secret: config.secret.clone(),
        web_limit: config.time_limit,
        attempts: config.attempts,
        allow: config.allow.clone(),
        ..HookSettings::new(me.site.clone(), me.incarnation)
    }
}

fn engine_settings(config: &AgentConfig, me: Author) -> Settings {
    Settings {
        application: config.application,
        jobs_at_once: config.shell.jobs_at_once,
        verify_every_ms: u64::try_from(config.shell.verify_every.as_millis()).unwrap_or(u64::MAX),
        short_history_from: config.shell.short_history,
        ..Settings::new(me, config.peers.iter().map(|peer| peer.site.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_listen_is_told_what_may_be_wrong_with_the_address() {
        use io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
        let address = SocketAddr::from(([198, 51, 100, 7], 8078));
        for (kind, said) in [
            (AddrInUse, "is another agent running? `mesh.listen` names the address"),
            (
                AddrNotAvailable,
                "`mesh.listen` must be an address of this machine; `0.0.0.0` is all of them",
            ),
            (PermissionDenied, "`mesh.listen` names the address"),
        ] {
            let error = StartError::Peers(PeersError::Listen { address, source: kind.into() });
            assert_eq!(error.hint().as_deref(), Some(said));
        }
    }

    #[tokio::test]
    async fn an_agent_waits_for_what_a_killed_one_leaves_for_a_moment() {
        // Given a child of the earlier agent that is not its own
        // program yet: it holds what that agent had open.
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let claim = Claim::on(&data).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let text = format!(
            "site = \"paris\"\ndata_dir = \"data\"\n[api]\nlisten = \"{}\"\n",
            port.local_addr().unwrap()
        );
        let config = AgentConfig::parse(&text, &dir.path().join("agent.toml"), |_| None).unwrap();
        // When it lets go after the new agent has begun to look,
        let letting_go = async move { drop((claim, port)) };
        let (started, ()) = tokio::join!(Agent::start(config), letting_go);
        // then that one starts.
        started.unwrap().stop().await;
    }

    #[tokio::test]
    async fn an_agent_does_not_wait_for_another_that_is_at_work() {
        let dir = tempfile::tempdir().unwrap();
        let _at_work = Claim::on(dir.path()).unwrap();
        let claimed = claim(dir.path()).await;
        assert!(matches!(claimed, Err(StartError::Store(OpenError::InUse { .. }))), "{claimed:?}");
    }
}
