//! `cheops demo`, as a newcomer meets it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use cheops_api::{Client, SiteState};
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::until;

/// A folder for everything that a demo writes anywhere.
fn own_folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("cheops-e2e-demo-").tempdir().unwrap()
}

fn demo(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cheops"));
    command.arg("demo").args(arguments).env("TMPDIR", folder).env("XDG_RUNTIME_DIR", folder);
    command.stdin(Stdio::null()).current_dir(folder);
    command
}

fn text(ran: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
}

/// Processes whose environment points to this folder: the demo's and those it started.
fn processes_of(folder: &Path) -> Vec<PathBuf> {
    let marker = format!("TMPDIR={}", folder.display());
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let has = |process: &PathBuf| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == marker.as_bytes())
    };
    processes.filter(has).collect()
}

fn left_behind(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_plays_the_file_experiment_and_leaves_nothing_behind() {
    let folder = own_folder();
    let ran = demo(folder.path(), &["--script"]).output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran));
    assert!(text(&ran).contains("middle"), "{}", text(&ran));
    until("no process is left", async || processes_of(folder.path()).is_empty()).await;
    assert_eq!(left_behind(folder.path()), Vec::<PathBuf>::new());
}

/// Ends a demo that a failing test leaves.
struct Playing(Child);

impl Drop for Playing {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

fn order(folder: &Path, arguments: &[&str]) -> String {
    let ran = demo(folder, arguments).output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", text(&ran));
    text(&ran)
}

async fn hears(agent: &Client) -> Option<usize> {
    let sites = agent.sites().await.ok()?;
    Some(sites.sites.iter().filter(|site| site.state == SiteState::Up).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_takes_orders_and_an_interrupt_leaves_nothing_behind() {
    let folder = own_folder();
    let mut playing = Playing(demo(folder.path(), &[]).stdout(Stdio::piped()).spawn().unwrap());
    let out = playing.0.stdout.take().unwrap();
    let mut agents = Vec::new();
    for line in BufReader::new(out).lines() {
        let line = line.unwrap();
        let mut words = line.split_whitespace();
        if words.next().is_some_and(|word| word.starts_with("site")) {
            let address = words.find(|word| word.starts_with("http://"));
            agents.extend(address.map(|address| Client::new(address).unwrap()));
        }
        if agents.len() == 3 {
            break;
        }
    }
    assert_eq!(agents.len(), 3, "the demo says where its agents are");
    for agent in &agents {
        until("all hear each other", async || hears(agent).await == Some(2)).await;
    }
    order(folder.path(), &["cut", "site1", "site2"]);
    until("two are apart", async || hears(&agents[0]).await == Some(1)).await;
    order(folder.path(), &["cut"]);
    until("all are apart", async || hears(&agents[0]).await == Some(0)).await;
    order(folder.path(), &["heal"]);
    for agent in &agents {
        until("all hear each other again", async || hears(agent).await == Some(2)).await;
    }
    order(folder.path(), &["stop", "site2"]);
    until("one is gone", async || hears(&agents[1]).await.is_none()).await;
    order(folder.path(), &["start", "site2"]);
    until("it is back", async || hears(&agents[1]).await == Some(2)).await;
    let unknown = demo(folder.path(), &["stop", "site9"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2), "{}", text(&unknown));
    let second = demo(folder.path(), &[]).output().unwrap();
    assert_eq!(second.status.code(), Some(2), "one at a time: {}", text(&second));

    let pid = Pid::from_raw(i32::try_from(playing.0.id()).unwrap()).unwrap();
    let interrupted = Instant::now();
    kill_process(pid, Signal::INT).unwrap();
    let mut ended = None;
    until("the demo ends", async || {
        ended = playing.0.try_wait().unwrap();
        ended.is_some()
    })
    .await;
    eprintln!("the demo ended {:.2} s after the interrupt", interrupted.elapsed().as_secs_f64());
    assert!(ended.unwrap().success());
    until("no process is left", async || processes_of(folder.path()).is_empty()).await;
    assert_eq!(left_behind(folder.path()), Vec::<PathBuf>::new());
}
