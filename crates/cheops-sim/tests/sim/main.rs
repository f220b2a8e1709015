//! Many engines in one process: the published outcomes, faults of every kind, and what it costs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod figures;
mod published;
mod report;
mod scale;
mod services;
mod stage;
mod sync;
mod torture;
mod verdicts;
