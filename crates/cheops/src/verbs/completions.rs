//! `cheops completions`: what a shell needs to complete commands.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::{Failure, Verdict};
use crate::output::VerbOutput;

const AFTER_HELP: &str = "\
Examples:
  cheops completions bash > ~/.local/share/bash-completion/completions/cheops
  cheops completions zsh > ~/.zfunc/_cheops
  cheops completions fish > ~/.config/fish/completions/cheops.fish";

/// Print a shell's completion script
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// For the program whose commands these are.
pub(crate) fn run(
    arguments: &Arguments,
    mut program: Command,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "cheops", &mut script);
    output.line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Verdict::Fine)
}
