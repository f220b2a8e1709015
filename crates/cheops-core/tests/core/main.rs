//! What is decided: by `resolve`, by `plan`, and by the engine event by event.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that cannot go on fails")]

mod engine;
mod plan;
mod resolve;
