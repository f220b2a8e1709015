//! What can be typed: the verbs, and what holds for all of them.

use clap::builder::Styles;
use clap::{Arg, Command, CommandFactory, Parser, Subcommand};

use crate::agent::AgentTarget;
use crate::failure::{Failure, Verdict};
use crate::logic;
use crate::look;
use crate::matrix;
use crate::output::{Format, VerbOutput};
use crate::verbs::{
    agent, backup, completions, delete, demo, diff, dismiss, exec, explain, history, http, init,
    mesh, open, operation, resource, resources, retry, sample, scope, settle, show, sites, status,
    undo, watch, with,
};

const AFTER_HELP: &str = "\
Examples:
  cheops demo
  cheops exec --id counter --sites 'paris & lyon' --type set --profile redis \\
      -- redis-cli set x 29
  cheops show --id counter -- redis-cli get x
  cheops explain counter
  cheops with --scope 'image: lyon' -- curl http://127.0.0.1:19292/v2/images
  cheops scope 'image: paris & lyon, compute: around(paris, 10ms)'
  cheops matrix check redis.json

Exit codes:
  0  fine: what was asked happened at every site waited for
  1  a site failed, or what was looked at has problems
  2  the command cannot be carried out as given
  3  an agent is out of reach, or a site did not answer in time
  130  stopped by Ctrl-C; what was accepted goes on";

/// Where the options are told that every verb takes.
const COMMON: &str = "Options that all commands take (--output, --agent, …): cheops --help";

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
    History(history::Arguments),
    Operation(operation::Arguments),
    Watch(watch::Arguments),
    Sites(sites::Arguments),
    Open(open::Arguments),
    Delete(delete::Arguments),
    Settle(settle::Arguments),
    Retry(retry::Arguments),
    Dismiss(dismiss::Arguments),
    Undo(undo::Arguments),
    Backup(backup::Arguments),
    Scope(scope::Arguments),
    Matrix(matrix::Arguments),
    Logic(logic::Arguments),
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
            Self::History(arguments) => history::run(&arguments, agent, output),
            Self::Operation(arguments) => operation::run(&arguments, agent, output),
            Self::Watch(arguments) => watch::run(&arguments, agent, output),
            Self::Sites(arguments) => sites::run(&arguments, agent, output),
            Self::Open(arguments) => open::run(&arguments, agent, output),
            Self::Delete(arguments) => delete::run(&arguments, agent, output),
            Self::Settle(arguments) => settle::run(&arguments, agent, output),
            Self::Retry(arguments) => retry::run(&arguments, agent, output),
            Self::Dismiss(arguments) => dismiss::run(&arguments, agent, output),
            Self::Undo(arguments) => undo::run(&arguments, agent, output),
            Self::Backup(arguments) => backup::run(&arguments, agent, output),
            Self::Scope(arguments) => scope::run(&arguments, agent, output),
            Self::Matrix(arguments) => matrix::run(&arguments, output),
            Self::Logic(arguments) => logic::run(&arguments, output),
            Self::Completions(arguments) => completions::run(&arguments, Cli::command(), output),
        }
    }
}

/// The command line as people see it: what all verbs take is told once, and what is said after the
/// options is wrapped to the terminal.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    let common: Vec<Arg> =
        command.get_arguments().filter(|it| it.is_global_set()).cloned().collect();
    reflowed(command).mut_subcommands(|verb| with_common_hidden(verb, &common))
}

fn with_common_hidden(verb: Command, common: &[Arg]) -> Command {
    let verb = reflowed(verb).args(common.iter().map(|argument| argument.clone().hide(true)));
    let told = verb.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    let verb = verb.after_help(format!("{told}{COMMON}"));
    verb.mut_subcommands(|verb| with_common_hidden(verb, common))
}

fn reflowed(command: Command) -> Command {
    match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(unbroken(&text)),
        None => command,
    }
}

/// The text with each paragraph on one line, for whoever breaks it. What is indented stays as it is.
fn unbroken(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
        match lines.last_mut() {
            Some(last) if is_prose(last) && is_prose(line) => {
                last.push(' ');
                last.push_str(line);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        command().debug_assert();
    }

    #[test]
    fn prose_is_one_line_and_what_is_indented_stays() {
        let text = "One\ntwo.\n\nExamples:\n  a\n  b\n\nThree\nfour.";
        assert_eq!(unbroken(text), "One two.\n\nExamples:\n  a\n  b\n\nThree four.");
    }
}
