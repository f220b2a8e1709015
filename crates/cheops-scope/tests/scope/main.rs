//! Scope-lang: what is read, what it means, and what is said of what cannot be read.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test is a panic")]

mod docs;
mod hostile;
mod parsing;
mod placing;
mod problems;
mod properties;
mod rendering;
mod world;
