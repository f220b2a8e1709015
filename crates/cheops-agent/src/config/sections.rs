//! Which settings there are, their defaults, and what must hold between them.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use cheops_core::engine::Application;
use cheops_core::model::SiteId;
use cheops_proxy::config::{ProxyConfig, ServiceConfig};
use cheops_scope::ServiceName;
use http::Uri;
use toml::Spanned;
use toml::de::DeTable;

use super::api::AN_ADDRESS;
use super::problem::SettingPlace;
use super::reader::{ConfigReader, ConfigTable};
use super::values::{self, A_SIZE, A_TIME, A_TIME_OR_NONE, AN_UPSTREAM, HostPort, parsed};
use super::{
    AgentConfig, AuditConfig, LogConfig, LogFormat, MeshConfig, PeerConfig, ShellConfig,
    TelemetryConfig,
};

const A_SITE: &str = "a name such as `paris` or `site1`";
const A_HOST: &str = "a host and a port, such as `10.0.0.2:8078` or `paris.example:8078`";
const A_HOST_NAME: &str = "a host such as `image.example` or `image.example:19292`";
const AN_ORIGIN: &str = "an origin such as `https://ui.example`";
const A_COLLECTOR: &str = "an address such as `http://127.0.0.1:4318`";
const MOST_JOBS: usize = 4096;
const MOST_OUTPUT: usize = 4 * 1024 * 1024;

/// Where something listens, and where that was said.
type Listens = Vec<(SocketAddr, String, SettingPlace)>;

/// Reads the whole file.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a Spanned<DeTable<'a>>,
) -> Option<AgentConfig> {
    let mut root = reader.root(root);
    let site = reader.required(&mut root, "site", A_SITE, parsed::<SiteId>).map(|(site, _)| site);
    let data_dir = reader.path(&mut root, "data_dir");
    let data_dir = data_dir.unwrap_or_else(|| beside(reader.file, "cheops-data"));
    let states = [("may-hold-state", Application::MayHoldState), ("empty", Application::Empty)];
    let application = reader.word(&mut root, "application", &states);
    let mut listens = Listens::new();
    let (api, place) = super::api::read(reader, &mut root, &data_dir);
    listens.push((api.listen, "api.listen".to_owned(), place));
    let mesh = mesh(reader, &mut root);
    let peers = peers(reader, &mut root, site.as_ref(), mesh.is_some());
    let services = services(reader, &mut root, &mut listens);
    clashes(reader, &listens);
    let proxy = proxy(reader, &mut root);
    let shell = shell(reader, &mut root);
    let logic = super::logic::read(reader, &mut root);
    let audit = audit(reader, &mut root);
    let log = log(reader, &mut root);
    let telemetry = telemetry(reader, &mut root);
    let (hooks, webhooks) = super::hooks::read(reader, &mut root);
    reader.end(&root);
    Some(AgentConfig {
        site: site?,
        data_dir,
        application: application.unwrap_or(Application::MayHoldState),
        api,
        mesh: mesh.flatten(),
        peers,
        services,
        proxy,
        shell,
        logic,
        audit,
        log,
        telemetry,
        hooks,
        webhooks,
        demo: None,
        alone: false,
    })
}

fn beside(file: &Path, name: &str) -> std::path::PathBuf {
    file.parent().map_or_else(|| name.into(), |folder| folder.join(name))
}

/// Whether there is one, and it, unless something is wrong with it.
fn mesh<'a>(
    reader: &mut ConfigReader<'a>,
    root: &mut ConfigTable<'a>,
) -> Option<Option<MeshConfig>> {
    let mut table = reader.table(root, "mesh");
    let listen = reader.value(&mut table, "listen", AN_ADDRESS, parsed);
    let advertise = reader.value(&mut table, "advertise", A_HOST, str::parse::<HostPort>);
    let identity = reader.path(&mut table, "identity");
    reader.end(&table);
    let said = table.is_there() || listen.is_some() || advertise.is_some() || identity.is_some();
    if !said {
        return None;
    }
    if identity.is_none() {
        let message = "is missing; expected the file that `cheops mesh issue` wrote for this site";
        reader.report(&table.place, "mesh.identity", message);
    }
    let default = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8078));
    Some(identity.map(|identity| MeshConfig {
        listen: listen.map_or(default, |(listen, _)| listen),
        advertise: advertise.map(|(advertise, _)| advertise),
        identity,
    }))
}

