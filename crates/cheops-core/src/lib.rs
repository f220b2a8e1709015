//! Everything Cheops decides, and nothing it does.
//!
//! This crate holds the model (ids, clock, operations, replies, the resolution matrix) and the
//! three decisions made on it: [`resolve`] turns a set of operations into one list, [`plan`] turns
//! that list and what already ran into the next step, and the [`engine`] is the state machine of
//! one site: events in, a batch to make durable and effects out.
//!
//! There is no clock, disk, network, task, environment or randomness in here. They come in as
//! values and go out as [`engine::Effect`]s, so that thousands of engines can run in one thread
//! under a simulator, and so that the same input always gives the same output.

mod causes;
pub mod config;
pub mod engine;
mod ids;
pub mod model;
pub mod plan;
pub mod resolve;

pub use causes::causes;
