//! What all verbs that submit operations take, checked before anything is sent.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use cheops_api::{Action, DryRun, Submit, Upload, Wait};
use cheops_core::model::{OperationType, ResourceId};
use cheops_scope::Look;
use clap::builder::{EnumValueParser, TypedValueParser};
use clap::{Args, ValueEnum};

use crate::agent::{self, AgentTarget};
use crate::dry_run;
use crate::failure::{Failure, Verdict};
use crate::following::follow;
use crate::interrupt::EndSignals;
use crate::look::{DIM, styled};
use crate::matrix;
use crate::output::{Format, VerbOutput};
use crate::shell::joined;
use crate::time::duration;

/// Whose replies to wait for, and how long.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct WaitSettings {
    /// Whose replies to wait for: every site's, the agent's own site's, or nobody's
    #[arg(long, value_name = "WHOM", default_value = "all", value_parser = waits())]
    pub(crate) wait: Wait,
    /// How long to wait; the work goes on after that
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: Duration,
}

impl WaitSettings {
    pub(crate) fn timeout_ms(self) -> u64 {
        milliseconds(self.timeout)
    }
}

/// As the API counts.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Whom {
    /// every site of the resource
    All,
    /// the site of the agent asked
    Local,
    /// nobody: it is enough that the operation is on disk
    None,
}

fn waits() -> impl TypedValueParser<Value = Wait> {
    EnumValueParser::<Whom>::new().map(|whom| match whom {
        Whom::All => Wait::All,
        Whom::Local => Wait::Local,
        Whom::None => Wait::None,
    })
}

/// An operation, except for what it does.
#[derive(Debug, Args)]
pub(crate) struct Handing {
    /// The resource to change
    #[arg(long, value_name = "ID")]
    id: String,
    /// The sites that hold it, such as 'paris & lyon'; needed for a new resource only
    #[arg(long, value_name = "SITES")]
    sites: Option<String>,
    /// The operation's type, by which the matrix decides
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    kind: String,
    /// A resolution matrix, in JSON or YAML; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    config: Option<PathBuf>,
    /// A built-in resolution matrix
    #[arg(long, value_name = "NAME", value_parser = matrix::profile_names())]
    profile: Option<String>,
    /// What the application calls the resource, such as a file or a key: then its state is read and
    /// compared at all sites, and operations that arrive late are put in their place
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Make it the resolution: it replaces everything before it and clears errors
    #[arg(long)]
    force: bool,
    /// Say what would come of it, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    waiting: WaitSettings,
}

impl Handing {
    /// Hands it in and follows it.
    pub(crate) fn hand_in(
        &self,
        agent: &AgentTarget,
        action: Action,
        files: &[Upload],
        output: &mut VerbOutput,
    ) -> Result<Verdict, Failure> {
        check_resource(&self.id)?;
        let kind = OperationType::new(&self.kind);
        kind.map_err(|error| Failure::caller(error.to_string()).hint("`--type set`, for example"))?;
        if let Some(sites) = &self.sites {
            check_location(sites, output)?;
        }
        let (config, profile) = self.rules(output)?;
        let submit = Submit {
            kind: self.kind.clone(),
            sites: self.sites.clone(),
            config,
            profile,
            action,
            force: self.force,
            wait: self.waiting.wait,
            timeout_ms: self.waiting.timeout_ms(),
        };
        if self.dry_run {
            return dry_run::ask(&self.id, &DryRun::Submit(Box::new(submit)), agent, output);
        }
        agent::with(agent, async |client| {
            let started = Instant::now();
            let mut signals = EndSignals::listen()?;
            let events = tokio::select! {
                events = client.submit(&self.id, &submit, files) => events?,
                () = signals.come() => {
                    output.aside("stopped before the agent answered: it may have been accepted");
                    let id = joined(std::slice::from_ref(&self.id));
                    output.aside(styled(DIM, format!("look: cheops resource {id}")));
                    return Ok(Verdict::Interrupted);
                }
            };
            follow(events, submit.wait, started, output).await
        })
    }
}

impl Handing {
    /// How conflicts are resolved, as a document or by the name of a profile.
    fn rules(
        &self,
        output: &mut VerbOutput,
    ) -> Result<(Option<serde_json::Value>, Option<String>), Failure> {
        match (&self.config, &self.profile, &self.target) {
            (Some(path), _, target) => {
                Ok((Some(matrix::config(path, target.as_deref(), output)?), None))
            }
            (None, Some(profile), Some(target)) => {
                Ok((Some(serde_json::json!({ "Profile": profile, "Target": target })), None))
            }
            (None, Some(profile), None) => {
                let reads =
                    cheops_core::config::profile(profile).is_some_and(|it| it.state.is_some());
                if reads && self.sites.is_some() {
                    output.aside(
                        "without `--target`, nobody can check that the sites agree, nor put an \
                         operation that comes late in its place"
                            .to_owned(),
                    );
                }
                Ok((None, Some(profile.clone())))
            }
            (None, None, Some(_)) => Err(Failure::caller(
                "`--target` says of what, and nothing says how its state is read",
            )
            .hint("add `--profile file` or `redis`, or a `--config` with `State`")),
            (None, None, None) => Ok((None, None)),
        }
    }
}

/// A resource's name, before anyone is asked about it.
pub(crate) fn check_resource(id: &str) -> Result<(), Failure> {
    ResourceId::new(id).map_err(|error| Failure::caller(error.to_string()))?;
    Ok(())
}

/// Where a resource lives: problems are shown where they are.
pub(crate) fn check_location(text: &str, output: &mut VerbOutput) -> Result<(), Failure> {
    let Err(problems) = cheops_scope::parse_location(text) else { return Ok(()) };
    let problems = problems.of_a_set();
    let failure = Failure::caller("`--sites` does not say where")
        .hint("sites are named like this: --sites 'paris & lyon'");
    match output.format {
        Format::Table => {
            output.aside(problems.render(Look::Coloured));
            Err(failure)
        }
        Format::Json => Err(failure.because(problems.render(Look::Plain))),
    }
}
