//! A site of the mesh that has no agent, and says on the wire what it likes: the agents go on with each
//! other, before and after a restart, keep no more of it than so much, and say who it is.

use cheops_api::SiteState;
use cheops_core::engine::{Echo, Heartbeat, Message};
use cheops_core::model::{Author, EntryId, KeyId, OperationId, SiteId, Stamp, Status};

use crate::cluster::{LinkLog, until};
use crate::raw_peer::honest::{
    AGENTS, counted, go_on_before_and_after_a_restart, motd, named_in_feed, operations, seen,
    shared,
};
use crate::raw_peer::{Claim, RawPeer, closed, framed, two_agents_and_a_raw_peer, written};

/// Longer than any frame may be.
const TOO_LONG: u32 = 1 << 30;

fn beat(raw: &RawPeer) -> Heartbeat {
    Heartbeat {
        incarnation: raw.me.incarnation,
        sent_ms: 1,
        echo: None,
        unheard: Vec::new(),
        set_apart: Vec::new(),
    }
}

/// Bytes that are no message, each of its own kind. All of them end the link.
fn no_messages(raw: &RawPeer) -> Vec<(&'static str, Vec<u8>)> {
    let update = written(
        &raw.brings(&motd(), vec![raw.signed(Claim::new(&raw.me, 1, "true").operation(&motd()))]),
    );
    let mut broken = update.clone();
    broken.truncate(update.len() / 2);
    let endless = [vec![2], vec![0xff; 64]].concat();
    vec![
        ("nothing", framed(&[])),
        ("a number without an end", framed(&endless)),
        ("half an update", framed(&broken)),
        ("a name that is none", framed(&[2, 1, 3, b'a', 0, b'/'])),
        ("more than a frame may be", TOO_LONG.to_le_bytes().to_vec()),
        ("as much as can be said", u32::MAX.to_le_bytes().to_vec()),
    ]
}

// On one thread, so that what it logs is not mixed with what other tests do.
#[tokio::test]
async fn who_sends_bytes_that_are_no_message_is_named_and_fills_no_log() {
    let said = LinkLog::default();
    let _on_this_thread = tracing::subscriber::set_default(said.clone());
    let (mut cluster, mut raw) = two_agents_and_a_raw_peer().await;
    shared(&cluster).await;

    for round in 0..40 {
        for (what, bytes) in no_messages(&raw) {
            let mut link = raw.link(cluster.mesh_address(0)).await;
            assert!(link.bytes(&bytes).await, "{what}");
            let why = link.is_closed().await;
            assert!(why.contains("read") || why.contains("longer than"), "{round} {what}: {why}");
        }
    }
    // Half a frame, and no more of the stream: nothing can be heard there any more.
    let mut link = raw.link(cluster.mesh_address(0)).await;
    link.bytes(&1_000_u32.to_le_bytes()).await;
    link.send.finish().unwrap();
    link.is_closed().await;

    assert!(counted(&cluster, 0, "cheops_malformed_total{site=\"raw\"}").await >= 240);
    let named = named_in_feed(&cluster, 0).await;
    assert!(named.len() < 5 && named.contains(&"bytes that cannot be read".into()), "{named:?}");
    let problem = seen(&cluster, 0).await.problem.unwrap_or_default();
    assert!(problem.contains("its link was closed"), "{problem}");
    assert!(said.lines() < 150, "{} lines: {said:?}", said.lines());
    go_on_before_and_after_a_restart(&mut cluster).await;
}

