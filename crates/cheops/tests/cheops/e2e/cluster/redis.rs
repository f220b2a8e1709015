//! A real Redis beside an agent.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::until;

/// Ends with the process that started it, whatever happens to that: then its input closes.
const ENDS_WITH_US: &str = r#"redis-server "$@" >redis.log 2>&1 & cat >/dev/null; kill -9 $!"#;
const SETTINGS: &str = "--port 0 --unixsocket redis.sock --appendonly no --daemonize no --save";

/// A running one; ends when dropped.
pub(crate) struct Redis {
    keeper: Child,
    folder: PathBuf,
}

impl Redis {
    /// Starts one whose socket is `redis.sock` in that folder.
    pub(crate) async fn start(folder: &Path) -> Self {
        let keeper = Command::new("sh")
            .args(["-c", ENDS_WITH_US, "redis"])
            .args(SETTINGS.split(' '))
            .arg("")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let redis = Self { keeper, folder: folder.to_owned() };
        until("redis answers (is redis-server installed? scripts/setup does it)", async || {
            redis.ask(&["ping"]) == "PONG"
        })
        .await;
        redis
    }

    /// Asks it directly, past the agent.
    pub(crate) fn ask(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command.args(["-s", "redis.sock"]).args(arguments).current_dir(&self.folder);
        let Ok(ran) = command.stdin(Stdio::null()).output() else { return String::new() };
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _gone = self.keeper.wait();
    }
}
