//! `cheops init`: a config file to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use cheops_agent::config::AgentConfig;
use cheops_core::model::SiteId;
use clap::Args;

use crate::failure::{Failure, Verdict};
use crate::output::{Format, VerbOutput};

const AFTER_HELP: &str = "\
Examples:
  cheops init --site paris --identity paris.pem
  cheops init --site lyon --out /etc/cheops/lyon.toml";

/// Write a commented config file for a site
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The site's name
    #[arg(long, value_name = "NAME")]
    site: SiteId,
    /// The file from `cheops mesh issue` [default: NAME.pem]
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Where to write it [default: NAME.toml]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let out = arguments.out.clone().unwrap_or_else(|| format!("{}.toml", arguments.site).into());
    let text = AgentConfig::template(&arguments.site, arguments.identity.as_deref());
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&out)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let exists = error.kind() == ErrorKind::AlreadyExists;
        let failure =
            Failure::caller(format!("`{}` could not be written", out.display())).because(error);
        match exists {
            true => failure.hint("nothing is overwritten; `--out` names another file"),
            false => failure,
        }
    })?;
    match output.format {
        Format::Json => output.json(&serde_json::json!({ "config": out }))?,
        Format::Table => output.line(format!(
            "`{0}`; name the other sites and the services in it, then: cheops agent --config {0}",
            out.display()
        ))?,
    }
    Ok(Verdict::Fine)
}
