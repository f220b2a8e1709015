//! The store from outside: one contract for disk and memory, and everything a disk can do to it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::print_stderr, reason = "children talk to the test that started them")]

mod backup;
mod blobs;
mod contract;
mod crash;
mod damage;
mod full;
mod history;
mod opening;
mod past;
mod properties;
mod snapshots;
mod support;
mod today;
mod upgrade;
