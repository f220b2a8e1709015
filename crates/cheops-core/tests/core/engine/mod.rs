//! One engine, event by event: what it makes durable, what it does, and what it refuses.

mod fixture;

mod accepting;
mod claims;
mod doubt;
mod early;
mod edits;
mod entries;
mod id_maps;
mod jobs;
mod lies;
mod links;
mod lost_disks;
mod malformed;
mod needs;
mod programs;
mod pruning;
mod recovery;
mod repairs;
mod short_history;
mod standing;
mod states;
mod steps;
mod sync;
mod undo;
