//! Many engines in one process: the published outcomes, faults of every kind, and what it costs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod cluster;
mod figures;
mod published;
mod report;
mod scale;
mod services;
mod short_history;
mod sync;
mod torture;
mod verdicts;
