//! What goes over the wire, and the client that speaks it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test is a panic")]

mod client;
mod request;
mod wire;
