//! `cheops mesh`: who may speak for a site.

use std::path::PathBuf;

use cheops_agent::mesh::{self, MeshError};
use cheops_core::model::SiteId;
use clap::{Args, Subcommand};

use crate::failure::{Failure, Verdict};
use crate::output::{Format, VerbOutput};

const AFTER_HELP: &str = "\
Examples:
  cheops mesh new --dir mesh
  cheops mesh issue paris --dir mesh
  cheops mesh issue lyon --dir mesh --out /media/usb/lyon.pem";

/// Make a mesh and the identities of its sites; works offline
///
/// A mesh has an authority of its own, which is a folder. Each site gets one file from it, with its
/// certificate, its key and the authority's certificate. Keep the folder away from the sites: who
/// has it can speak for any of them.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: MeshVerb,
}

#[derive(Debug, Subcommand)]
enum MeshVerb {
    /// Make a new mesh: its authority, in a folder
    New {
        /// The folder
        #[arg(long, default_value = "mesh", value_name = "DIR")]
        dir: PathBuf,
    },
    /// Make the one file that a site needs
    Issue {
        /// The site's name
        site: SiteId,
        /// The mesh's folder
        #[arg(long, default_value = "mesh", value_name = "DIR")]
        dir: PathBuf,
        /// Where to write it [default: SITE.pem]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

pub(crate) fn run(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    match &arguments.what {
        MeshVerb::New { dir } => {
            mesh::create(dir).map_err(explained)?;
            let made = serde_json::json!({ "mesh": dir });
            let told = format!(
                "a mesh in `{0}`; next, for each site: cheops mesh issue SITE --dir {0}",
                dir.display()
            );
            say(output, &made, &told)
        }
        MeshVerb::Issue { site, dir, out } => {
            let out = out.clone().unwrap_or_else(|| format!("{site}.pem").into());
            mesh::issue(dir, site, &out).map_err(explained)?;
            let made = serde_json::json!({ "site": site, "identity": out });
            let told = format!(
                "the identity of {site} in `{0}`; carry it there, keep it secret, then: \
                 cheops init --site {site} --identity {0}",
                out.display()
            );
            say(output, &made, &told)
        }
    }
}

fn say(output: &mut VerbOutput, made: &serde_json::Value, told: &str) -> Result<Verdict, Failure> {
    match output.format {
        Format::Json => output.json(made)?,
        Format::Table => output.line(told)?,
    }
    Ok(Verdict::Fine)
}

fn explained(error: MeshError) -> Failure {
    let hint = match &error {
        MeshError::Exists(_) => Some("its authority is kept: use another folder for another mesh"),
        MeshError::NoMesh { .. } => Some("`cheops mesh new --dir DIR` makes one"),
        MeshError::File { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists => {
            Some("nothing is overwritten; choose another file, or remove this one")
        }
        _ => None,
    };
    let failure = Failure::caller("that is not possible").because(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
