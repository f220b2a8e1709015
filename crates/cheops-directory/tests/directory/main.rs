//! What is said, what it comes to, and a thousand sites that say it to each other.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod forms;
mod keys;
mod merge;
mod places;
mod together;
mod world;
