//! Agents of other versions, on the wire: the version before is refused by name on both sides, a later one
//! is understood as far as it speaks this one, and what it adds is kept and passed on.

use cheops_core::engine::Message;
use cheops_core::model::{Extension, OperationId, Status};

use crate::cluster::until;
use crate::raw_peer::honest::{
    AGENTS, counted, go_on_before_and_after_a_restart, motd, operations, seen, shared,
};
use crate::raw_peer::{
    Claim, Greeting, RAW, RawLink, RawPeer, closed, two_agents_and_a_raw_peer, written,
};

/// Which agent is to be upgraded, as both sides say it.
const UPGRADE_RAW: &str = "upgrade the agent at `raw`";
const UPGRADE_AGENT: &str = "upgrade this agent, not the one at `raw`";

fn of_the_version_before(theirs: Greeting) -> Greeting {
    Greeting { newest: theirs.oldest - 1, oldest: theirs.oldest - 1, ..theirs }
}

fn of_a_version_that_left_this_one_behind(theirs: Greeting) -> Greeting {
    Greeting { newest: theirs.newest + 2, oldest: theirs.newest + 1, ..theirs }
}

/// What the raw peer makes of the greeting that it heard.
type Greets = fn(Greeting) -> Greeting;

fn of_the_next_version(theirs: Greeting) -> Greeting {
    Greeting { newest: theirs.newest + 1, more: b"\x05later".to_vec(), ..theirs }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_a_version_in_common_is_refused_by_name_on_both_sides() {
    let (mut cluster, mut raw) = two_agents_and_a_raw_peer().await;
    shared(&cluster).await;
    let greetings: [(Greets, &str); 2] = [
        (of_the_version_before, UPGRADE_RAW),
        (of_a_version_that_left_this_one_behind, UPGRADE_AGENT),
    ];
    for (greeting, upgrade) in greetings {
        // It calls an agent, and an agent calls it: either way the other side is told why,
        let link = raw.link_as(cluster.mesh_address(0), greeting).await;
        let why = closed(&link.connection).await;
        assert!(why.contains(upgrade), "{why}");
        let link = raw.is_called(greeting).await;
        let why = closed(&link.connection).await;
        assert!(why.contains(upgrade), "{why}");
        // and so is who asks this side.
        until("an agent that called says so", async || {
            let mut said = Vec::new();
            for site in AGENTS {
                said.push(seen(&cluster, site).await.problem.unwrap_or_default());
            }
            said.iter().any(|problem| problem.contains(upgrade))
        })
        .await;
    }
    go_on_before_and_after_a_restart(&mut cluster).await;
}

/// Both are heard, whoever called.
async fn links(raw: &mut RawPeer, cluster: &crate::cluster::Cluster) -> Vec<RawLink> {
    let mut links = Vec::new();
    for site in AGENTS {
        links.push(raw.link_as(cluster.mesh_address(site), of_the_next_version).await);
    }
    links
}

fn beside(name: &str, must_understand: bool) -> Vec<Extension> {
    vec![Extension { name: name.into(), must_understand, value: b"of a later version".into() }]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_version_is_understood_and_what_it_adds_is_kept_and_passed_on() {
    let (mut cluster, mut raw) = two_agents_and_a_raw_peer().await;
    shared(&cluster).await;
    let motd = motd();
    let first: OperationId = operations(&cluster, 0).await.remove(0).0.parse().unwrap();

    // Heard by one agent only: a message of a new kind, one with more at its end, what is said beside an
    // operation and a reply, and what must be understood and is not.
    let mut link = raw.link_as(cluster.mesh_address(0), of_the_next_version).await;
    assert!(link.frame(b"\xe7\x07of a kind that there will be").await);
    let said = Claim { extra: beside("colour", false), ..Claim::new(&raw.me, 1, "echo later") };
    let said = raw.signed(said.operation(&motd));
    let longer = [written(&raw.brings(&motd, vec![said.clone()])), b"more".to_vec()].concat();
    assert!(link.frame(&longer).await);
    let reply = Claim { after: (1, said.hash()), ..Claim::new(&raw.me, 2, "") };
    let reply = Claim { extra: beside("taste", false), ..reply };
    let reply = raw.signed(reply.reply(&motd, &first, Status::Ok));
    assert!(link.say(&raw.brings(&motd, vec![reply.clone()])).await);
    let strict = Claim { after: (2, reply.hash()), ..Claim::new(&raw.me, 3, "echo strict") };
    let strict = Claim { extra: beside("hold", true), ..strict };
    assert!(link.say(&raw.brings(&motd, vec![raw.signed(strict.operation(&motd))])).await);
    until("what is not understood was counted", async || {
        counted(&cluster, 0, "cheops_messages_left_out_total").await >= 2
    })
    .await;
    drop(link);

    // The other one has it from there, and both have run it.
    for site in AGENTS {
        until("it is passed on", async || {
            let known = operations(&cluster, site).await;
            known.iter().any(|it| it.1.contains("echo later") && it.2.len() >= 2)
        })
        .await;
    }
    go_on_before_and_after_a_restart(&mut cluster).await;

    // To who has forgotten all it said, each agent says it as it was said, after a restart as well.
    for link in &mut links(&mut raw, &cluster).await {
        let mut asks = raw.update(&motd, Vec::new());
        asks.asks = true;
        assert!(link.say(&Message::Update(Box::new(asks))).await);
        until("it says all of it", async || {
            let heard = link.entries();
            [&said, &reply].iter().all(|said| heard.contains(said))
        })
        .await;
        let heard = link.entries();
        let said_by_raw = heard.iter().filter(|it| it.id().author.site.as_str() == RAW);
        for entry in said_by_raw {
            let original = if entry.id().n == 1 { &said } else { &reply };
            assert_eq!(entry, original, "with what is said beside, and its proof");
            assert_eq!(entry.proof(), original.proof());
        }
    }
    for site in AGENTS {
        let known = operations(&cluster, site).await;
        assert!(known.iter().all(|it| !it.1.contains("strict")), "{known:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_calls_the_next_version_is_understood_there_too() {
    let (mut cluster, mut raw) = two_agents_and_a_raw_peer().await;
    shared(&cluster).await;
    let mut link = raw.is_called(of_the_next_version).await;
    let said = Claim { extra: beside("colour", false), ..Claim::new(&raw.me, 1, "echo later") };
    let said = raw.signed(said.operation(&motd()));
    assert!(link.say(&raw.brings(&motd(), vec![said])).await);
    for site in AGENTS {
        until("it is heard and passed on", async || {
            operations(&cluster, site).await.iter().any(|it| it.1.contains("echo later"))
        })
        .await;
    }
    drop(link);
    go_on_before_and_after_a_restart(&mut cluster).await;
}