fn peers<'a>(
    reader: &mut ConfigReader<'a>,
    root: &mut ConfigTable<'a>,
    me: Option<&SiteId>,
    has_mesh: bool,
) -> Vec<PeerConfig> {
    let mut peers = Vec::new();
    let mut sites: BTreeMap<SiteId, String> = BTreeMap::new();
    let mut addresses: BTreeMap<HostPort, String> = BTreeMap::new();
    for mut table in reader.tables(root, "peers") {
        let site = reader.required(&mut table, "site", A_SITE, parsed::<SiteId>);
        let address = reader.required(&mut table, "address", A_HOST, str::parse::<HostPort>);
        reader.end(&table);
        if let Some((site, place)) = &site {
            let key = table.path_of("site");
            if Some(site) == me {
                reader.report(place, &key, format!("`{site}` is this site; list only the others"));
            } else if let Some(first) = sites.get(site) {
                reader.report(place, &key, format!("`{site}` is listed already, as `{first}`"));
            }
            sites.entry(site.clone()).or_insert(key);
        }
        if let Some((address, place)) = &address {
            let key = table.path_of("address");
            if let Some(first) = addresses.get(address) {
                let message = format!("`{address}` is the address of another peer, `{first}`");
                reader.report(place, &key, message);
            }
            addresses.entry(address.clone()).or_insert(key);
        }
        if let (Some((site, _)), Some((address, _))) = (site, address) {
            peers.push(PeerConfig { site, address });
        }
    }
    if !peers.is_empty() && !has_mesh {
        let message = "is missing, but there are peers; expected `[mesh]` with an `identity`";
        reader.report(&SettingPlace::File, "mesh", message);
    }
    peers
}

fn services<'a>(
    reader: &mut ConfigReader<'a>,
    root: &mut ConfigTable<'a>,
    listens: &mut Listens,
) -> Vec<ServiceConfig> {
    const A_NAME: &str = "a name such as `image`";
    let mut services = Vec::new();
    let mut names: BTreeMap<ServiceName, String> = BTreeMap::new();
    let mut upstreams: Vec<(Uri, String, SettingPlace)> = Vec::new();
    for mut table in reader.tables(root, "services") {
        let name = reader.required(&mut table, "name", A_NAME, parsed::<ServiceName>);
        let listen = reader.value(&mut table, "listen", AN_ADDRESS, parsed::<SocketAddr>);
        let upstream = reader.required(&mut table, "upstream", AN_UPSTREAM, values::upstream);
        let offer = reader.flag(&mut table, "offer");
        let hosts = reader.one_or_more(&mut table, "hosts", A_HOST_NAME, str::parse);
        let origins = reader.one_or_more(&mut table, "origins", AN_ORIGIN, values::origin);
        let trust_correlation = reader.flag(&mut table, "trust_correlation");
        let (id, cross) = super::cross::read(reader, &mut table);
        let replication = super::replication::read(reader, &mut table);
        reader.end(&table);
        if let Some((name, place)) = &name {
            let key = table.path_of("name");
            if let Some(first) = names.get(name) {
                reader.report(place, &key, format!("`{name}` is listed already, as `{first}`"));
            }
            names.entry(name.clone()).or_insert(key);
        }
        let listen = listen.map(|(listen, place)| {
            listens.push((listen, table.path_of("listen"), place));
            listen
        });
        if let (Some((name, _)), Some((upstream, place))) = (name, upstream) {
            upstreams.push((upstream.clone(), table.path_of("upstream"), place));
            services.push(ServiceConfig {
                name,
                listen,
                upstream,
                offer: offer.unwrap_or(listen.is_some()),
                hosts: hosts.unwrap_or_default(),
                origins: origins.unwrap_or_default(),
                trust_correlation: trust_correlation.unwrap_or(false),
                id,
                replication,
                cross,
            });
        }
    }
    for (upstream, key, place) in upstreams {
        let ours = listens.iter().find(|(listen, ..)| leads_to(&upstream, *listen));
        if let Some((_, own, _)) = ours {
            let message = format!(
                "`{upstream}` is where this agent listens itself, by `{own}`; expected the \
                 service's own address"
            );
            reader.report(&place, &key, message);
        }
    }
    services
}

fn leads_to(upstream: &Uri, listen: SocketAddr) -> bool {
    let host = upstream.host().unwrap_or_default();
    let host = if host == "localhost" { "127.0.0.1" } else { host };
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse();
    upstream.port_u16() == Some(listen.port())
        && ip.is_ok_and(|ip| ip == listen.ip() || (listen.ip().is_unspecified() && is_own(ip)))
}

fn is_own(ip: std::net::IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified()
}

/// The mesh listens by UDP, and so is in nobody's way.
fn clashes(reader: &mut ConfigReader<'_>, listens: &Listens) {
    for (i, (listen, key, place)) in listens.iter().enumerate() {
        let other = listens[..i].iter().find(|(other, ..)| values::clash(*listen, *other));
        if let Some((_, other, _)) = other {
            let message = format!("`{listen}` is taken by `{other}`; expected a port of its own");
            reader.report(place, key, message);
        }
    }
}

