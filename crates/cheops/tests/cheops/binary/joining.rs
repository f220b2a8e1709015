//! From nothing to two sites, as the README has it: `cheops up`, `invite` and `join`, as processes.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::binary::running::{Ran, command};

const PATIENCE: Duration = Duration::from_secs(60);

/// A machine: a folder, and a port for the other sites.
struct Machine {
    dir: tempfile::TempDir,
    listen: String,
}

/// An agent that runs in the foreground of some terminal.
struct Foreground {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Drop for Foreground {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

impl Foreground {
    /// What the agent says once it runs.
    fn first_line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut error = String::new();
            self.child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
            panic!("it did not start: {error}");
        }
        line
    }
}

impl Machine {
    fn new() -> Self {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap();
        let listen = port.local_addr().unwrap().to_string();
        Self { dir: tempfile::tempdir().unwrap(), listen }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// In the machine's folder.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.current_dir(self.dir.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().unwrap().into()
    }

    /// What is typed there, with the ports of this test.
    fn at_ports(&self, arguments: &[&str]) -> Command {
        self.command(&[arguments, &["--listen", &self.listen, "--api", "127.0.0.1:0"]].concat())
    }

    fn start(&self, arguments: &[&str]) -> Foreground {
        let mut command = self.at_ports(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Foreground { child, out }
    }

    /// A token for that site, as the command to run there.
    fn invite(&self, site: &str, more: &[&str]) -> Vec<String> {
        let ran = self.run(&[&["invite", site], more].concat());
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        ran.out.split_whitespace().map(str::to_owned).collect()
    }
}

/// `cheops join TOKEN` as arguments.
fn typed(join: &[String]) -> [&str; 2] {
    assert_eq!(&join[..2], ["cheops", "join"]);
    ["join", join[2].as_str()]
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_first_site_is_made_once_and_started_again_by_the_same_command() {
    let paris = Machine::new();
    let mut agent = paris.start(&["up", "paris"]);
    assert!(agent.first_line().starts_with("site paris: API on http://127.0.0.1:"));
    let identity = std::fs::read(paris.path("paris.pem")).unwrap();
    let key = std::fs::read(paris.path("mesh/authority.key")).unwrap();
    assert_eq!(
        (mode(&paris.path("paris.pem")), mode(&paris.path("mesh/authority.key"))),
        (0o600, 0o600)
    );
    drop(agent);
    assert!(paris.start(&["up", "paris"]).first_line().starts_with("site paris: "));
    assert_eq!(std::fs::read(paris.path("paris.pem")).unwrap(), identity);

    // What an earlier attempt did not come to is made, and what it did is kept.
    std::fs::remove_file(paris.path("paris.toml")).unwrap();
    std::fs::remove_dir_all(paris.path("cheops-data")).unwrap();
    assert!(paris.start(&["up", "paris"]).first_line().starts_with("site paris: "));
    assert_eq!(std::fs::read(paris.path("mesh/authority.key")).unwrap(), key);
    assert_eq!(std::fs::read(paris.path("paris.pem")).unwrap(), identity);

    let other = paris.run(&["up", "lyon"]);
    assert_eq!(other.code, Some(2), "{}", other.err);
    assert!(other.err.contains("there is a site in `.` already"), "{}", other.err);
    let odd = paris.run(&["up", "lyon", "--advertise", "a b"]);
    assert!(odd.err.contains("`--advertise` takes a host"), "{}", odd.err);
}

#[test]
fn a_site_joins_by_a_token_and_goes_on_where_it_was_interrupted() {
    let (paris, lyon) = (Machine::new(), Machine::new());
    let mut first = paris.start(&["up", "paris"]);
    first.first_line();
    let join = paris.invite("lyon", &[]);

    // Interrupted when the token is used and nothing was written yet, and again a little later.
    for obstacle in ["lyon.pem", "lyon.toml"] {
        std::fs::create_dir(lyon.path(obstacle)).unwrap();
        let ran: Ran = lyon.at_ports(&typed(&join)).output().unwrap().into();
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains(&format!("{obstacle}` could not be written")), "{}", ran.err);
        std::fs::remove_dir(lyon.path(obstacle)).unwrap();
        let key = std::fs::read_dir(lyon.dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let key: Vec<_> =
            key.filter(|path| path.extension().is_some_and(|it| it == "key")).collect();
        assert_eq!(mode(&key[0]), 0o600);
    }
    let mut second = lyon.start(&typed(&join));
    assert!(second.first_line().starts_with("site lyon: API on http://127.0.0.1:"));
    assert_eq!(mode(&lyon.path("lyon.pem")), 0o600);
    let listed = paris.run(&["invite", "--list"]);
    assert!(listed.out.contains("used from 127.0.0.1"), "{}", listed.out);
    drop(second);

    // The same command starts it again, also where nobody could be asked.
    drop(first);
    assert!(lyon.start(&typed(&join)).first_line().starts_with("site lyon: "));
    let names: Vec<_> = std::fs::read_dir(lyon.dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut names: Vec<_> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["cheops-data", "lyon.pem", "lyon.toml"]);
}

#[test]
fn a_token_that_does_not_serve_says_why() {
    let (paris, other) = (Machine::new(), Machine::new());
    let (mut first, mut of_another) = (paris.start(&["up", "paris"]), other.start(&["up", "oslo"]));
    first.first_line();
    of_another.first_line();
    let refused = |join: &[String], code: i32, words: &str| {
        let machine = Machine::new();
        let ran: Ran = machine.at_ports(&typed(join)).output().unwrap().into();
        assert_eq!(ran.code, Some(code), "{words}: {}", ran.err);
        // It is wrapped to the width of a line.
        let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{words}: {said}");
        let secret = join[2].split('.').nth(3).unwrap().split('@').next().unwrap();
        assert!(!said.contains(secret), "{said}");
    };

    let used = paris.invite("lyon", &[]);
    Machine::new().start(&typed(&used)).first_line();
    refused(&used, 2, "the token was used already, and serves once");

    let revoked = paris.invite("nice", &[]);
    let id = revoked[2].split('.').nth(2).unwrap();
    let ran = paris.run(&["invite", "--revoke", id]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.out, "the invitation of nice is revoked\n");
    refused(&revoked, 2, "the token was revoked");

    let over = paris.invite("lille", &["--for", "1s"]);
    until("its time is over", || {
        let listed = paris.run(&["--output", "json", "invite", "--list"]).json();
        listed.as_array().unwrap().iter().any(|it| it["state"] == "expired")
    });
    refused(&over, 2, "the token's time is over");

    let good = paris.invite("metz", &[]);
    let (token, _) = good[2].split_once('@').unwrap();
    let elsewhere = format!("{token}@{}", other.listen);
    let elsewhere = ["cheops".to_owned(), "join".to_owned(), elsewhere];
    refused(&elsewhere, 2, "is not of the mesh that the token is for");
    drop(of_another);
    refused(&elsewhere, 3, "the token still serves");

    let nonsense = paris.run(&["join", "cheops9.x"]);
    assert_eq!(nonsense.code, Some(2), "{}", nonsense.err);
    assert!(nonsense.err.contains("upgrade `cheops` here"), "{}", nonsense.err);
}

/// What the README has one type, each with where.
fn typed_in_the_readme() -> Vec<(String, String)> {
    let readme = include_str!("../../../../../README.md");
    let (_, section) = readme.split_once("## A site of your own").unwrap();
    let block = section.split("```").nth(1).unwrap();
    let commands = block.lines().filter_map(|line| line.split_once("$ "));
    let bare = |(machine, command): (&str, &str)| {
        let command = command.split(" #").next().unwrap().trim();
        (machine.to_owned(), command.to_owned())
    };
    commands.map(bare).collect()
}

/// What a shell makes of it.
fn words(command: &str) -> Vec<String> {
    let quoted = command.split('\'').enumerate();
    let words = quoted.flat_map(|(n, part)| match n % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
        _ => vec![part.to_owned()],
    });
    let words: Vec<_> = words.collect();
    assert_eq!(words[0], "cheops");
    words[1..].to_vec()
}

#[test]
fn the_four_commands_of_the_readme_lead_from_nothing_to_an_operation_at_two_sites() {
    let typed = typed_in_the_readme();
    let [up, invite, join, exec] = typed.as_slice() else { panic!("{typed:?}") };
    let (paris, lyon) = (Machine::new(), Machine::new());
    assert_eq!([&up.0, &invite.0, &join.0, &exec.0], ["paris", "paris", "lyon", "paris"]);
    let arguments = |command: &str| words(command);
    let run = |machine: &Machine, arguments: &[String]| {
        machine.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let start = |machine: &Machine, arguments: &[String]| {
        machine.start(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };

    let mut first = start(&paris, &arguments(&up.1));
    first.first_line();
    let invited = run(&paris, &arguments(&invite.1));
    assert_eq!(invited.code, Some(0), "{}", invited.err);
    // The token is another one each time.
    let mut join = arguments(&join.1);
    assert!(join[1].starts_with("cheops1.…@"), "{join:?}");
    join[1] = arguments(&invited.out)[1].clone();
    let mut second = start(&lyon, &join);
    second.first_line();
    // As long as it takes to go back to the first machine.
    until("they hear each other", || {
        let sites = paris.run(&["--output", "json", "sites"]).json();
        let all = sites["sites"].as_array().unwrap();
        all.iter().any(|site| site["site"] == "lyon" && site["state"] == "up")
    });
    let said = run(&paris, &arguments(&exec.1));
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    for site in ["paris", "lyon"] {
        let line = said.out.lines().find(|line| line.contains(site) && line.contains("OK"));
        assert!(line.is_some(), "{site}: {}", said.out);
    }
    until("the other site knows that all did it", || {
        lyon.run(&["resource", "greeting"]).out.contains("in sync")
    });
}

#[test]
fn a_third_site_is_known_to_the_second_and_who_is_put_out_is_refused() {
    let [paris, lyon, nice] = [(); 3].map(|()| Machine::new());
    let mut first = paris.start(&["up", "paris"]);
    first.first_line();
    let mut others = Vec::new();
    for (machine, site) in [(&lyon, "lyon"), (&nice, "nice")] {
        let join = paris.invite(site, &[]);
        let mut agent = machine.start(&typed(&join));
        agent.first_line();
        others.push(agent);
    }
    let state = |by: &Machine, site: &str| {
        let sites = by.run(&["--output", "json", "sites"]).json();
        let of = sites["sites"].as_array().unwrap().iter().find(|it| it["site"] == site).cloned();
        of.map(|of| of["state"].as_str().unwrap().to_owned())
    };
    until("everybody knows everybody", || {
        [(&paris, "nice"), (&lyon, "nice"), (&nice, "lyon")]
            .iter()
            .all(|(by, site)| state(by, site).as_deref() == Some("up"))
    });

    let twice = paris.run(&["invite", "lyon"]);
    assert_eq!(twice.code, Some(2), "{}", twice.out);
    assert!(twice.err.contains("there is a site `lyon` already"), "{}", twice.err);
    let elsewhere = lyon.run(&["mesh", "revoke", "nice"]);
    assert!(elsewhere.err.contains("does not have the mesh's authority"), "{}", elsewhere.err);
    let revoked = paris.run(&["mesh", "revoke", "lyon"]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.err);
    until("nobody hears it", || {
        [&paris, &nice].iter().all(|by| state(by, "lyon").as_deref() != Some("up"))
    });

    let asked = paris.run(&["site", "remove", "nice", "--dead"]);
    assert_eq!(asked.code, Some(2), "{}", asked.out);
    assert!(asked.err.contains("`--yes` does it"), "{}", asked.err);
    assert_eq!(state(&paris, "nice").as_deref(), Some("up"), "nothing was done");
    let removed = paris.run(&["site", "remove", "nice", "--dead", "--yes"]);
    assert_eq!(removed.code, Some(0), "{}", removed.err);
    until("it is gone", || state(&paris, "nice").is_none());
    let again = paris.run(&["invite", "nice", "--again"]);
    assert!(again.err.contains("was removed from the mesh"), "{}", again.err);
}
