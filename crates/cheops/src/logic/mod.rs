//! `cheops logic`: programs that decide about operations made concurrently.

mod cases;
mod check;
mod runner;
mod told;

use clap::{Args, Subcommand};

use crate::failure::{Failure, Verdict};
use crate::output::VerbOutput;

const AFTER_HELP: &str = "\
Examples:
  cheops logic check 'python3 shopping.py' cases.json
  cheops logic check ./shopping.py cases.json";

/// Check programs that decide about operations made concurrently
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: LogicVerb,
}

#[derive(Debug, Subcommand)]
enum LogicVerb {
    Check(check::Arguments),
}

pub(crate) fn run(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    match &arguments.verb {
        LogicVerb::Check(arguments) => check::run(arguments, output),
    }
}
