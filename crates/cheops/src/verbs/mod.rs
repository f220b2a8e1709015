//! One file, or folder, per verb.

pub(crate) mod agent;
pub(crate) mod backup;
pub(crate) mod completions;
pub(crate) mod delete;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod dismiss;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod http;
pub(crate) mod init;
pub(crate) mod mesh;
pub(crate) mod open;
pub(crate) mod resource;
pub(crate) mod resources;
pub(crate) mod retry;
pub(crate) mod sample;
pub(crate) mod scope;
pub(crate) mod settle;
pub(crate) mod show;
pub(crate) mod sites;
pub(crate) mod status;
pub(crate) mod watch;
pub(crate) mod with;
