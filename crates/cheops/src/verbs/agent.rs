//! `cheops agent`: one site's agent, in the foreground, for a supervisor.

use std::ffi::OsString;
use std::path::PathBuf;

use cheops_agent::config::AgentConfig;
use cheops_agent::{Agent, AgentFailure, StartError};
use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::{Failure, Verdict};
use crate::logging;
use crate::output::VerbOutput;
use crate::parent;

const AFTER_HELP: &str = "\
SIGHUP is ignored. SIGTERM or SIGINT ends it in order: nothing new is taken in, what runs comes to its end. A second
one ends it at once; the result of what was running is then unknown until the agent is started again.

Examples:
  cheops agent --config site1.toml
  CHEOPS_LOG_LEVEL=debug cheops agent --config site1.toml";

/// Run one site's agent, in the foreground
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The site's config file; `cheops init` writes one to start from
    #[arg(long, short, value_name = "FILE")]
    config: PathBuf,
    /// Stop as well when standard input is closed: when whoever started it is gone
    #[arg(long)]
    with_parent: bool,
    /// Where the demo that this agent is part of takes orders
    #[arg(long, value_name = "SOCKET", hide = true)]
    demo_control: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let environment = std::env::vars_os().filter_map(text);
    let mut config = AgentConfig::load(&arguments.config, environment).map_err(|problems| {
        Failure::caller(problems.to_string())
            .hint("`cheops init` writes a commented config to start from")
    })?;
    config.demo = arguments.demo_control.clone();
    config.alone = true;
    // The driver has a thread of its own, and the machine is there for the application.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads((cores / 2).clamp(1, 4))
        .enable_all()
        .build()
        .map_err(|error| Failure::ours("the runtime could not be started").because(error))?;
    let end_log = logging::begin(&config, runtime.handle())?;
    take_room_for_connections();
    let orphaned = parent::gone(arguments.with_parent);
    let verdict = runtime.block_on(live(config, orphaned, output));
    end_log();
    // Whoever still waits for something has had its time.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    verdict
}

/// Every client of a proxy takes two open files, and a machine allows as few as 1,024 to who does not
/// ask for more. No more than proxies can use: commands get the same, and some go through all of it.
fn take_room_for_connections() {
    const WANTED: u64 = 65_536;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let possible = maximum.map_or(WANTED, |most| most.min(WANTED));
    if current.is_some_and(|current| current < possible) {
        let wanted = Rlimit { current: Some(possible), maximum };
        if let Err(error) = setrlimit(Resource::Nofile, wanted) {
            tracing::warn!(%error, possible, "no more files can be open at once than before");
        }
    }
}

async fn live(
    config: AgentConfig,
    orphaned: impl Future<Output = ()>,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let site = config.site.clone();
    let cannot = |error| Failure::ours("signals cannot be listened to").because(error);
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    // Of which nobody who closes a terminal, or asks for a config to be read again, dies.
    let mut hang_up = signal(SignalKind::hangup()).map_err(cannot)?;
    let proxied = config.services.iter().filter(|service| service.listen.is_some());
    let proxied: Vec<_> =
        proxied.map(|service| (service.name.clone(), service.upstream.clone())).collect();
    let mut agent = Agent::start(config).await.map_err(explained)?;
    let mesh = agent.mesh_address().map(|address| format!(", mesh on {address} (UDP)"));
    let socket = agent.api_socket().map(|path| format!(" and unix:{}", path.display()));
    output.line(format!(
        "site {site}: API on {}{}{}",
        agent.api_url(),
        socket.unwrap_or_default(),
        mesh.unwrap_or_default()
    ))?;
    for ((service, upstream), address) in proxied.iter().zip(agent.proxy_addresses()) {
        output.line(format!("service {service}: proxy on http://{address}, for {upstream}"))?;
    }
    let mut orphaned = std::pin::pin!(orphaned);
    let failure = loop {
        tokio::select! {
            _ = terminate.recv() => break None,
            _ = interrupt.recv() => break None,
            () = &mut orphaned => break None,
            failure = agent.failed() => break Some(failure),
            _ = hang_up.recv() => {
                tracing::warn!("SIGHUP is ignored: what changed in the config counts from the next start");
            }
        }
    };
    match &failure {
        None => tracing::info!("stopping: what runs comes to its end"),
        Some(failure) => tracing::error!(%failure, "stopping"),
    }
    tokio::select! {
        () = agent.stop() => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    match failure {
        None => Ok(Verdict::Fine),
        Some(failure) => Err(gave_up(failure)),
    }
}

fn gave_up(failure: AgentFailure) -> Failure {
    let hint = failure.hint();
    let told = Failure::ours("the agent cannot go on, and ended").because(failure);
    match hint {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

fn explained(error: StartError) -> Failure {
    let hint = error.hint();
    let failure = Failure::caller("the agent cannot be started").because(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
