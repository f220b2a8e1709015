//! `cheops matrix`: resolution matrices, checked and spelled out.

mod check;
mod document;
mod pairs;
mod profiles;
mod snippet;

use clap::{Args, Subcommand};

use crate::failure::{Failure, Verdict};
use crate::output::Output;

const AFTER_HELP: &str = "\
Examples:
  cheops matrix check redis.json
  cheops matrix profiles
  cheops matrix show redis > redis.json";

/// Check resolution matrices: what becomes of operations that meet
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Check(check::Arguments),
    Profiles(profiles::ListArguments),
    Show(profiles::ShowArguments),
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Verdict, Failure> {
    match &arguments.verb {
        Verb::Check(arguments) => check::run(arguments, output),
        Verb::Profiles(_) => profiles::list(output),
        Verb::Show(arguments) => profiles::show(arguments, output),
    }
}
