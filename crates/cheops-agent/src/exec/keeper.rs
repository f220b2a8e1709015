//! The keeper: a tiny process that outlives the agent just long enough to end what it left.
//!
//! An agent that is killed cannot end its commands. The keeper waits at a pipe whose other end only
//! the agent holds; when that closes without a farewell, the agent is gone, in whatever way, and
//! the keeper ends every process that carries its token, and every one behind the agent's fence
//! where there is one. It is a shell in a process group of its own, asleep in `read` until then.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::token::{RUN_VARIABLE, RunToken};

/// `$1` is what the environment of the processes to end holds. A process that was just being
/// started has no such environment yet, so that one empty look is not enough. What cannot be
/// ended within half a minute waits for a disk, and the next start of the agent will say so. `$2` is
/// the control group of the agent, if it has one.
const SCRIPT: &str = r#"
trap '' TERM INT HUP
read -r word
[ "$word" = farewell ] && exit 0
[ -n "$2" ] && echo 1 >"$2/cgroup.kill" 2>/dev/null
looks=0 empty=0
while [ "$empty" -lt 3 ] && [ "$looks" -lt 300 ]; do
  found=$(grep -lF -e "$1" /proc/[0-9]*/environ 2>/dev/null)
  empty=$((empty + 1)) looks=$((looks + 1))
  for file in $found; do
    empty=0
    pid=${file#/proc/}
    kill -9 "${pid%/environ}" 2>/dev/null
  done
  sleep 0.1 2>/dev/null || sleep 1
done
[ -n "$2" ] && rmdir "$2" 2>/dev/null
exit 0
"#;

/// How long a farewell may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The keeper's process, for as long as the agent lives.
#[derive(Debug)]
pub(super) struct Keeper {
    process: Child,
    line: Option<ChildStdin>,
}

impl Keeper {
    /// Starts it.
    pub(super) fn start(run: &RunToken, fence: Option<&Path>) -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let mut process = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "cheops-keeper", &format!("{RUN_VARIABLE}={run}.")])
            .args(fence)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let line = process.stdin.take();
        Ok(Self { process, line })
    }

    /// Tells it that nothing is left to be ended, and waits for it to go. Blocks.
    pub(super) fn dismiss(mut self) {
        if let Some(mut line) = self.line.take() {
            // It may have been ended by someone else: then it needs no farewell.
            let _ = line.write_all(b"farewell\n");
        }
        let deadline = Instant::now() + PATIENCE;
        while let Ok(None) = self.process.try_wait() {
            if Instant::now() > deadline {
                let _ = self.process.kill();
                let _ = self.process.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