#[tokio::test]
async fn who_sends_what_is_not_understood_over_and_over_fills_no_log() {
    let said = LinkLog::default();
    let _on_this_thread = tracing::subscriber::set_default(said.clone());
    let (mut cluster, mut raw) = two_agents_and_a_raw_peer().await;
    shared(&cluster).await;

    for link in 0..3 {
        let mut link_to = raw.link(cluster.mesh_address(0)).await;
        for n in 0..2_000_u16 {
            // A message of a kind that nobody knows, and a certificate that is none.
            let [low, high] = (1_000 + n).to_le_bytes();
            let unknown = [0x80 | low, 0x80 | high, 0x01, link, 2, 3];
            assert!(link_to.frame(&unknown).await);
            assert!(link_to.frame(&[4, 3, low, high, 9]).await);
        }
        let unsigned = (1..200).map(|n| Claim::new(&raw.me, n, "true").operation(&motd()));
        let unsigned = unsigned.map(std::sync::Arc::new).collect();
        assert!(link_to.say(&raw.brings(&motd(), unsigned)).await);
    }
    until("all of it was heard", async || {
        counted(&cluster, 0, "cheops_messages_left_out_total").await >= 6_000
    })
    .await;
    until("the last was refused", async || {
        counted(&cluster, 0, "cheops_entries_refused_total").await >= 3
    })
    .await;
    assert!(said.lines() < 150, "{} lines", said.lines());
    go_on_before_and_after_a_restart(&mut cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_speaks_for_others_or_at_the_edge_on_the_wire_changes_nothing_there() {
    let (mut cluster, mut raw) = two_agents_and_a_raw_peer().await;
    shared(&cluster).await;
    let motd = motd();
    let first = operations(&cluster, 0).await.remove(0).0;
    let first: OperationId = first.parse().unwrap();
    let victim = first.0.author.clone();
    let made_up = Author { site: SiteId::new("site2").unwrap(), ..raw.me.clone() };

    let mut links = Vec::new();
    for site in AGENTS {
        links.push(raw.link(cluster.mesh_address(site)).await);
    }
    let edge = Stamp { wall_ms: u64::MAX, counter: u64::MAX };
    let end = Stamp { wall_ms: (1 << 48) - 1, counter: u64::from(u32::MAX) };
    let claim = |author: &Author, n| Claim::new(author, n, "echo forged");
    let entries = [
        // In another's name: the next one, the last one, of an incarnation that never was.
        claim(&victim, first.0.n + 1).operation(&motd),
        claim(&victim, u64::MAX).operation(&motd),
        claim(&victim, u64::MAX / 2).operation(&motd),
        claim(&made_up, 1).operation(&motd),
        claim(&made_up, 2).reply(&motd, &first, Status::Ko),
        // Its own, with numbers and stamps that leave no room.
        claim(&raw.me, 0).operation(&motd),
        claim(&raw.me, u64::MAX).operation(&motd),
        Claim { claimed: edge, ..claim(&raw.me, 7) }.operation(&motd),
        Claim { after: (9, cheops_core::model::EntryHash([7; 32])), ..claim(&raw.me, 8) }
            .operation(&motd),
    ];
    let entries: Vec<_> = entries.into_iter().map(|entry| raw.signed(entry)).collect();
    let allowed = Claim { claimed: end, ..Claim::new(&raw.me, 1, "echo at the end") };
    let allowed = raw.signed(allowed.operation(&motd));
    let beyond = [victim.clone(), made_up.clone(), raw.me.clone()];
    let beyond = beyond.map(|author| EntryId { author, n: u64::MAX / 2 });
    let mut all_forgotten = raw.base(&motd, beyond.iter().cloned().collect());
    let edgy = Heartbeat {
        sent_ms: u64::MAX,
        echo: Some(Echo { sent_ms: u64::MAX, held_ms: u64::MAX }),
        unheard: (0..100_000).map(|n| SiteId::new(&format!("s{n}")).unwrap()).collect(),
        set_apart: vec![KeyId([9; 32]); 10_000],
        ..beat(&raw)
    };
    for link in &mut links {
        for entry in &entries {
            assert!(link.say(&raw.brings(&motd, vec![entry.clone()])).await);
        }
        assert!(link.say(&all_forgotten).await);
        if let Message::Update(update) = &mut all_forgotten {
            update.you_may_have_run = beyond.iter().cloned().collect();
        }
        assert!(link.say(&all_forgotten).await);
        assert!(link.say(&Message::Heartbeat(edgy.clone())).await);
        assert!(link.say(&Message::Heartbeat(beat(&raw))).await);
        // What it may say is taken after all of that.
        assert!(link.say(&raw.brings(&motd, vec![allowed.clone()])).await);
    }
    for site in AGENTS {
        until("its last word was heard", async || {
            operations(&cluster, site).await.iter().any(|it| it.1.contains("at the end"))
        })
        .await;
    }
    go_on_before_and_after_a_restart(&mut cluster).await;
    for site in AGENTS {
        let known = operations(&cluster, site).await;
        assert!(known.iter().all(|it| !it.1.contains("forged")), "{known:?}");
        assert_eq!(known.len(), 6, "{known:?}");
        let named = named_in_feed(&cluster, site).await;
        // What it says that site1 wrote, site1 knows better.
        let beyond = (site == 0).then_some("beyond what is known");
        for why in ["not its author's", "the end of time"].into_iter().chain(beyond) {
            assert!(named.iter().any(|it| it.contains(why)), "{why}: {named:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_tells_one_agent_this_and_the_other_that_on_the_wire_is_set_apart_by_both() {
    let (mut cluster, mut raw) = two_agents_and_a_raw_peer().await;
    shared(&cluster).await;
    for (site, what) in AGENTS.into_iter().zip(["this", "that"]) {
        let entry = Claim::new(&raw.me, 1, &format!("echo {what}")).operation(&motd());
        let message = raw.brings(&motd(), vec![raw.signed(entry)]);
        let mut link = raw.link(cluster.mesh_address(site)).await;
        assert!(link.say(&message).await);
        until("it is heard, or both found out already", async || {
            let known = operations(&cluster, site).await;
            known.iter().any(|it| it.1.contains(what))
                || seen(&cluster, site).await.state == SiteState::SetApart
        })
        .await;
    }
    for round in ["first", "second"] {
        for site in AGENTS {
            until("it is set apart", async || {
                seen(&cluster, site).await.state == SiteState::SetApart
            })
            .await;
            let connection = raw.connect(cluster.mesh_address(site)).await;
            let why = closed(&connection).await;
            assert!(why.contains("set apart"), "{round}: {why}");
        }
        go_on_before_and_after_a_restart(&mut cluster).await;
    }
    for site in AGENTS {
        let known = operations(&cluster, site).await;
        assert!(known.iter().all(|it| !it.1.contains("echo")), "neither counts: {known:?}");
    }
}
