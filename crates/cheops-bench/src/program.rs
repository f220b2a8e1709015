//! The agents' program. It may be one of another day, which knows other config keys and writes
//! identities in its own way: so it is asked, rather than believed to be like this one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use cheops_core::model::SiteId;
use tokio::process::Command;

use crate::failure::{BenchFailure, cannot};

/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The key by which an API lets everybody in. Programs before it let everybody in.
const AUTH_KEY: &str = "api.auth";

/// A program, and what it wants to read.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) auth: AuthKey,
}

/// Whether a config may say who is let in at the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthKey {
    Known,
    Unknown,
}

impl AuthKey {
    /// What stands in a config so that everybody is let in.
    pub(crate) fn line(self) -> &'static str {
        match self {
            Self::Known => "auth = \"none\"\n",
            Self::Unknown => "",
        }
    }

    /// From what became of an agent whose config has the key.
    fn of(has_run: bool, said: &str) -> Result<Self, &str> {
        match (has_run, said.contains(AUTH_KEY)) {
            (true, _) => Ok(Self::Known),
            (false, true) => Ok(Self::Unknown),
            (false, false) => Err(said),
        }
    }
}

impl Program {
    /// Lets it run an agent for a moment, to learn what it reads.
    pub(crate) async fn ask(path: PathBuf, place: &Path) -> Result<Self, BenchFailure> {
        let dir = tempfile::Builder::new().prefix("cheops-bench-").tempdir_in(place);
        let dir = dir.map_err(cannot("make a folder"))?;
        let program = Self { path, auth: AuthKey::Known };
        let site = SiteId::new("site1").map_err(cannot("name a site"))?;
        let authority = dir.path().join("mesh");
        program.make_mesh(&authority).await?;
        program.issue(&authority, &site, &dir.path().join("identity.pem")).await?;
        let config = dir.path().join("agent.toml");
        let text = format!(
            "site = \"{site}\"\ndata_dir = \"data\"\napplication = \"empty\"\n\n\
             [api]\nlisten = \"127.0.0.1:0\"\n{}\n\
             [mesh]\nlisten = \"127.0.0.1:0\"\nidentity = \"identity.pem\"\n",
            program.auth.line()
        );
        fs::write(&config, text).map_err(cannot("write a config"))?;
        // Without input, it ends as soon as it runs.
        let mut agent = Command::new(&program.path);
        agent.args(["agent", "--with-parent", "--config"]).arg(&config);
        let ended = program.run(agent).await?;
        let said = String::from_utf8_lossy(&ended.stderr);
        let auth = AuthKey::of(ended.status.success(), said.trim());
        let auth =
            auth.map_err(|said| BenchFailure::new(program.failed_to("run an agent"), said))?;
        Ok(Self { auth, ..program })
    }

    /// Makes a mesh's authority in that folder.
    pub(crate) async fn make_mesh(&self, authority: &Path) -> Result<(), BenchFailure> {
        let mut command = Command::new(&self.path);
        command.args(["mesh", "new", "--dir"]).arg(authority);
        self.succeed(command, "make a mesh").await
    }

    /// Makes a site's identity.
    pub(crate) async fn issue(
        &self,
        authority: &Path,
        site: &SiteId,
        identity: &Path,
    ) -> Result<(), BenchFailure> {
        let mut command = Command::new(&self.path);
        command.args(["mesh", "issue", site.as_str(), "--dir"]).arg(authority);
        command.arg("--out").arg(identity);
        self.succeed(command, "issue an identity").await
    }

    async fn succeed(&self, command: Command, what: &str) -> Result<(), BenchFailure> {
        let ended = self.run(command).await?;
        let said = String::from_utf8_lossy(&ended.stderr);
        match ended.status.success() {
            true => Ok(()),
            false => Err(BenchFailure::new(self.failed_to(what), said.trim())),
        }
    }

    async fn run(&self, mut command: Command) -> Result<Output, BenchFailure> {
        let running = command.stdin(Stdio::null()).kill_on_drop(true).output();
        let late = |_| BenchFailure::new(self.failed_to("end"), "time is up");
        let ended = tokio::time::timeout(PATIENCE, running).await.map_err(late)?;
        ended.map_err(cannot(&format!("start `{}`", self.path.display())))
    }

    fn failed_to(&self, what: &str) -> String {
        format!("`{}` did not {what}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_refuses_the_key_by_name_does_not_know_it() {
        let refused = "error: the config `a.toml` cannot be used:\n       a.toml:7:1: `api.auth`: \
                       there is no such key; expected one of `listen`";
        let ended = "error: the config `a.toml` cannot be used: there is no identity";
        let cases = [
            (true, "", Ok(AuthKey::Known)),
            (true, "warning: `api.auth` lets everybody in", Ok(AuthKey::Known)),
            (false, refused, Ok(AuthKey::Unknown)),
            (false, ended, Err(ended)),
        ];
        for (has_run, said, wanted) in cases {
            assert_eq!(AuthKey::of(has_run, said), wanted, "{said}");
        }
    }
}
