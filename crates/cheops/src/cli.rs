//! What can be typed: the verbs, and what holds for all of them.

use clap::builder::Styles;
use clap::{Parser, Subcommand};

use crate::failure::{Failure, Verdict};
use crate::look;
use crate::output::{Format, Output};
use crate::verbs::{completions, demo, matrix, scope};

const AFTER_HELP: &str = "\
Examples:
  cheops demo
  cheops scope 'image: paris & lyon, compute: around(paris, 10ms)'
  cheops matrix check redis.json

Exit codes:
  0  fine
  1  what was looked at has problems
  2  the command cannot be carried out as given";

const STYLES: Styles = Styles::styled()
    .header(look::BOLD)
    .usage(look::BOLD)
    .literal(look::ACCENT)
    .placeholder(look::PLAIN)
    .valid(look::GOOD)
    .invalid(look::WARN)
    .error(look::BAD);

/// Spread an application over many sites, without changing it
///
/// Each site runs a whole instance of the application and one Cheops agent. Scopes say where
/// requests run; resolution matrices say what becomes of operations made at several sites at once.
#[derive(Debug, Parser)]
#[command(name = "cheops", version, styles = STYLES, after_help = AFTER_HELP)]
#[command(max_term_width = 100)]
pub(crate) struct Cli {
    /// How to print: for people or for programs
    #[arg(long, short, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    #[arg(display_order = 100)]
    pub(crate) output: Format,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// One per file in `verbs`.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Demo(demo::Arguments),
    Scope(scope::Arguments),
    Matrix(matrix::Arguments),
    Completions(completions::Arguments),
}

impl Verb {
    pub(crate) fn run(self, output: &mut Output) -> Result<Verdict, Failure> {
        match self {
            Self::Demo(arguments) => demo::run(&arguments, output),
            Self::Scope(arguments) => scope::run(&arguments, output),
            Self::Matrix(arguments) => matrix::run(&arguments, output),
            Self::Completions(arguments) => completions::run(&arguments, output),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