fn proxy<'a>(reader: &mut ConfigReader<'a>, root: &mut ConfigTable<'a>) -> ProxyConfig {
    let mut table = reader.table(root, "proxy");
    let answer_limit = reader.value(&mut table, "answer_limit", A_TIME, values::duration);
    let remember = reader.value(&mut table, "remember", A_TIME, values::duration);
    let a_header = "a header such as `X-Correlation-ID`";
    let headers =
        reader.one_or_more(&mut table, "correlation_headers", a_header, values::correlation);
    let unsigned_ids = reader.flag(&mut table, "unsigned_cross_ids");
    reader.end(&table);
    ProxyConfig {
        answer_limit: answer_limit.map_or(Duration::from_secs(5 * 60), |(limit, _)| limit),
        remember: remember.map_or(Duration::from_secs(15 * 60), |(time, _)| time),
        correlation_headers: headers.unwrap_or_default(),
        unsigned_cross_ids: unsigned_ids.unwrap_or(false),
    }
}

/// More operations than any resource has: for who wants to keep all.
const MOST_OPERATIONS: usize = 1_000_000_000;

fn shell<'a>(reader: &mut ConfigReader<'a>, root: &mut ConfigTable<'a>) -> ShellConfig {
    let mut table = reader.table(root, "shell");
    let output = |text: &str| match values::size(text)? {
        bytes if bytes > MOST_OUTPUT => Err(format!("is more than {MOST_OUTPUT} bytes")),
        bytes => Ok(bytes),
    };
    let a_count = format!("a number from 1 to {MOST_JOBS}");
    let time_limit = reader.value(&mut table, "time_limit", A_TIME, values::duration);
    let output_limit = reader.value(&mut table, "output_limit", A_SIZE, output);
    let jobs = reader.value(&mut table, "jobs_at_once", &a_count, values::count(MOST_JOBS));
    let directory = reader.path(&mut table, "directory");
    let verify_every = reader.value(&mut table, "verify_every", A_TIME, values::duration);
    let operations = format!("a number from 1 to {MOST_OPERATIONS}");
    let short_history =
        reader.value(&mut table, "short_history", &operations, values::count(MOST_OPERATIONS));
    reader.end(&table);
    ShellConfig {
        time_limit: time_limit.map_or(Duration::from_secs(60), |(limit, _)| limit),
        output_limit: output_limit.map_or(64 * 1024, |(limit, _)| limit),
        jobs_at_once: jobs.map_or(64, |(jobs, _)| jobs),
        directory,
        verify_every: verify_every.map_or(Duration::from_secs(10 * 60), |(every, _)| every),
        short_history: short_history.map_or(1_000, |(operations, _)| operations),
    }
}

fn audit<'a>(reader: &mut ConfigReader<'a>, root: &mut ConfigTable<'a>) -> AuditConfig {
    let mut table = reader.table(root, "audit");
    let retention = reader.value(&mut table, "retention", A_TIME_OR_NONE, values::retention);
    let size = reader.value(&mut table, "size", A_SIZE, values::size);
    reader.end(&table);
    const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);
    AuditConfig {
        retention: retention.map_or(WEEK, |(retention, _)| retention),
        size: size.map_or(1 << 30, |(size, _)| size as u64),
    }
}

fn log<'a>(reader: &mut ConfigReader<'a>, root: &mut ConfigTable<'a>) -> LogConfig {
    use tracing::Level;
    let levels = [
        ("error", Level::ERROR),
        ("warn", Level::WARN),
        ("info", Level::INFO),
        ("debug", Level::DEBUG),
        ("trace", Level::TRACE),
    ];
    let formats = [("text", LogFormat::Text), ("json", LogFormat::Json)];
    let mut table = reader.table(root, "log");
    let level = reader.word(&mut table, "level", &levels).unwrap_or(Level::INFO);
    let format = reader.word(&mut table, "format", &formats).unwrap_or(LogFormat::Text);
    reader.end(&table);
    LogConfig { level, format }
}

fn telemetry<'a>(reader: &mut ConfigReader<'a>, root: &mut ConfigTable<'a>) -> TelemetryConfig {
    let mut table = reader.table(root, "telemetry");
    let otlp = reader.value(&mut table, "otlp", A_COLLECTOR, values::upstream);
    reader.end(&table);
    if let Some((_, place)) = &otlp
        && !cfg!(feature = "otlp")
    {
        let message = "needs a program that was built with `--features otlp`, and this one was not";
        reader.report(place, &table.path_of("otlp"), message);
    }
    TelemetryConfig { otlp: otlp.map(|(collector, _)| collector) }
}
