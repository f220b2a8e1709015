//! The binary as a user runs it: arguments in; output, error output and exit code out.

mod access;
mod agent;
mod attack;
mod logic;
mod matrix;
mod mesh;
#[path = "../../../../cheops-api/tests/api/request/mod.rs"]
mod request;
pub(crate) mod running;
mod scope;
mod usage;
mod with;
