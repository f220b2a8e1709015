//! `cheops with`: a program whose every HTTP request carries a scope.
//!
//! The program is told, by the variables that HTTP clients look at, to use a proxy on loopback.
//! That proxy is ours, serves nobody else, puts the scope into what passes, and ends with it.

mod child;
mod forward;
mod headers;
mod key;
mod proxy;
mod tunnel;
mod upload;

use std::ffi::OsString;

use clap::Args;
use hyper::header::HeaderValue;

use self::child::Child;
use self::proxy::Proxy;
use crate::failure::{Failure, Verdict};
use crate::look::{WARN, styled};
use crate::output::VerbOutput;
use crate::text::{hanging, printable};
use crate::verbs::scope;

const AFTER_HELP: &str = "\
The program uses a proxy on loopback that is there for it alone, by `http_proxy` and the other
usual variables. Requests over https pass, but nobody can put a scope into what is encrypted.
Programs that look at no such variables get no scope; those written in Go use no proxy for
`localhost` and 127.0.0.1: give them another name of the machine.

Examples:
  cheops with --scope 'image: lyon' -- curl http://127.0.0.1:19292/v2/images
  cheops with --scope '{compute: paris, image: lyon}' \\
      -- openstack server create --image debian vm
  cheops with --scope 'image: paris & lyon' -- sh -c './upload.sh && ./check.sh'

Exit codes:
  the program's own; 128 and the signal's number if a signal ended it
  2    the scope has problems: nothing was run
  126  the program cannot be run
  127  there is no such program";

/// Run a program with a scope on every HTTP request it makes
///
/// Works with any HTTP client that can use a proxy: curl, the openstack client, scripts.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The scope; quote it, since `&` and `;` mean something to shells
    #[arg(long, short, value_name = "EXPR")]
    scope: String,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_names = ["PROGRAM", "ARGS"], num_args = 1..)]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let scope = match cheops_scope::parse(&arguments.scope) {
        Ok(scope) => scope,
        Err(problems) => {
            scope::tell(&problems, output)?;
            return Ok(Verdict::Refused);
        }
    };
    // The canonical text: what was typed may have line breaks, and a header cannot.
    let scope = HeaderValue::from_str(&scope.to_string())
        .map_err(|error| Failure::ours("the scope does not fit in a header").because(error))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::ours("the runtime could not be started").because(error))?;
    let ended = runtime.block_on(accompany(&arguments.command, scope, output));
    // Names that are still being looked up have nobody left who waits for them.
    runtime.shutdown_background();
    ended.map(Verdict::Ran)
}

/// Runs the program beside the proxy, up to its end; with which code it ended.
async fn accompany(
    command: &[OsString],
    scope: HeaderValue,
    output: &mut VerbOutput,
) -> Result<u8, Failure> {
    let (proxy, mut unreadable) = Proxy::open(scope).await.map_err(|error| {
        Failure::ours("the proxy for the program cannot be opened").because(error)
    })?;
    let mut child = Child::start(command, &proxy.url())?;
    let _serving = tokio::spawn(proxy.serve());
    let mut is_warned = false;
    let ended = loop {
        tokio::select! {
            ended = child.ended() => break ended,
            Some(place) = unreadable.recv(), if !is_warned => {
                warn(&place, output);
                is_warned = true;
            }
        }
    };
    if let (false, Ok(place)) = (is_warned, unreadable.try_recv()) {
        warn(&place, output);
    }
    ended
}

fn warn(place: &str, output: &mut VerbOutput) {
    let text = printable(&format!(
        "what goes to `{place}` cannot be read on the way, as with https, and carries no scope; use \
         an http:// address (this is said once)"
    ));
    let text = hanging("warning: ", &text, output.width);
    output.aside(text.replacen("warning: ", &styled(WARN, "warning: "), 1));
}
