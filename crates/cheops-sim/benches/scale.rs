//! A hundred sites, then a thousand, with ten thousand resources of three sites each: what one
//! operation costs in messages and bytes, and that this does not grow with the number of sites.
//!
//! The counts are the same in every run; only the times depend on the machine.
#![allow(clippy::print_stdout, reason = "this is what a benchmark is for")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

#[path = "../tests/sim/cluster/scale.rs"]
mod experiment;

use std::process::ExitCode;

use experiment::{Measured, Scale, measure};

const RESOURCES: usize = 10_000;
/// What an operation may cost among a thousand sites, compared to a hundred.
const MOST: f64 = 1.2;

fn main() -> ExitCode {
    println!(
        "{:>6} {:>10} {:>11} {:>12} {:>9} {:>10} {:>17} {:>11} {:>9}",
        "sites",
        "resources",
        "operations",
        "messages/op",
        "bytes/op",
        "entries/op",
        "heartbeats/site/s",
        "events/s",
        "wall time"
    );
    let [few, many] = [100, 1_000].map(|sites| {
        let measured = measure(Scale { sites, resources: RESOURCES });
        print(&measured);
        measured
    });
    let messages = many.messages_per_operation() / few.messages_per_operation();
    let bytes = many.bytes_per_operation() / few.bytes_per_operation();
    println!("1000 sites to 100: messages per operation {messages:.3}, bytes {bytes:.3}");
    if messages > MOST || bytes > MOST {
        println!("TOO MUCH: an operation must not cost more where there are more sites");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn print(measured: &Measured) {
    println!(
        "{:>6} {:>10} {:>11} {:>12.2} {:>9.0} {:>10.2} {:>17.1} {:>11.0} {:>7.1} s",
        measured.scale.sites,
        measured.scale.resources,
        measured.operations,
        measured.messages_per_operation(),
        measured.bytes_per_operation(),
        measured.entries_per_operation(),
        measured.heartbeats_per_site_and_second(),
        measured.events_per_second(),
        measured.took.as_secs_f64()
    );
}
