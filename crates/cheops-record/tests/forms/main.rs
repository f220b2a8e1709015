//! Written forms: what their bytes are, for ever; what is made of the bytes of others.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod broken_off;
mod complete;
mod golden;
mod hostile;
mod later;
mod samples;
mod seals;
mod sizes;
