//! `cheops demo`, as a newcomer meets it.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Instant;

use cheops_api::{Client, ClientError, ClientOptions, DemoLink, RunSite, SiteState, Token};
use rustix::process::{Pid, Signal, kill_process};

use crate::e2e::cluster::until;

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
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

async fn nothing_is_left_of(folder: &Path) {
    until("no process is left", async || processes_of(folder).is_empty()).await;
    assert_eq!(left_behind(folder), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_plays_files_and_collaborations_and_leaves_nothing_behind() {
    let folder = own_folder();
    let ran = demo(folder.path(), &["--script"]).output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran));
    let parts = ["middle", "Sharing", "Replication", "Cross", "Otherwise", "Around"];
    for part in parts {
        assert!(text(&ran).contains(part), "{part} in {}", text(&ran));
    }
    nothing_is_left_of(folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_node_the_demo_says_what_is_missing() {
    let folder = own_folder();
    let mut collaborations = demo(folder.path(), &["--script", "collaborations"]);
    let ran = collaborations.env("PATH", folder.path()).output().unwrap();
    assert_eq!(ran.status.code(), Some(2), "{}", text(&ran));
    assert!(text(&ran).contains("needs Node"), "{}", text(&ran));
    nothing_is_left_of(folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_whose_claims_do_not_come_true_says_so_and_fails() {
    let (folder, programs) = (own_folder(), own_folder());
    // A compute service that passes on nothing by which its calls could be known again.
    let path = std::env::var("PATH").unwrap();
    let node = format!(
        "#!/bin/sh\ncase \"$*\" in *compute.mjs*) set -- \"$@\" --propagate none ;; esac\n\
         PATH='{path}'\nexec node \"$@\"\n"
    );
    fs::write(programs.path().join("node"), node).unwrap();
    fs::set_permissions(programs.path().join("node"), Permissions::from_mode(0o755)).unwrap();
    let ran = demo(folder.path(), &["--script", "collaborations"])
        .env("PATH", format!("{}:{path}", programs.path().display()))
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    for said in ["this is not so: with it, compute", "1 claim did not come true"] {
        assert!(text(&ran).contains(said), "{}", text(&ran));
    }
    nothing_is_left_of(folder.path()).await;
}

/// A demo that runs. Ended if a failing test leaves it.
struct Playing {
    process: Child,
    folder: PathBuf,
    /// Demos to look at take the usual ports, also those of a site that another has stopped: here
    /// they play one after the other.
    _turn: fs::File,
    out: Lines<BufReader<ChildStdout>>,
}

impl Playing {
    fn start(demo: &mut Command) -> Self {
        let folder = demo.get_current_dir().unwrap().to_owned();
        let turn = fs::File::create(std::env::temp_dir().join("cheops-e2e-demo.turn")).unwrap();
        turn.lock().unwrap();
        let mut process = demo.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, folder, _turn: turn, out }
    }

    /// What it says, up to a line that begins so.
    fn printed(&mut self, last: &str) -> Vec<String> {
        let mut printed = Vec::new();
        for line in self.out.by_ref() {
            printed.push(line.unwrap());
            if printed.last().unwrap().starts_with(last) {
                return printed;
            }
        }
        panic!("it does not say `{last}`: {printed:#?}");
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.process.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    async fn interrupt(&mut self) {
        let interrupted = Instant::now();
        self.signal(Signal::INT);
        let mut ended = None;
        until("the demo ends", async || {
            ended = self.process.try_wait().unwrap();
            ended.is_some()
        })
        .await;
        eprintln!("the demo ended {:.2} s later", interrupted.elapsed().as_secs_f64());
        assert!(ended.unwrap().success());
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let sites = left_behind(&self.folder).into_iter().flat_map(|demo| left_behind(&demo));
            for log in sites.map(|site| site.join("agent.log")).filter(|log| log.exists()) {
                let said = fs::read_to_string(&log).unwrap_or_default();
                let from = said.char_indices().rev().nth(6_000).map_or(0, |(at, _)| at);
                eprintln!("--- {} ends with\n{}", log.display(), &said[from..]);
            }
        }
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

/// What lets in at the agents of a demo.
fn token(folder: &Path) -> Token {
    let mut places = left_behind(folder).into_iter().map(|place| place.join("api.token"));
    Token::new(&fs::read_to_string(places.find(|file| file.exists()).unwrap()).unwrap()).unwrap()
}

/// The agents that a demo says are there.
fn agents(folder: &Path, printed: &[String]) -> Vec<Client> {
    let options = ClientOptions { token: Some(token(folder)), authorities: None };
    let of_line = |line: &String| {
        let mut words = line.split_whitespace();
        let is_site = words.next().is_some_and(|word| word.starts_with("site"));
        let address = words.find(|word| word.starts_with("http://")).filter(|_| is_site);
        address.map(|address| Client::with(address, &options).unwrap())
    };
    printed.iter().filter_map(of_line).collect()
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
    let mut playing = Playing::start(&mut demo(folder.path(), &[]));
    let printed = playing.printed("Paste these");
    let agents = agents(folder.path(), &printed);
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
    order(folder.path(), &["stop", "site2", "image"]);
    order(folder.path(), &["start", "site2", "image"]);
    let unknown = demo(folder.path(), &["stop", "site9"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2), "{}", text(&unknown));
    let second = demo(folder.path(), &[]).output().unwrap();
    assert_eq!(second.status.code(), Some(2), "one at a time: {}", text(&second));

    paste(folder.path(), &printed);
    playing.interrupt().await;
    nothing_is_left_of(folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_agents_page_cuts_links_and_stops_sites_even_its_own() {
    let folder = own_folder();
    let mut playing = Playing::start(&mut demo(folder.path(), &[]));
    let agents = agents(folder.path(), &playing.printed("Paste these"));
    let told = agents[0].demo().await.unwrap();
    let apis: Vec<String> = told.sites.iter().map(|site| site.api.clone()).collect();
    assert_eq!(apis, agents.iter().map(Client::address).collect::<Vec<_>>());
    assert!(told.sites.iter().all(|site| site.running && site.services.contains_key("kv")));
    assert_eq!(told.links.len(), 3);
    assert!(told.links.iter().all(|link| !link.cut));

    let link = |cut| DemoLink { a: "site3".to_owned(), b: "site1".to_owned(), cut };
    let told = agents[1].set_demo_link(&link(true)).await.unwrap();
    let cut: Vec<_> =
        told.links.iter().filter(|link| link.cut).map(|it| (&*it.a, &*it.b)).collect();
    assert_eq!(cut, [("site1", "site3")]);
    until("two are apart", async || hears(&agents[0]).await == Some(1)).await;
    assert_eq!(hears(&agents[1]).await, Some(2), "and both hear the third");
    agents[0].set_demo_link(&link(false)).await.unwrap();
    until("they hear each other again", async || hears(&agents[0]).await == Some(2)).await;

    let site = |running| RunSite { site: "site1".to_owned(), running };
    let told = agents[0].set_demo_site(&site(false)).await.unwrap();
    assert!(!told.sites[0].running, "it says so itself");
    until("it is gone", async || hears(&agents[0]).await.is_none()).await;
    let told = agents[1].set_demo_site(&site(true)).await.unwrap();
    assert!(told.sites[0].running);
    until("it is back", async || hears(&agents[0]).await == Some(2)).await;
    // At once one after the other.
    agents[1].set_demo_site(&site(false)).await.unwrap();
    agents[1].set_demo_site(&site(true)).await.unwrap();
    until("it is back again", async || hears(&agents[0]).await == Some(2)).await;

    let same = DemoLink { b: "site3".to_owned(), ..link(true) };
    let nobody = RunSite { site: "site9".to_owned(), running: false };
    for refused in [agents[0].set_demo_link(&same).await, agents[0].set_demo_site(&nobody).await] {
        let Err(ClientError::Refused(problem)) = refused else { panic!("{refused:?}") };
        assert_eq!((problem.status, problem.title.as_str()), (400, "the demo cannot do this"));
    }
    playing.interrupt().await;
    nothing_is_left_of(folder.path()).await;
}

/// Does what somebody does who pastes all that a demo says, in one go.
fn paste(folder: &Path, printed: &[String]) {
    let starts = ["  cheops ", "  curl ", "  until ", "  id="];
    let is_command = |line: &&String| {
        // Watching has no end.
        starts.iter().any(|start| line.starts_with(start)) && !line.contains("cheops watch")
    };
    let commands: Vec<&str> = printed.iter().filter(is_command).map(String::as_str).collect();
    assert!(commands.len() > 25, "{printed:#?}");
    // Stops at the first that fails, and shows what ran.
    let session = "set -eux\ncurl() { command curl -sS -f \"$@\"; }\n".to_owned();
    let program = Path::new(env!("CARGO_BIN_EXE_cheops")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let pasted = Command::new("bash")
        .args(["-c", &(session + &commands.join("\n"))])
        .env("PATH", path)
        .envs([("TMPDIR", folder), ("XDG_RUNTIME_DIR", folder)])
        .output()
        .unwrap();
    assert!(pasted.status.success(), "{}", text(&pasted));
    let said = text(&pasted);
    for expected in ["\"cpus\":16", "\"os\":\"linux\"", "x-cheops-site: site3"] {
        assert!(said.to_lowercase().contains(expected), "{expected} in {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_that_is_killed_takes_its_processes_along() {
    let folder = own_folder();
    let mut playing = Playing::start(&mut demo(folder.path(), &["--script"]));
    playing.printed("One after the other");
    // It, the agents, and three services of each site.
    assert!(processes_of(folder.path()).len() >= 13);
    playing.signal(Signal::KILL);
    until("no process is left", async || processes_of(folder.path()).is_empty()).await;
}
