//! `cheops up`: the first site of a mesh, from nothing to an agent that runs.

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use cheops_agent::config::{AgentConfig, HostPort, TemplateSettings};
use cheops_agent::mesh::{self, MeshError, durable};
use cheops_core::model::SiteId;
use clap::Args;

use super::agent;
use crate::failure::{Failure, Verdict};
use crate::look::{DIM, styled};
use crate::output::VerbOutput;

const AFTER_HELP: &str = "\
It makes a folder `mesh` with the mesh's authority, the identity NAME.pem and the config NAME.toml, and runs
the agent in the foreground. What is there already is kept: the same command starts the agent again. Keep
`mesh` to yourself: who has it can speak for any site.

Examples:
  cheops up paris
  cheops up paris --dir /srv/cheops --advertise paris.example
  cheops invite lyon                      # then, in another terminal, for the next site";

/// Start the first site of a new mesh
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The site's name
    #[arg(value_name = "NAME")]
    site: SiteId,
    #[command(flatten)]
    place: SitePlace,
}

/// Where a new site is.
#[derive(Debug, Args)]
pub(crate) struct SitePlace {
    /// The site's folder
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Where other sites find it [default: this machine's address, and the port of --listen]
    #[arg(long, value_name = "HOST[:PORT]")]
    advertise: Option<String>,
    /// Where it listens for other sites, by UDP
    #[arg(long, default_value = "0.0.0.0:8078", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// Where it listens for people and programs
    #[arg(long, default_value = "127.0.0.1:8079", value_name = "ADDRESS")]
    pub(crate) api: SocketAddr,
}

impl SitePlace {
    /// Where others are told to find it, if that was said or follows from where it listens.
    pub(crate) fn advertised(&self) -> Result<Option<HostPort>, Failure> {
        let Some(said) = &self.advertise else {
            let is_everywhere = self.listen.ip().is_unspecified();
            return Ok((!is_everywhere).then(|| self.listen.into()));
        };
        // A host alone has the port that the site listens at.
        let whole = said.parse().or_else(|why: String| {
            format!("{said}:{}", self.listen.port()).parse().map_err(|_| why)
        });
        whole.map(Some).map_err(|why| {
            Failure::caller(format!("`{said}` {why}")).hint(
                "`--advertise` takes a host, or a host and a port, such as paris.example:8078",
            )
        })
    }

    /// Fails if another site has that folder.
    pub(crate) fn check_free(&self) -> Result<(), Failure> {
        if !self.dir.join("cheops-data").exists() {
            return Ok(());
        }
        let dir = self.dir.display();
        Err(Failure::caller(format!("there is a site in `{dir}` already"))
            .hint("`--dir` names another folder for another site"))
    }

    /// Makes the folder.
    pub(crate) fn make(&self) -> Result<(), Failure> {
        std::fs::create_dir_all(&self.dir).map_err(|error| {
            Failure::caller(format!("`{}` could not be made", self.dir.display())).because(error)
        })
    }
}

/// Writes a config, which must not be there yet.
pub(crate) fn write_config(path: &Path, text: &str) -> Result<(), Failure> {
    durable::write_new(path, text.as_bytes(), 0o644).map_err(|error| {
        Failure::caller(format!("`{}` could not be written", path.display())).because(error)
    })
}

pub(crate) fn run(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let Arguments { site, place } = arguments;
    let config = place.dir.join(format!("{site}.toml"));
    if !config.exists() {
        begin(site, place, &config, output)?;
    }
    agent::run(&agent::Arguments::of(config), output)
}

/// Makes all that is not there yet; the config comes last, and stands for the rest.
fn begin(
    site: &SiteId,
    place: &SitePlace,
    config: &Path,
    output: &mut VerbOutput,
) -> Result<(), Failure> {
    let advertise = place.advertised()?.or_else(|| own_address(place.listen));
    place.check_free()?;
    place.make()?;
    let (mesh, identity) = (place.dir.join("mesh"), place.dir.join(format!("{site}.pem")));
    match mesh::create(&mesh) {
        Ok(()) | Err(MeshError::Exists(_)) => {}
        Err(error) => return Err(cannot(error)),
    }
    if !identity.exists() {
        mesh::issue_for(&mesh, site, &identity, Some(mesh::SERVES)).map_err(cannot)?;
    }
    let settings = TemplateSettings {
        remark: "The first site of its mesh, made by `cheops up`.".to_owned(),
        identity: format!("{site}.pem"),
        authority: Some("mesh".to_owned()),
        api: Some(place.api),
        listen: Some(place.listen),
        advertise,
        peers: Vec::new(),
    };
    write_config(config, &AgentConfig::template_with(site, &settings))?;
    let told = format!(
        "a mesh in `{}`, and the config of its first site in `{}`; in another terminal, for the next \
         one: cheops invite NAME",
        mesh.display(),
        config.display()
    );
    output.aside(styled(DIM, told));
    Ok(())
}

/// The address by which this machine reaches others, and so perhaps they it. Nothing is sent.
fn own_address(listen: SocketAddr) -> Option<HostPort> {
    let (from, far) = match listen {
        // Addresses for documentation: they are routed like any other.
        SocketAddr::V4(_) => ("0.0.0.0:0", "192.0.2.1:9"),
        SocketAddr::V6(_) => ("[::]:0", "[2001:db8::1]:9"),
    };
    let socket = UdpSocket::bind(from).ok()?;
    socket.connect(far).ok()?;
    let found = socket.local_addr().ok()?.ip();
    let is_ours = !found.is_unspecified() && !found.is_loopback();
    is_ours.then(|| SocketAddr::new(found, listen.port()).into())
}

fn cannot(error: MeshError) -> Failure {
    Failure::caller("the site cannot be made").because(error)
}
