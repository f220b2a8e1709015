//! Finding and ending processes by what their environment says, on Linux.
//!
//! A process group is enough for nearly every command; but a program may leave its group, and an
//! agent may be gone before it could end anything. The environment is handed down to every child
//! unless a program takes care to drop it: what does is found by its control group, where there are
//! any (`fence`). On other systems nothing is found.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use super::fence;
use super::token::{RUN_VARIABLE, RunToken};

/// How long to go on ending processes that do not end.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);
/// While a process becomes another program, it has no environment to be seen for a moment: only
/// who is not seen twice in a row is not there.
const EMPTY_LOOKS: u32 = 2;

/// Ends every process that an earlier start of this agent left behind, and returns how many there
/// were. To be called before the engine is recovered: no command of an earlier start may run beside
/// those that its recovery starts. Blocks until they are gone.
///
/// # Errors
///
/// When some do not end, for example because they wait for a disk that does not answer.
pub fn end_leftovers(run: &RunToken) -> io::Result<usize> {
    let marked =
        end_all(|value| value.starts_with(run.all_starts().as_bytes()) && !is_of(run, value))?;
    Ok(marked + fence::end_leftovers(run)?)
}

fn is_of(run: &RunToken, value: &[u8]) -> bool {
    run.run_of(value).is_some()
}

/// Ends every process of this start whose run is none of those under way.
pub(super) fn end_escaped(run: &RunToken, is_under_way: impl Fn(u64) -> bool) -> io::Result<usize> {
    end_all(|value| run.run_of(value).is_some_and(|n| !is_under_way(n)))
}

/// Ends all processes whose variable has a value of this kind, until none is left.
fn end_all(mut matches: impl FnMut(&[u8]) -> bool) -> io::Result<usize> {
    let deadline = Instant::now() + PATIENCE;
    let mut ended: BTreeSet<i32> = BTreeSet::new();
    let mut empty_looks = 0;
    loop {
        let found = linux::kill(&mut matches)?;
        empty_looks = if found.is_empty() { empty_looks + 1 } else { 0 };
        if empty_looks == EMPTY_LOOKS {
            return Ok(ended.len());
        }
        ended.extend(&found);
        if !found.is_empty() && Instant::now() > deadline {
            let message = format!("processes {found:?} do not end");
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        // They may take a moment, and may have had children meanwhile.
        std::thread::sleep(PAUSE);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io::{self, Read};

    use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

    use super::RUN_VARIABLE;

    /// More environment than any process has in practice.
    const MOST_BYTES: u64 = 4 * 1024 * 1024;

    /// Sends SIGKILL to each process whose variable matches; returns which.
    pub(super) fn kill(matches: &mut impl FnMut(&[u8]) -> bool) -> io::Result<Vec<i32>> {
        let mut found = Vec::new();
        let mut environment = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(number) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            if number.unsigned_abs() != std::process::id()
                && has_match(number, &mut environment, matches)
                && let Some(pid) = Pid::from_raw(number)
            {
                // The number could pass to another process between the look and the signal: hold
                // on to the process, and look again.
                match pidfd_open(pid, PidfdFlags::empty()) {
                    Ok(process) if has_match(number, &mut environment, matches) => {
                        let _ = pidfd_send_signal(&process, Signal::KILL);
                    }
                    Ok(_) => continue,
                    Err(_) => {
                        let _ = kill_process(pid, Signal::KILL);
                    }
                }
                found.push(number);
            }
        }
        Ok(found)
    }

    /// A process that ended, or that belongs to someone else, has no environment to be seen.
    fn has_match(
        pid: i32,
        environment: &mut Vec<u8>,
        matches: &mut impl FnMut(&[u8]) -> bool,
    ) -> bool {
        environment.clear();
        let read = fs::File::open(format!("/proc/{pid}/environ"))
            .and_then(|file| file.take(MOST_BYTES).read_to_end(environment));
        if read.is_err() {
            return false;
        }
        let value = |pair: &'_ [u8]| {
            pair.strip_prefix(RUN_VARIABLE.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="))
                .is_some_and(&mut *matches)
        };
        environment.split(|byte| *byte == 0).any(value)
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    use std::io;

    pub(super) fn kill(_: &mut impl FnMut(&[u8]) -> bool) -> io::Result<Vec<i32>> {
        Ok(Vec::new())
    }
}
