//! One shell command: started in a process group of its own, fed, listened to, and ended.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use cheops_core::model::Output;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use super::capture::Capture;
use super::processes;
use super::program::ProgramSurroundings;
use super::running::UnderWay;
use super::start_failure::StartFailure;
use super::streams::{Input, Prints, Sink, feed};
use super::token::{RUN_VARIABLE, RunToken};

/// By its path: to look it up, and to start it the slow way, costs time with every command.
const SHELL: &str = "/bin/sh";
/// How long to wait for the rest of the output once the command and its group are gone: only a
/// process that left the group can still hold the pipe.
const REST: Duration = Duration::from_millis(250);
/// Linux takes no longer single variable, or argument.
const LONGEST_VARIABLE: usize = 128 * 1024;

/// The variable that brings the command to its shell. Arguments are for everyone on the machine to
/// see in `ps`; the environment only for the same user.
const SCRIPT_VARIABLE: &str = "CHEOPS_SCRIPT";
/// Runs it, and hands it down to nobody. One line, so that messages name the command's own lines.
const RUN_SCRIPT: &str = "eval \"unset CHEOPS_SCRIPT;$CHEOPS_SCRIPT\"";

/// What all commands of an agent have in common.
#[derive(Debug)]
pub(super) struct Shell {
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) dir: Option<PathBuf>,
    pub(super) run: RunToken,
    /// Between asking a command to end and ending it.
    pub(super) grace: Duration,
    pub(super) output_limit: usize,
}

/// One command.
pub(super) struct ShellScript<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) variables: Vec<(&'static str, OsString)>,
    /// What it finds in the place of what commands do.
    pub(super) surroundings: Option<&'a ProgramSurroundings>,
    pub(super) input: Input,
    pub(super) prints: Prints,
    pub(super) limit: Duration,
}

/// How it ended.
#[derive(Debug)]
pub(super) enum CommandEnding {
    Exited {
        code: i32,
        output: Output,
    },
    TimedOut,
    StartFailure(StartFailure),
    /// It was begun and ended, and nobody knows how far it came.
    Unseen(String),
    /// It was ended, since what it reads or prints could not be brought to it or taken from it.
    Broken(String),
    /// It was ended, since the agent stops.
    Stopped,
}

/// Why a command is no longer waited for.
enum StopReason {
    Exited(io::Result<ExitStatus>),
    TimeLimit,
    Broken(String),
    Stopped,
}

impl Shell {
    /// Runs a command to its end.
    pub(super) async fn run(
        &self,
        script: ShellScript<'_>,
        under_way: &mut UnderWay,
    ) -> CommandEnding {
        let apart = !matches!(script.prints, Prints::Output);
        let started = match self.start(&script, apart, under_way.n) {
            Ok(started) => started,
            Err(error) => {
                // Short of memory, the system may have started it and then not been able to watch
                // it. A command that ran unseen must not be taken for one that did not.
                if is_out_of_memory(&error) && self.end_escaped(under_way.n).await > 0 {
                    return CommandEnding::Unseen(format!("it was ended at once: {error}"));
                }
                return CommandEnding::StartFailure(self.cannot_start(&script, &error));
            }
        };
        let ShellScript { input, prints, limit, .. } = script;
        let Started { mut child, mut group, printed: pipe, apart } = started;
        let mut printed = Capture::new(self.output_limit);
        let mut sink = Sink::new(prints);
        let stdin = child.stdin.take();
        let (why, held) = {
            let io = async {
                let printing = async {
                    printed.drain(&pipe).await;
                    Ok(())
                };
                tokio::try_join!(printing, sink.take_in(apart.as_ref()), feed(stdin, input))?;
                Ok(())
            };
            tokio::pin!(io);
            self.attend(&mut child, &mut group, io, limit, under_way).await
        };
        if held || !matches!(why, StopReason::Exited(_)) {
            self.end_escaped(under_way.n).await;
        }
        if held {
            printed.cut_off();
        }
        match why {
            StopReason::Exited(Ok(status)) => sink.end(code_of(status), printed, held).await,
            StopReason::Exited(Err(error)) => {
                CommandEnding::Broken(format!("its end was not seen: {error}"))
            }
            StopReason::TimeLimit => CommandEnding::TimedOut,
            StopReason::Broken(reason) => CommandEnding::Broken(sink.reason(reason).await),
            StopReason::Stopped => CommandEnding::Stopped,
        }
    }

