//! Agents that are stopped or killed while commands run.

use cheops_api::{ReplyStatus, ResourceState, Wait};

use crate::e2e::cluster::{Cluster, Setup, Site, first, shell, until, waiting_for};

const MATRIX: &str = r#"{"ResolutionMatrix": [
    {"Before": "add", "After": "add", "Result": "take-both"},
    {"Before": "add", "After": "safe", "Result": "take-both"},
    {"Before": "safe", "After": "safe", "Result": "take-both"}],
    "Types": {"safe": {"Idempotent": true}}}"#;

/// Takes long the first time: until a file `go` is there. It starts a process of its own, and one
/// that leaves its group.
const LONG: &str = "echo run >> runs; [ -e go ] && exit 0; sleep 600 & echo $! > child; \
                    setsid sleep 600 & echo $! > stray; echo $$ > shell; wait";

async fn begins(cluster: &Cluster, id: &str) {
    cluster[1].does(id, &first(shell("add", "true"), &cluster.everywhere(), MATRIX)).await;
    cluster.converges(id).await;
}

fn runs(site: &Site) -> usize {
    site.file("runs").lines().count()
}

fn lives(site: &Site, name: &str) -> bool {
    let pid = site.file(name);
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim()));
    // One that ended and whose end nobody has looked at yet does nothing any more.
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

async fn status(site: &Site, id: &str, operation: &str, of: &Site) -> Option<ReplyStatus> {
    let operations = site.operations(id).await;
    let operation = operations.into_iter().find(|known| known.id == operation)?;
    operation.replies.get(&of.name).map(|reply| reply.status)
}

