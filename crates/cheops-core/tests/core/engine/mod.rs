//! One engine, event by event: what it makes durable, what it does, and what it refuses.

mod fixture;

mod accepting;
mod doubt;
mod entries;
mod jobs;
mod links;
mod standing;
mod sync;
