//! Files too large to be whole anywhere but on disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use cheops_api::{Upload, Wait};

use crate::e2e::cluster::{Cluster, Setup, Site, big_file, first, shell, until, waiting_for};

const MEBIBYTES: usize = 64;
/// As much of a file as must have arrived when the links are cut.
const SOME: u64 = 8 << 20;
/// How often it is tried to cut a transfer in the middle.
const TRIES: usize = 8;
const MATRIX: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

fn hash(path: &Path) -> String {
    let ran = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8_lossy(&ran.stdout).split(' ').next().unwrap_or_default().to_owned()
}

/// The files below a folder that are at least that large, with their sizes.
fn large_files(folder: &Path, at_least: u64) -> Vec<(PathBuf, u64)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        match entry.metadata() {
            Ok(data) if data.is_dir() => found.extend(large_files(&entry.path(), at_least)),
            Ok(data) if data.len() >= at_least => found.push((entry.path(), data.len())),
            _ => {}
        }
    }
    found
}

/// What a site has of files on their way, or kept; the log is not among them.
fn kept(site: &Site) -> Vec<(PathBuf, u64)> {
    large_files(&site.data.join("blobs"), 1)
}

async fn send(cluster: &Cluster, id: &str, path: &Path) -> String {
    let set = waiting_for(Wait::None, shell("set", "cp {big} __ID__"));
    let set = first(set, &cluster.everywhere(), MATRIX);
    let upload = Upload { name: "big".to_owned(), path: path.to_owned() };
    cluster[1].hand_in(id, &set, &[upload]).await.unwrap().0
}

async fn arrives(cluster: &Cluster, id: &str, want: &str) {
    for site in cluster.sites() {
        let path = site.files.join(id);
        until("the file is everywhere", async || {
            path.metadata().is_ok_and(|data| data.len() == (MEBIBYTES << 20) as u64)
                && hash(&path) == want
        })
        .await;
    }
    cluster.converges(id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn small_operations_go_on_while_a_big_file_travels() {
    let cluster = Setup::sites(3).start().await;
    let small = first(shell("set", "echo 0 > __ID__"), &cluster.everywhere(), MATRIX);
    cluster[1].does("small", &small).await;
    let big = cluster.folder().join("big");
    big_file(&big, MEBIBYTES);
    let want = hash(&big);
    let began = Instant::now();
    send(&cluster, "big", &big).await;
    let travels = AtomicBool::new(true);
    let small = async {
        let mut slowest = std::time::Duration::ZERO;
        let mut count = 0;
        while travels.load(Ordering::SeqCst) || count == 0 {
            count += 1;
            let began = Instant::now();
            cluster[1].does("small", &shell("set", format!("echo {count} > __ID__"))).await;
            slowest = slowest.max(began.elapsed());
        }
        (count, slowest)
    };
    let travel = async {
        arrives(&cluster, "big", &want).await;
        travels.store(false, Ordering::SeqCst);
        began.elapsed()
    };
    let ((count, slowest), took) = tokio::join!(small, travel);
    eprintln!(
        "{MEBIBYTES} MiB were everywhere after {:.2} s; meanwhile {count} small operations, each \
         replied to by all sites, the slowest within {:.0} ms",
        took.as_secs_f64(),
        slowest.as_secs_f64() * 1000.0
    );
    cluster.converges("small").await;
    for site in cluster.sites() {
        assert_eq!(site.file("small").trim(), count.to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_is_cut_in_the_middle_goes_on_after_the_heal() {
    let cluster = Setup::sites(3).start().await;
    let whole = (MEBIBYTES << 20) as u64;
    let mut caught = 0;
    for time in 0..TRIES {
        let big = cluster.folder().join("big");
        big_file(&big, MEBIBYTES);
        let want = hash(&big);
        let id = format!("big-{time}");
        let before = kept(&cluster[2]).len();
        send(&cluster, &id, &big).await;
        until("a good part of it has arrived", async || {
            let parts = kept(&cluster[2]);
            parts.len() > before && parts.iter().any(|(_, size)| (SOME..whole).contains(size))
                || parts.iter().filter(|(_, size)| *size == whole).count() > before
        })
        .await;
        cluster.cut();
        cluster.nobody_hears().await;
        let sizes: Vec<u64> = kept(&cluster[2]).into_iter().map(|(_, size)| size).collect();
        let in_the_middle = sizes.iter().any(|size| *size < whole);
        caught += usize::from(in_the_middle);
        cluster.heal();
        let healed = Instant::now();
        arrives(&cluster, &id, &want).await;
        let had: u64 = sizes.iter().filter(|size| **size < whole).sum();
        eprintln!(
            "cut with {} of {MEBIBYTES} MiB there: all of it everywhere {:.2} s after the heal",
            had >> 20,
            healed.elapsed().as_secs_f64()
        );
        if caught == 2 {
            break;
        }
    }
    eprintln!("a transfer was cut in the middle {caught} times");
    assert!(caught > 0, "every transfer was faster than the cut: the file is too small");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_nothing_needs_any_more_is_removed_everywhere() {
    let cluster = Setup::sites(3).config("[audit]\nretention = \"1s\"").start().await;
    let big = cluster.folder().join("big");
    big_file(&big, MEBIBYTES);
    let want = hash(&big);
    send(&cluster, "big", &big).await;
    arrives(&cluster, "big", &want).await;
    for site in cluster.sites() {
        let sizes: Vec<u64> = kept(site).into_iter().map(|(_, size)| size).collect();
        assert_eq!(sizes, [(MEBIBYTES << 20) as u64], "kept once at {}", site.name);
    }
    cluster[2].does("big", &shell("set", "echo small > __ID__")).await;
    cluster.converges("big").await;
    for site in cluster.sites() {
        until(&format!("the file is gone from {}", site.name), async || kept(site).is_empty())
            .await;
        assert_eq!(site.file("big"), "small\n");
    }
}
