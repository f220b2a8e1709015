//! What can be typed: the verbs, and what holds for all of them.

use clap::builder::Styles;
use clap::{CommandFactory, Parser, Subcommand};

use crate::agent::AgentTarget;
use crate::failure::{Failure, Verdict};
use crate::look;
use crate::matrix;
use crate::output::{Format, VerbOutput};
use crate::verbs::{
    agent, backup, completions, delete, demo, diff, dismiss, exec, explain, http, init, mesh, open,
    resource, resources, retry, sample, scope, settle, show, sites, status, watch, with,
};

const AFTER_HELP: &str = "\
Examples:
  cheops demo
  cheops exec --id counter --sites 'paris & lyon' --type set --profile redis -- redis-cli set x 29
  cheops show --id counter -- redis-cli get x
  cheops explain counter
  cheops with --scope 'image: lyon' -- curl http://127.0.0.1:19292/v2/images
  cheops scope 'image: paris & lyon, compute: around(paris, 10ms)'
  cheops matrix check redis.json

Exit codes:
  0  fine: what was asked happened at every site waited for
  1  a site failed, or what was looked at has problems
  2  the command cannot be carried out as given
  3  an agent is out of reach, or a site did not answer in time";

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
    #[command(flatten)]
    pub(crate) target: AgentTarget,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// One per file in `verbs`.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Demo(demo::Arguments),
    Agent(agent::Arguments),
    Mesh(mesh::Arguments),
    Init(init::Arguments),
    Status(status::Arguments),
    Exec(exec::Arguments),
    Http(http::Arguments),
    With(with::Arguments),
    Show(show::Arguments),
    Diff(diff::Arguments),
    Resources(resources::Arguments),
    Resource(resource::Arguments),
    Explain(explain::Arguments),
    Watch(watch::Arguments),
    Sites(sites::Arguments),
    Open(open::Arguments),
    Delete(delete::Arguments),
    Settle(settle::Arguments),
    Retry(retry::Arguments),
    Dismiss(dismiss::Arguments),
    Backup(backup::Arguments),
    Scope(scope::Arguments),
    Matrix(matrix::Arguments),
    Completions(completions::Arguments),
    #[command(hide = true)]
    Sample(sample::Arguments),
}

impl Verb {
    pub(crate) fn run(
        self,
        agent: &AgentTarget,
        output: &mut VerbOutput,
    ) -> Result<Verdict, Failure> {
        match self {
            Self::Demo(arguments) => demo::run(&arguments, output),
            Self::Agent(arguments) => agent::run(&arguments, output),
            Self::Mesh(arguments) => mesh::run(&arguments, output),
            Self::Init(arguments) => init::run(&arguments, output),
            Self::Sample(arguments) => sample::run(&arguments, output),
            Self::Status(arguments) => status::run(&arguments, agent, output),
            Self::Exec(arguments) => exec::run(&arguments, agent, output),
            Self::Http(arguments) => http::run(&arguments, agent, output),
            Self::With(arguments) => with::run(&arguments, output),
            Self::Show(arguments) => show::run(&arguments, agent, output),
            Self::Diff(arguments) => diff::run(&arguments, agent, output),
            Self::Resources(arguments) => resources::run(&arguments, agent, output),
            Self::Resource(arguments) => resource::run(&arguments, agent, output),
            Self::Explain(arguments) => explain::run(&arguments, agent, output),
            Self::Watch(arguments) => watch::run(&arguments, agent, output),
            Self::Sites(arguments) => sites::run(&arguments, agent, output),
            Self::Open(arguments) => open::run(&arguments, agent, output),
            Self::Delete(arguments) => delete::run(&arguments, agent, output),
            Self::Settle(arguments) => settle::run(&arguments, agent, output),
            Self::Retry(arguments) => retry::run(&arguments, agent, output),
            Self::Dismiss(arguments) => dismiss::run(&arguments, agent, output),
            Self::Backup(arguments) => backup::run(&arguments, agent, output),
            Self::Scope(arguments) => scope::run(&arguments, output),
            Self::Matrix(arguments) => matrix::run(&arguments, output),
            Self::Completions(arguments) => completions::run(&arguments, Cli::command(), output),
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
