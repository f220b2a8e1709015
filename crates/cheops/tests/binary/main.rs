//! The binary as a user runs it: arguments in; output, error output and exit code out.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test is a panic")]

mod access;
mod agent;
mod matrix;
mod mesh;
#[path = "../../../cheops-api/tests/request/mod.rs"]
mod request;
mod running;
mod scope;
mod usage;
mod with;
