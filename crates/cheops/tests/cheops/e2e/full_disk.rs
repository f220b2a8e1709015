//! A disk that runs full under an agent.

use std::fs;
use std::io::Write;
use std::path::Path;

use cheops_api::{ClientError, Upload, Wait};

use crate::e2e::cluster::{Setup, Site, SmallDisk, big_file, first, shell, until, waiting_for};

const DISK_MEBIBYTES: u32 = 64;
const MATRIX: &str = r#"{"ResolutionMatrix": [
    {"Before": "add", "After": "add", "Result": "take-both"}]}"#;

/// Writes until there is no room, or that much is written.
fn fill(path: &Path, mebibytes: usize) {
    let mut file = fs::File::create(path).unwrap();
    let piece = vec![1; 64 << 10];
    for _ in 0..mebibytes * 16 {
        if file.write_all(&piece).is_err() {
            return;
        }
    }
}

/// How many files the site has begun to keep.
fn partial_files(site: &Site) -> usize {
    fs::read_dir(site.data.join("blobs/partial")).map_or(0, Iterator::count)
}

/// Hands in an operation; how it was refused, if it was.
async fn refusal(site: &Site) -> Option<(u16, String)> {
    let add = waiting_for(Wait::Local, shell("add", "echo asked >> __ID__"));
    match site.hand_in("log", &add, &[]).await {
        Ok(_) => None,
        Err(ClientError::Refused(problem)) => Some((problem.status, problem.detail)),
        Err(error) => panic!("neither taken in nor refused: {error:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_operations_with_a_507_and_recovers_by_itself() {
    let mut cluster = Setup::sites(2).set().await;
    let Some(disk) = SmallDisk::mount(&cluster[2].data, DISK_MEBIBYTES) else {
        eprintln!("NOT TRIED: this machine does not let us mount a small disk");
        return;
    };
    cluster.start_all().await;
    cluster[2]
        .does("log", &first(shell("add", "echo first >> __ID__"), &cluster.everywhere(), MATRIX))
        .await;
    cluster.converges("log").await;

    // Little room is left: operations are refused, what is under way goes on.
    let ballast = cluster[2].data.join("ballast");
    fill(&ballast, 48);
    let (mut taken_in, mut refused) = (0, None);
    until("operations are refused", async || {
        refused = refusal(&cluster[2]).await;
        taken_in += usize::from(refused.is_none());
        refused.is_some()
    })
    .await;
    let (status, detail) = refused.unwrap();
    assert_eq!(status, 507);
    assert!(detail.contains("full"), "{detail}");
    let ran = cluster[2].cheops(&["exec", "--id", "log", "--type", "add", "--", "true"]);
    assert!(!ran.status.success());
    eprintln!("{}", String::from_utf8_lossy(&ran.stderr).trim());
    assert!(cluster[2].resource("log").await.is_some(), "reads go on");
    assert_eq!(cluster[2].operations("log").await.len(), 1 + taken_in);
    cluster[1].does("log", &shell("add", "echo from afar >> __ID__")).await;
    assert!(cluster[2].file("log").ends_with("from afar\n"), "{}", cluster[2].file("log"));

    // No room at all: what others do has to wait, and the disk's owner can still look.
    fill(&cluster[2].data.join("more-ballast"), 64);
    let add = shell("add", "echo when full >> __ID__; head -c 60000 /dev/zero | tr '\\0' x");
    for _ in 0..4 {
        cluster[1].does("log", &waiting_for(Wait::Local, add.clone())).await;
    }
    assert_eq!(refusal(&cluster[2]).await.map(|(status, _)| status), Some(507));
    assert!(cluster[2].resource("log").await.is_some(), "reads go on");
    cluster[2].client().metrics().await.unwrap();

    // Room is made, and nobody has to tell the agent.
    fs::remove_file(&ballast).unwrap();
    fs::remove_file(cluster[2].data.join("more-ballast")).unwrap();
    until("operations are taken in again", async || refusal(&cluster[2]).await.is_none()).await;
    cluster.converges("log").await;
    let count =
        |site: &Site, word: &str| site.file("log").lines().filter(|line| *line == word).count();
    for site in cluster.sites() {
        assert_eq!(count(site, "when full"), 4, "{}", site.name);
        let asked = count(site, "asked");
        assert_eq!(asked, taken_in + 1, "what was refused did not happen at {}", site.name);
    }
    drop(cluster);
    drop(disk);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_does_not_fit_leaves_room_for_the_rest_and_comes_when_there_is_some() {
    let mut cluster = Setup::sites(2).set().await;
    let Some(disk) = SmallDisk::mount(&cluster[2].data, 128) else {
        eprintln!("NOT TRIED: this machine does not let us mount a small disk");
        return;
    };
    cluster.start_all().await;
    let big = cluster.folder().join("big");
    big_file(&big, 96);
    let set = waiting_for(Wait::Local, shell("add", "cp {big} __ID__"));
    let upload = Upload { name: "big".to_owned(), path: big };
    cluster[1].hand_in("big", &first(set, &cluster.everywhere(), MATRIX), &[upload]).await.unwrap();

    until("the site says why it has not", async || {
        fs::read_to_string(&cluster[2].log).is_ok_and(|log| log.contains("bytes more, and"))
    })
    .await;
    // Nor does who hands it in there fill that disk: it is refused before it is read.
    let upload = Upload { name: "big".to_owned(), path: cluster.folder().join("big") };
    let set = waiting_for(Wait::Local, shell("add", "cp {big} __ID__"));
    match cluster[2].hand_in("other", &first(set, &cluster.everywhere(), MATRIX), &[upload]).await {
        Err(ClientError::Refused(problem)) => {
            assert_eq!(problem.status, 507);
            assert!(problem.detail.contains("bytes more, and"), "{}", problem.detail);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(partial_files(&cluster[2]), 0, "a part of it is of no use to anyone");
    let small = first(shell("add", "echo small >> __ID__"), &cluster.everywhere(), MATRIX);
    cluster[2].does("small", &small).await;
    assert!(cluster[2].stop().await.success());
    cluster.restart(2).await;

    disk.resize(512);
    cluster.converges("big").await;
    let copied = fs::metadata(cluster[2].files.join("big")).unwrap();
    assert_eq!(copied.len(), 96 << 20);
    drop(cluster);
    drop(disk);
}
