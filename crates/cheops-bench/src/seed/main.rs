//! Folders of three sites that share many resources, in all the states there are, for whoever wants
//! to see how agents and their pages do with them.
//!
//! Nothing is made up: three engines hand operations in, run them (in name only), talk to each
//! other and write their logs, as agents do; only without the network, and in a clock that is not
//! waited for. `mesh` is the three of them, `resources` says what happens to what.

mod mesh;
mod resources;

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use cheops_agent::mesh as identities;
use cheops_core::model::SiteId;
use clap::Parser;

use crate::mesh::{Mesh, SITES};

/// Write the folders of three sites that share many resources
///
/// Then `cheops agent --config DIRECTORY/site1/agent.toml` is a site with all of them.
#[derive(Debug, Parser)]
#[command(name = "cheops-seed", version, max_term_width = 100)]
struct SeedCli {
    /// Where to; a folder that is not there yet
    directory: PathBuf,
    /// How many resources
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    resources: u64,
    /// Where the API of the first site is to be; those of the others follow
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..=65_533))]
    port: Option<u16>,
}

/// What could not be done, and why.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {because}")]
struct SeedFailure {
    what: &'static str,
    because: String,
}

fn cannot<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> SeedFailure {
    move |error| SeedFailure { what, because: error.to_string() }
}

fn main() -> ExitCode {
    let told = match seed(&SeedCli::parse()) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    // The exit code says it too.
    let _unheard = writeln!(std::io::stderr(), "error: {told}");
    ExitCode::FAILURE
}

fn seed(cli: &SeedCli) -> Result<(), SeedFailure> {
    let began = Instant::now();
    std::fs::create_dir(&cli.directory).map_err(cannot("make the folder"))?;
    let folders = folders(&cli.directory, cli.port)?;
    let mut mesh = Mesh::new(&folders)?;
    resources::make(&mut mesh, cli.resources)?;
    drop(mesh);
    let (count, took) = (cli.resources, began.elapsed().as_secs_f64());
    let mut out = std::io::stdout().lock();
    let told = writeln!(out, "{count} resources in {took:.1} s").and_then(|()| {
        let mut configs = folders.iter().map(|(_, folder)| folder.join("agent.toml"));
        configs.try_for_each(|file| writeln!(out, "cheops agent --config {}", file.display()))
    });
    told.map_err(cannot("print"))
}

/// A folder for each site, with all that an agent needs but its log.
fn folders(directory: &Path, port: Option<u16>) -> Result<Vec<(SiteId, PathBuf)>, SeedFailure> {
    let authority = directory.join("mesh");
    identities::create(&authority).map_err(cannot("make a mesh"))?;
    let (apis, links) = addresses(port).map_err(cannot("find free ports"))?;
    let names: Result<Vec<_>, _> = (1..=SITES).map(|n| SiteId::new(&format!("site{n}"))).collect();
    let names = names.map_err(cannot("name a site"))?;
    let mut folders = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let folder = directory.join(name.as_str());
        std::fs::create_dir(&folder).map_err(cannot("make a folder"))?;
        identities::issue(&authority, name, &folder.join("identity.pem"))
            .map_err(cannot("issue an identity"))?;
        let mut text = format!(
            "site = \"{name}\"\ndata_dir = \"data\"\n\n[api]\nlisten = \"{}\"\nauth = \"none\"\n\n\
             [mesh]\nlisten = \"{}\"\nidentity = \"identity.pem\"\n",
            apis[at], links[at]
        );
        for (other, address) in names.iter().zip(&links).filter(|(other, _)| *other != name) {
            // Writing into a text cannot fail.
            let _infallible =
                write!(text, "\n[[peers]]\nsite = \"{other}\"\naddress = \"{address}\"\n");
        }
        std::fs::write(folder.join("agent.toml"), text).map_err(cannot("write a config"))?;
        folders.push((name.clone(), folder));
    }
    Ok(folders)
}

/// Where the sites' APIs and their ends of the links are. Held until all are found, so that none is
/// found twice.
fn addresses(port: Option<u16>) -> std::io::Result<(Vec<SocketAddr>, Vec<SocketAddr>)> {
    let free: Vec<_> = (0..SITES)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<_, _>>()?;
    let links: Vec<_> =
        (0..SITES).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>()?;
    let apis = match port {
        Some(first) => {
            (first..=u16::MAX).take(SITES).map(|port| (Ipv4Addr::LOCALHOST, port).into()).collect()
        }
        None => free.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?,
    };
    Ok((apis, links.iter().map(UdpSocket::local_addr).collect::<Result<_, _>>()?))
}