/// Kills the first site's agent while it runs [`LONG`], and starts it again.
async fn killed_while_running(cluster: &mut Cluster, id: &str, kind: &str) -> String {
    for number in 2..=cluster.count() {
        std::fs::write(cluster[number].files.join("go"), "").unwrap();
    }
    for name in ["go", "runs", "shell"] {
        let _none = std::fs::remove_file(cluster[1].files.join(name));
    }
    let operation = cluster[1].does(id, &waiting_for(Wait::None, shell(kind, LONG))).await;
    until("it runs", async || !cluster[1].file("shell").is_empty()).await;
    for name in ["shell", "child", "stray"] {
        assert!(lives(&cluster[1], name), "{name}");
    }
    cluster[1].kill();
    until("nothing of it survives the agent", async || {
        ["shell", "child", "stray"].iter().all(|name| !lives(&cluster[1], name))
    })
    .await;
    std::fs::write(cluster[1].files.join("go"), "").unwrap();
    cluster.restart(1).await;
    operation
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_asked_to_stop_lets_its_commands_end() {
    let mut cluster = Setup::sites(2).start().await;
    begins(&cluster, "slow").await;
    let slow = shell("add", "echo > begun; sleep 2; echo ended >> ended; echo done");
    let operation = cluster[1].does("slow", &waiting_for(Wait::None, slow)).await;
    until("it runs", async || cluster[1].files.join("begun").exists()).await;
    assert!(cluster[1].stop().await.success());
    assert_eq!(cluster[1].file("ended"), "ended\n", "it ended before the agent did");
    cluster.restart(1).await;
    cluster.converges("slow").await;
    for site in cluster.sites() {
        let operations = site.operations("slow").await;
        let known = operations.iter().find(|known| known.id == operation).unwrap();
        let reply = &known.replies["site1"];
        assert_eq!((reply.status, reply.output.as_str()), (ReplyStatus::Ok, "done\n"));
        assert_eq!(site.file("ended"), "ended\n", "once, at {}", site.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ran_when_its_agent_was_killed_is_in_doubt_until_the_operator_settles_it() {
    let mut cluster = Setup::sites(2).start().await;
    begins(&cluster, "doubtful").await;
    for (decision, runs_then) in [("rerun", 2), ("skip", 1)] {
        let operation = killed_while_running(&mut cluster, "doubtful", "add").await;
        until("it is in doubt", async || {
            cluster[1].state("doubtful").await == Some(ResourceState::InDoubt)
        })
        .await;
        assert_eq!(runs(&cluster[1]), 1, "never twice in silence");
        let awaited = cluster[1].resource("doubtful").await.unwrap().awaits;
        assert_eq!(awaited.as_ref(), Some(&operation));
        for site in cluster.sites() {
            until("every site says so", async || {
                status(site, "doubtful", &operation, &cluster[1]).await
                    == Some(ReplyStatus::InDoubt)
            })
            .await;
        }
        // Whoever asks beside it for what needs the operator is told, and where to settle it.
        let listed = cluster[2].cheops(&["resources", "--state", "unknown-result"]);
        assert!(String::from_utf8_lossy(&listed.stdout).contains("doubtful"), "{listed:?}");
        let beside = cluster[2].cheops(&["settle", "doubtful", &operation, decision]);
        assert_eq!(beside.status.code(), Some(2));
        let told = String::from_utf8_lossy(&beside.stderr);
        assert!(told.contains("its result is unknown at site1: `--site site1`"), "{told}");
        // One is settled where it is in doubt, the other from the site beside it.
        let settled = match decision {
            "skip" => cluster[1].cheops(&["settle", "doubtful", &operation, decision]),
            _ => {
                cluster[2].cheops(&["settle", "doubtful", &operation, decision, "--site", "site1"])
            }
        };
        assert!(settled.status.success(), "{}", String::from_utf8_lossy(&settled.stderr));
        cluster.converges("doubtful").await;
        assert_eq!(runs(&cluster[1]), runs_then, "after {decision}");
        for site in cluster.sites() {
            let status = status(site, "doubtful", &operation, &cluster[1]).await;
            eprintln!("after {decision}, {} says of site1: {status:?}", site.name);
            if decision == "rerun" {
                assert_eq!(status, Some(ReplyStatus::Ok));
            }
        }
        // Nothing is left to settle, and the resource goes on.
        let again = cluster[1].cheops(&["settle", "doubtful", &operation, decision]);
        assert_eq!(again.status.code(), Some(2));
        let listed = cluster[2].cheops(&["resources", "--state", "in-doubt"]);
        assert!(!String::from_utf8_lossy(&listed.stdout).contains("doubtful"), "{listed:?}");
        cluster[2].does("doubtful", &shell("add", "echo on >> on")).await;
        assert!(cluster[1].file("on").ends_with("on\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_run_twice_is_run_again_after_its_agent_was_killed() {
    let mut cluster = Setup::sites(2).start().await;
    begins(&cluster, "safe").await;
    let operation = killed_while_running(&mut cluster, "safe", "safe").await;
    cluster.converges("safe").await;
    assert_eq!(runs(&cluster[1]), 2);
    for site in cluster.sites() {
        let status = status(site, "safe", &operation, &cluster[1]).await;
        assert_eq!(status, Some(ReplyStatus::Ok), "as {} knows it", site.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_log_another_one_has_taken_ends_and_says_so() {
    let mut cluster = Setup::sites(2).start().await;
    begins(&cluster, "taken").await;
    // As a second agent does whose start script clears locks away first.
    let lock = cluster[1].data.join("lock");
    std::fs::rename(&lock, lock.with_extension("old")).unwrap();
    std::fs::write(&lock, "").unwrap();
    let refused = cluster[1].hand_in("taken", &shell("add", "echo >> never"), &[]).await;
    assert!(refused.is_err(), "{refused:?}");
    let ended = cluster[1].ended().await;
    assert_eq!(ended.code(), Some(1), "not a stop that somebody asked for");
    let told = cluster[1].log_tail();
    assert!(told.contains("another writer has opened the log of this site"), "{told}");
    assert!(told.contains("give each one of its own"), "{told}");
    assert!(!cluster[1].files.join("never").exists(), "what is not in the log does not run");
    cluster.restart(1).await;
    cluster[2].does("taken", &shell("add", "echo on >> on")).await;
    assert_eq!(cluster[1].file("on"), "on\n");
}
