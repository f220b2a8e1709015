//! The `cheops` command: one file per verb in `verbs`, one way to the terminal in `output`, one
//! place where errors are printed in `failure`.

mod agent;
mod cli;
mod demo_socket;
mod dry_run;
mod failure;
mod following;
mod grid;
mod handing;
mod interrupt;
mod logging;
mod logic;
mod look;
mod matrix;
mod output;
mod parent;
mod relay;
mod shell;
mod text;
mod time;
mod verbs;

use std::process::ExitCode;

use clap::FromArgMatches;

use crate::cli::Cli;
use crate::output::VerbOutput;

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let matches = cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let mut output = VerbOutput::standard(cli.output);
    match cli.verb.run(&cli.target, &mut output) {
        Ok(verdict) => verdict.exit_code(),
        Err(failure) => failure.report(&mut output),
    }
}
