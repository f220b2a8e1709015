//! The `cheops` command: one file per verb in `verbs`, one way to the terminal in `output`, one
//! place where errors are printed in `failure`.

mod cli;
mod failure;
mod look;
mod output;
mod text;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::output::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut output = Output::standard(cli.output);
    match cli.verb.run(&mut output) {
        Ok(verdict) => verdict.exit_code(),
        Err(failure) => failure.report(&mut output),
    }
}
