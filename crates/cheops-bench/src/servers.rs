//! Other people's servers: the service that proxies stand in front of, and the proxies that Cheops
//! stands beside. Each is one process that uses one processor, and ends with this.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::failure::{BenchFailure, cannot};

/// What the service answers.
pub(crate) const BODY: &str = "hello, this is a small answer of a service";
/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where only root looks by itself.
const ROOTS_PATH: &str = "/usr/sbin:/sbin";

/// The programs that the machine has to have.
pub(crate) struct Tools {
    pub(crate) wrk: PathBuf,
    nginx: PathBuf,
    haproxy: PathBuf,
}

impl Tools {
    pub(crate) fn find() -> Result<Self, BenchFailure> {
        let path = std::env::var("PATH").unwrap_or_default() + ":" + ROOTS_PATH;
        let mut missing = Vec::new();
        let mut find = |name: &'static str| {
            let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
            files.find(|file| file.is_file()).unwrap_or_else(|| {
                missing.push(name);
                PathBuf::new()
            })
        };
        let tools = Self { wrk: find("wrk"), nginx: find("nginx"), haproxy: find("haproxy") };
        if missing.is_empty() {
            return Ok(tools);
        }
        let missing = missing.join(", ");
        let hint = "`scripts/setup bench` installs it";
        Err(BenchFailure::new(format!("the part `proxy` needs {missing}, which is not here"), hint))
    }
}

/// All of them.
pub(crate) struct Servers {
    pub(crate) service: Server,
    pub(crate) nginx: Server,
    pub(crate) haproxy: Server,
    _dir: tempfile::TempDir,
}

impl Servers {
    /// Starts them, in a new folder in that one, and waits until each can be reached.
    pub(crate) async fn start(tools: &Tools, place: &Path) -> Result<Self, BenchFailure> {
        let dir = tempfile::Builder::new().prefix("cheops-bench-").tempdir_in(place);
        let dir = dir.map_err(cannot("make a folder"))?;
        let [service, nginx, haproxy] = addresses().map_err(cannot("find free ports"))?;
        let folder = |name: &str| dir.path().join(name);
        let answers = nginx_config(service, "", &format!("return 200 \"{BODY}\";"));
        let answers = Server::nginx(tools, folder("service"), service, &answers).await?;
        let passes_on = nginx_config(nginx, &nginx_pool(service), NGINX_PASSES_ON);
        Ok(Self {
            service: answers,
            nginx: Server::nginx(tools, folder("nginx"), nginx, &passes_on).await?,
            haproxy: Server::haproxy(tools, folder("haproxy"), haproxy, service).await?,
            _dir: dir,
        })
    }

    pub(crate) async fn end(mut self) -> Result<(), BenchFailure> {
        for server in [&mut self.nginx, &mut self.haproxy, &mut self.service] {
            server.process.kill().await.map_err(cannot("stop a server"))?;
        }
        Ok(())
    }
}

/// One of them.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    process: Child,
}

impl Server {
    async fn nginx(
        tools: &Tools,
        folder: PathBuf,
        address: SocketAddr,
        config: &str,
    ) -> Result<Self, BenchFailure> {
        let mut command = Command::new(&tools.nginx);
        command.arg("-p").arg(&folder).args(["-c", CONFIG]);
        Self::start(command, &folder, address, config).await
    }

    async fn haproxy(
        tools: &Tools,
        folder: PathBuf,
        address: SocketAddr,
        service: SocketAddr,
    ) -> Result<Self, BenchFailure> {
        let mut command = Command::new(&tools.haproxy);
        command.args(["-db", "-f", CONFIG]);
        Self::start(command, &folder, address, &haproxy_config(address, service)).await
    }

    async fn start(
        mut command: Command,
        folder: &Path,
        address: SocketAddr,
        config: &str,
    ) -> Result<Self, BenchFailure> {
        let log = folder.join("log");
        let prepared = fs::create_dir(folder)
            .and_then(|()| fs::write(folder.join(CONFIG), config))
            .and_then(|()| fs::File::create(&log));
        command.stderr(prepared.map_err(cannot("write a config"))?);
        command.current_dir(folder).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.spawn().map_err(cannot("start a server"))?;
        let mut server = Self { address, process };
        let reached = tokio::time::timeout(PATIENCE, server.is_reached()).await;
        if matches!(reached, Ok(true)) {
            return Ok(server);
        }
        let log = fs::read_to_string(log).unwrap_or_default();
        Err(BenchFailure::new(format!("a server does not start: `{command:?}`"), log.trim()))
    }

    /// Waits until it can be reached, or has ended.
    async fn is_reached(&mut self) -> bool {
        while TcpStream::connect(self.address).await.is_err() {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        true
    }

    pub(crate) fn pid(&self) -> Result<u32, BenchFailure> {
        self.process.id().ok_or_else(|| BenchFailure::new("a server", "it does not run"))
    }
}

/// The name of every config, in the folder of its server.
const CONFIG: &str = "config";

const NGINX_PASSES_ON: &str = "proxy_pass http://service; proxy_http_version 1.1; \
     proxy_set_header Connection \"\"; proxy_set_header Host $host;";

fn nginx_pool(service: SocketAddr) -> String {
    format!("upstream service {{ server {service}; keepalive 512; keepalive_requests 100000000; }}")
}

/// Without a master its only process does what one worker does, and none is left behind when it is
/// killed.
fn nginx_config(listen: SocketAddr, pool: &str, does: &str) -> String {
    format!(
        "daemon off;
master_process off;
pid pid;
error_log stderr;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 100000000;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  scgi_temp_path scgi;
  uwsgi_temp_path uwsgi;
  {pool}
  server {{
    listen {listen} backlog=4096;
    location / {{ {does} }}
  }}
}}
"
    )
}

fn haproxy_config(listen: SocketAddr, service: SocketAddr) -> String {
    format!(
        "global
  nbthread 1
  maxconn 2048
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option http-keep-alive
  http-reuse always
frontend clients
  bind {listen}
  default_backend services
backend services
  server service {service}
"
    )
}

/// Free addresses. They are held until all are found, so that none is found twice.
fn addresses() -> io::Result<[SocketAddr; 3]> {
    let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let held = [free()?, free()?, free()?];
    Ok([held[0].local_addr()?, held[1].local_addr()?, held[2].local_addr()?])
}
