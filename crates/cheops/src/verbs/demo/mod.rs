//! `cheops demo`: a few sites on this machine, each with its own agent, log and application, and
//! links between them that can be cut.
//!
//! Everything is real: agents are processes of their own, joined by QUIC through relays that the
//! demo can stop. `cluster` starts and ends it all, `control` takes orders from other terminals and
//! `page` those of the agents' pages, `script` plays a part by itself and checks what comes of it,
//! `tour` says what to try.

mod cluster;
mod control;
mod page;
mod script;
mod tour;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use self::cluster::{DemoCluster, LogicProgram, Scheme, SharedCluster};
use self::control::{Control, Order};
use self::script::DemoPart;
use crate::failure::{Failure, Verdict};
use crate::output::VerbOutput;

const AFTER_HELP: &str = "\
While a demo runs, from another terminal:
  cheops demo cut                 no site hears another any more
  cheops demo cut site1 site2     these two do not hear each other
  cheops demo heal                all links are whole again
  cheops demo stop site2          that site's agent is killed (kill -9)
  cheops demo start site2         and started again
  cheops demo stop site2 image    that site's image service is killed

Examples:
  cheops demo
  cheops demo --sites 5
  cheops demo --script            play all by itself, check it, and end
  cheops demo --script collaborations";

/// Try it: a few sites on this machine, and links that can be cut
///
/// Starts that many sites, each with its own agent, log, folder and services, and prints commands
/// to paste. Ctrl-C ends all of it and leaves nothing behind. With Node, a sample application of
/// two services runs at each site, to try scopes with.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    order: Option<Order>,
    /// How many sites
    #[arg(long, default_value_t = 3, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u8).range(2..=9))]
    sites: u8,
    /// Play a part without anyone at the keyboard, tell what happens, and end; fails if something
    /// else happens than it should
    #[arg(long, value_name = "PART", num_args = 0..=1, default_missing_value = "all")]
    script: Option<DemoPart>,
    /// A program that decides about concurrent operations, at every site; may be given several times
    #[arg(long, value_name = "NAME=COMMAND", value_parser = LogicProgram::parse)]
    logic: Vec<LogicProgram>,
}

/// Who says what happens.
enum DemoPlan {
    Script(DemoPart),
    /// Whoever reads what to try, from other terminals.
    Tour(Control),
}

pub(crate) fn run(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::ours("the runtime could not be started").because(error))?;
    runtime.block_on(async {
        match &arguments.order {
            Some(order) => control::send(order, output).await,
            None => play(arguments, output).await,
        }
    })
}

async fn play(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let cannot = |error| Failure::ours("signals cannot be listened to").because(error);
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut hung_up = signal(SignalKind::hangup()).map_err(cannot)?;
    // A script's links are its own: another demo may run beside it.
    let (plan, scheme) = match arguments.script {
        Some(_) if arguments.sites < script::SITES => {
            return Err(Failure::caller(format!("the script needs {} sites", script::SITES)));
        }
        Some(part) => (DemoPlan::Script(part), Scheme::Any),
        None => (DemoPlan::Tour(Control::listen().await?), Scheme::Usual),
    };
    let ended = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hung_up.recv() => {}
        }
    };
    tokio::pin!(ended);
    let control = match &plan {
        DemoPlan::Script(_) => None,
        DemoPlan::Tour(control) => Some(control.path().to_owned()),
    };
    let (count, logic) = (usize::from(arguments.sites), &arguments.logic);
    let cluster = tokio::select! {
        cluster = DemoCluster::start(count, scheme, control, logic, output) => cluster?,
        () = &mut ended => return Ok(Verdict::Fine),
    };
    let cluster = SharedCluster::new(cluster.into());
    let told = tokio::select! {
        told = async {
            match plan {
                DemoPlan::Script(part) => {
                    script::play(part, &mut *cluster.lock().await, output).await
                }
                DemoPlan::Tour(control) => {
                    tour::print(&*cluster.lock().await, output).await?;
                    control.serve(cluster.clone()).await;
                    Ok(Verdict::Fine)
                }
            }
        } => told,
        () = &mut ended => Ok(Verdict::Fine),
    };
    cluster.lock().await.end().await;
    told
}
