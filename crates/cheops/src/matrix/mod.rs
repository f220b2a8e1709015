//! `cheops matrix`: resolution matrices, checked, spelled out and proven.

mod check;
mod document;
mod pairs;
mod profiles;
mod prove;
mod snippet;

use std::path::Path;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::failure::{Failure, Verdict};
use crate::output::VerbOutput;

const AFTER_HELP: &str = "\
Examples:
  cheops matrix check redis.json
  cheops matrix prove redis.json --target trial --samples samples.yaml
  cheops matrix profiles
  cheops matrix show redis > redis.json";

/// Check resolution matrices: what becomes of operations that meet
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: MatrixVerb,
}

#[derive(Debug, Subcommand)]
enum MatrixVerb {
    Check(check::Arguments),
    Prove(prove::Arguments),
    Profiles(profiles::ListArguments),
    Show(profiles::ShowArguments),
}

pub(crate) fn run(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    match &arguments.verb {
        MatrixVerb::Check(arguments) => check::run(arguments, output),
        MatrixVerb::Prove(arguments) => prove::run(arguments, output),
        MatrixVerb::Profiles(_) => profiles::list(output),
        MatrixVerb::Show(arguments) => profiles::show(arguments, output),
    }
}

/// The names of the built-in profiles, for other verbs' arguments.
pub(crate) fn profile_names() -> PossibleValuesParser {
    profiles::names()
}

/// The matrix in a file, about that target, fit to be sent. Problems are shown where they are.
pub(crate) fn config(
    path: &Path,
    target: Option<&str>,
    output: &mut VerbOutput,
) -> Result<serde_json::Value, Failure> {
    let config = check::usable(&document::read(path)?, target, output)?;
    serde_json::from_str(&config.to_json())
        .map_err(|error| Failure::ours("the matrix could not be written as JSON").because(error))
}
