//! One engine, event by event: what it makes durable, what it does, and what it refuses.

mod fixture;

mod accepting;
mod entries;
mod jobs;
