//! The program: as a user runs it, and as whole sites run it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a failed test is a panic, and says what it measured"
)]

mod binary;
mod e2e;
