//! A site of the mesh that takes all the room it can get: the memory that it costs an agent is bounded, and
//! the agents go on with each other meanwhile.

use std::sync::Arc;

use crate::cluster::until;
use crate::raw_peer::honest::{
    go_on, go_on_before_and_after_a_restart, motd, named_in_feed, shared,
};
use crate::raw_peer::{Claim, framed, two_agents_and_a_raw_peer};

/// What this process, with both agents and the raw peer in it, holds of the machine's memory.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024
}

/// What an agent serves of one site at once, at the least.
const STREAMS: usize = 4_096;
/// The longest head that may stand at the beginning of a stream.
const LONGEST_HEAD: u32 = 256 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_are_opened_and_left_take_no_memory_for_what_they_only_announce() {
    let (mut cluster, mut raw) = two_agents_and_a_raw_peer().await;
    shared(&cluster).await;
    go_on(&cluster, "quiet").await;
    let before = resident_mib();

    let link = raw.link(cluster.mesh_address(0)).await;
    let mut left = Vec::new();
    for n in 0..STREAMS {
        let (mut send, receive) = link.connection.open_bi().await.unwrap();
        match n % 4 {
            // Nothing but a promise, a promise and a piece of it, a question that nobody ends, and one
            // whose answer nobody reads.
            0 => send.write_all(&LONGEST_HEAD.to_le_bytes()).await.unwrap(),
            1 => send.write_all(&[0, 0, 4, 0, 1, 3]).await.unwrap(),
            2 => send.write_all(&framed(b"\x01\x04POST\x10/api/v1/changes?\x00")).await.unwrap(),
            _ => send.write_all(&framed(b"\x01\x03GET\x0d/api/v1/sites\x00")).await.unwrap(),
        }
        left.push((send, receive));
    }
    go_on(&cluster, "beside it").await;
    let after = resident_mib();
    // A quarter of the streams would be 256 MiB.
    assert!(after < before + 200, "{before} MiB, and {after} MiB with the streams");
    drop((left, link));
    go_on_before_and_after_a_restart(&mut cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_what_waits_for_ever_is_bounded_and_the_others_go_on() {
    let (mut cluster, mut raw) = two_agents_and_a_raw_peer().await;
    shared(&cluster).await;
    let (motd, command) = (motd(), "x".repeat(8 * 1024));
    let before = resident_mib();

    let mut link = raw.link(cluster.mesh_address(0)).await;
    // Each after one that nobody ever wrote, in updates of as many as may come at once, and more.
    for round in 0..40_u64 {
        let count = if round % 10 == 9 { 2_000 } else { 200 };
        let entries = (0..count).map(|n| {
            let n = 10 + 10_000 * round + 2 * n;
            let after = (n - 1, cheops_core::model::EntryHash([7; 32]));
            let command = if count > 1_000 { "x" } else { &command };
            raw.signed(Claim { after, ..Claim::new(&raw.me, n, command) }.operation(&motd))
        });
        let entries: Vec<Arc<_>> = entries.collect();
        assert!(link.say(&raw.brings(&motd, entries)).await);
    }
    go_on(&cluster, "beside it").await;
    until("it is named", async || {
        named_in_feed(&cluster, 0).await.iter().any(|why| why.contains("more entries"))
    })
    .await;
    let after = resident_mib();
    assert!(after < before + 400, "{before} MiB, and {after} MiB after the flood");
    go_on_before_and_after_a_restart(&mut cluster).await;
}
