//! Runs the binary and keeps what came out.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use expect_test::Expect;

/// What came out.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The binary with these arguments and nothing of this machine's settings.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cheops"));
    command.args(arguments).stdin(Stdio::null());
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    for variable in ["CHEOPS_AGENT", "CHEOPS_TOKEN_FILE", "CHEOPS_AGENT_CA"] {
        command.env_remove(variable);
    }
    command
}

/// Runs it with these arguments.
pub(crate) fn cheops(arguments: &[&str]) -> Ran {
    command(arguments).output().unwrap().into()
}

/// Runs it with these arguments and that on its standard input.
pub(crate) fn cheops_reading(arguments: &[&str], input: &str) -> Ran {
    let mut command = command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

/// A file with that content, under a name of its own.
pub(crate) fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap();
    path
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// It ended with this code, and both outputs read like this: first what it answered, then what
    /// it said aside, after a line `--- aside`.
    pub(crate) fn check(&self, code: i32, want: &Expect) {
        let aside = if self.err.is_empty() { "" } else { "--- aside\n" };
        want.assert_eq(&format!("{}{aside}{}", self.out, self.err));
        assert_eq!(self.code, Some(code));
    }

    /// What it answered, as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap()
    }
}
