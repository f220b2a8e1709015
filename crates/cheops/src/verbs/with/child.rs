//! The program: how it is started, which signals are passed on to it, and how it ended.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal as Number, getpgrp, kill_process};
use tokio::process::Command;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Where HTTP clients look for a proxy.
const PROXY: [&str; 6] =
    ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
/// Where they look for what goes around it: loopback, usually, and that is where services are.
const AROUND: [&str; 2] = ["no_proxy", "NO_PROXY"];
/// Without this, Node looks at none of them.
const NODE: &str = "NODE_USE_ENV_PROXY";

/// A program at work.
pub(super) struct Child {
    process: tokio::process::Child,
    signals: Signals,
}

impl Child {
    /// Starts it, told to use that proxy.
    pub(super) fn start(command: &[OsString], proxy: &str) -> Result<Self, Failure> {
        let [program, arguments @ ..] = command else {
            return Err(Failure::caller("there is no program").hint("it follows `--`"));
        };
        let cannot = |error| Failure::ours("signals cannot be listened to").because(error);
        // This one first: nobody may take us away and leave the program behind.
        let terminate = signal(SignalKind::terminate()).map_err(cannot)?;
        let mut started = Command::new(program);
        started.args(arguments).envs(PROXY.map(|name| (name, proxy))).env(NODE, "1");
        for name in AROUND {
            started.env_remove(name);
        }
        let process = started.spawn().map_err(|error| not_started(program, error))?;
        let signals = Signals::after(terminate).map_err(cannot)?;
        Ok(Self { process, signals })
    }

    /// Waits for its end, and passes signals on meanwhile. Can be dropped and called again.
    pub(super) async fn ended(&mut self) -> Result<u8, Failure> {
        loop {
            tokio::select! {
                ended = self.process.wait() => {
                    let lost = |error| Failure::ours("the program cannot be followed").because(error);
                    return ended.map(code).map_err(lost);
                }
                number = self.signals.next() => self.pass_on(number),
            }
        }
    }

    fn pass_on(&self, number: Number) {
        let id = self.process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(id) = id.filter(|_| !comes_from_the_terminal(number)) {
            // If it is just ending by itself, that is as well.
            let _gone = kill_process(id, number);
        }
    }
}

/// What a shell would say.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|number| 128 + number));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn not_started(program: &OsString, error: io::Error) -> Failure {
    let name = program.to_string_lossy();
    if error.kind() == io::ErrorKind::NotFound {
        Failure::no_program(format!("there is no program `{name}`"))
            .hint("the first word after `--` is the program, such as `-- curl http://…`")
    } else {
        Failure::program_not_run(format!("`{name}` cannot be run")).because(error)
    }
}

/// A key such as Ctrl-C tells everybody in the foreground, the program as well. Told twice, many
/// programs end without tidying up.
fn comes_from_the_terminal(number: Number) -> bool {
    let ours = |place: &dyn AsFd| rustix::termios::tcgetpgrp(place.as_fd()) == Ok(getpgrp());
    let is_key = number == Number::INT || number == Number::QUIT;
    is_key && (ours(&io::stdin()) || ours(&io::stdout()) || ours(&io::stderr()))
}

/// The signals that are passed on.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    quit: Signal,
}

impl Signals {
    /// The rest of them, once the program is started: what `nohup` or a shell made us ignore, it
    /// ignores as well, unless we listen before.
    fn after(terminate: Signal) -> io::Result<Self> {
        Ok(Self {
            terminate,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    async fn next(&mut self) -> Number {
        tokio::select! {
            _ = self.terminate.recv() => Number::TERM,
            _ = self.interrupt.recv() => Number::INT,
            _ = self.hang_up.recv() => Number::HUP,
            _ = self.quit.recv() => Number::QUIT,
        }
    }
}