    fn start(&self, script: &ShellScript<'_>, apart: bool, n: u64) -> io::Result<Started> {
        let ShellScript { text, variables, surroundings, input, .. } = script;
        let (printed, out) = io::pipe()?;
        let mut command = Command::new(SHELL);
        command.arg("-c").arg(RUN_SCRIPT).env_clear();
        match surroundings {
            Some(surroundings) => command.envs(&surroundings.variables),
            None => command.envs(self.environment.iter().map(|(name, value)| (name, value))),
        };
        let variables = variables.iter().map(|(name, value)| (name, value));
        command.env(RUN_VARIABLE, self.run.of_run(n)).envs(variables);
        command.env(SCRIPT_VARIABLE, text.as_ref());
        command.process_group(0).kill_on_drop(true);
        if let Some(dir) = self.dir_of(script) {
            command.current_dir(dir);
        }
        command.stdin(match input {
            Input::Nothing => Stdio::null(),
            Input::Bytes(_) | Input::Pieces(_) => Stdio::piped(),
        });
        let apart = if apart {
            let (apart, its_out) = io::pipe()?;
            command.stdout(its_out).stderr(out);
            Some(pipe::Receiver::from_owned_fd(apart.into())?)
        } else {
            command.stdout(out.try_clone()?).stderr(out);
            None
        };
        let printed = pipe::Receiver::from_owned_fd(printed.into())?;
        let child = command.spawn()?;
        // The command holds the ends to print to: only without it does their closing show.
        drop(command);
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("it has no process id"))?;
        Ok(Started { child, group: Group(Some(pid)), printed, apart })
    }

    fn dir_of<'a>(&'a self, script: &ShellScript<'a>) -> Option<&'a PathBuf> {
        script.surroundings.and_then(|it| it.directory.as_ref()).or(self.dir.as_ref())
    }

    fn cannot_start(&self, script: &ShellScript<'_>, error: &io::Error) -> StartFailure {
        let text = &script.text;
        match (self.dir_of(script), error.kind()) {
            (Some(dir), io::ErrorKind::NotFound) if !dir.is_dir() => {
                format!("the directory for commands, `{}`, is not there", dir.display()).into()
            }
            // With the name, the sign between them and the end.
            (_, io::ErrorKind::ArgumentListTooLong)
                if SCRIPT_VARIABLE.len() + text.len() + 2 > LONGEST_VARIABLE =>
            {
                let bytes = text.len();
                let reason = format!(
                    "the command has {bytes} bytes, and the system takes less than \
                     {LONGEST_VARIABLE}; send a file along"
                );
                reason.into()
            }
            _ => StartFailure::because(&format!("`{SHELL}` could not be started"), error),
        }
    }

    /// Waits for the end of the command, or brings it about; whether someone beyond its group
    /// still holds on to its output.
    async fn attend(
        &self,
        child: &mut Child,
        group: &mut Group,
        mut io: Pin<&mut impl Future<Output = Result<(), String>>>,
        limit: Duration,
        under_way: &mut UnderWay,
    ) -> (StopReason, bool) {
        let mut through = false;
        let deadline = tokio::time::sleep(limit);
        tokio::pin!(deadline);
        let why = loop {
            tokio::select! {
                biased;
                status = child.wait() => break StopReason::Exited(status),
                () = under_way.stopped() => break StopReason::Stopped,
                () = &mut deadline => break StopReason::TimeLimit,
                result = io.as_mut(), if !through => {
                    through = true;
                    if let Err(reason) = result {
                        break StopReason::Broken(reason);
                    }
                }
            }
        };
        if !matches!(why, StopReason::Exited(_)) {
            group.send(Signal::TERM);
            let _ = tokio::time::timeout(self.grace, child.wait()).await;
        }
        // Whoever is left of the group, for example in the background.
        group.send(Signal::KILL);
        let _ = child.wait().await;
        group.is_gone();
        let held = !through && tokio::time::timeout(REST, io).await.is_err();
        (why, held)
    }

    /// Ends what is left of a run; how many processes that were.
    async fn end_escaped(&self, n: u64) -> usize {
        let run = self.run.clone();
        let ending =
            tokio::task::spawn_blocking(move || processes::end_escaped(&run, |other| other != n));
        match ending.await {
            Ok(Ok(ended)) => ended,
            Ok(Err(error)) => {
                tracing::warn!(%error, "processes of a command could not be ended");
                0
            }
            Err(_stopping) => 0,
        }
    }
}

struct Started {
    child: Child,
    group: Group,
    printed: pipe::Receiver,
    apart: Option<pipe::Receiver>,
}

/// A process group. It ends with this value: a run that is given up leaves nothing behind.
struct Group(Option<Pid>);

impl Group {
    fn send(&self, signal: Signal) {
        // There is usually nobody left, which is an error to the system and fine here.
        if let Some(pid) = self.0 {
            let _ = kill_process_group(pid, signal);
        }
    }

    /// From now on its number may be another's.
    fn is_gone(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.send(Signal::KILL);
    }
}

/// What to register with the kernel a process that runs already may fail with.
fn is_out_of_memory(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOMEM | Errno::NOSPC))
}

/// As shells say it: 128 and the signal's number, where a signal ended it.
fn code_of(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}
