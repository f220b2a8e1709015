//! Who is let in to an agent's API, tried on a real agent by whoever might come.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::running::{Ran, command};

/// Nobody's user id, and group.
const NOBODY: &str = "65534";

/// A folder that everybody may look into, as far as the test goes.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("cheops-access-").tempdir().unwrap();
    set_mode(folder.path(), 0o755);
    folder
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An agent that runs in a folder, with its config and data there. Ended with this.
struct AgentProcess {
    folder: PathBuf,
    process: Child,
    /// Where its API is.
    url: String,
    log: PathBuf,
}

fn agent(folder: &Path, api: &str) -> Command {
    let config = format!("site = \"paris\"\n[api]\n{api}\n");
    fs::write(folder.join("paris.toml"), config).unwrap();
    let mut agent = command(&["agent", "--config", "paris.toml", "--with-parent"]);
    agent.current_dir(folder).stdin(Stdio::piped());
    agent
}

impl AgentProcess {
    /// The site is paris; more of `[api]` can be said.
    fn start(folder: &Path, api: &str) -> Self {
        let log = folder.join("agent.log");
        let mut process = agent(folder, &format!("listen = \"127.0.0.1:0\"\n{api}"))
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let url = said.split_whitespace().find(|word| word.starts_with("http"));
        let url = url.unwrap_or_else(|| panic!("{said}{}", fs::read_to_string(&log).unwrap()));
        let url = url.trim_end_matches(',').to_owned();
        Self { folder: folder.to_owned(), process, url, log }
    }

    fn token(&self) -> String {
        let token = fs::read_to_string(self.folder.join("cheops-data/api.token")).unwrap();
        token.trim().to_owned()
    }

    fn logged(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// The command line, typed in the agent's folder.
    fn cheops(&self, arguments: &[&str]) -> Ran {
        command(arguments).current_dir(&self.folder).output().unwrap().into()
    }

    /// What curl gets: the status, all headers and the body.
    fn curl(&self, path: &str, more: &[&str]) -> (u16, String) {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--include", "--write-out", "\n%{http_code}"]);
        status_of(&curl.args(more).arg(format!("{}{path}", self.url)).output().unwrap())
    }

    fn stop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

fn status_of(ran: &Output) -> (u16, String) {
    let said = text(&ran.stdout);
    let (said, status) = said.rsplit_once('\n').unwrap_or_default();
    (status.parse().unwrap_or_default(), format!("{said}{}", text(&ran.stderr)))
}

/// What becomes of an agent that should not start.
fn not_started(folder: &Path, api: &str) -> String {
    let ran: Ran = agent(folder, api).stdin(Stdio::null()).output().unwrap().into();
    assert_eq!(ran.code, Some(2), "{}{}", ran.out, ran.err);
    // Texts are wrapped.
    ran.err.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A program run as another user of this machine, who belongs to that group alone.
fn as_nobody(group: &str, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", group, "--clear-groups"]).arg(program);
    command.stdin(Stdio::null()).env_remove("CHEOPS_AGENT").current_dir("/");
    command
}

#[test]
fn another_user_of_the_machine_gets_nothing() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT TRIED: only root can be somebody else");
        return;
    }
    let folder = folder();
    // In a folder that everybody may look into, the socket's own mode decides.
    let agent = AgentProcess::start(folder.path(), "socket = \"api.sock\"");
    let socket = folder.path().join("api.sock");
    let witness = folder.path().join("it-ran");
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&socket), 0o660);
    assert_eq!(mode(&folder.path().join("cheops-data/api.token")), 0o600);

    // By the socket,
    let curl = |way: &[&str]| {
        let mut curl = as_nobody(NOBODY, Path::new("curl"));
        curl.args(["--silent", "--show-error", "--write-out", "\n%{http_code}"]).args(way);
        let ran = curl.output().unwrap();
        (ran.status.success(), status_of(&ran))
    };
    let by_socket = ["--unix-socket", socket.to_str().unwrap(), "http://localhost/api/v1/sites"];
    let (reached, got) = curl(&by_socket);
    assert!(!reached, "{got:?}");
    // by the address, with a command, a look, a read, the metrics, and a link for a browser,
    let command = format!("command=touch {}", witness.display());
    for (path, more) in [
        ("/exec/x", vec!["--form", &command, "--form", "sites=paris", "--form", "type=set"]),
        ("/show/x", vec!["--form", &command, "--form", "sites=paris"]),
        ("/api/v1/sites", vec![]),
        ("/api/v1/changes", vec![]),
        ("/api/v1/login-links", vec!["--request", "POST"]),
        ("/metrics", vec![]),
        ("/openapi.json", vec![]),
        ("/api/v1/sites", vec!["--user", "root:root"]),
        ("/api/v1/sites", vec!["--header", "X-Cheops-Asked-By: uid:0"]),
    ] {
        let url = format!("{}{path}", agent.url);
        let way: Vec<&str> = more.iter().copied().chain([url.as_str()]).collect();
        let (_, (status, said)) = curl(&way);
        assert_eq!(status, 401, "{path}: {said}");
    }
    assert!(!witness.exists());
    // and from the disk.
    for file in ["api.token", "log.db", "journal", "site"] {
        let file = folder.path().join("cheops-data").join(file);
        let read = as_nobody(NOBODY, Path::new("cat")).arg(&file).output().unwrap();
        assert!(!read.status.success(), "{}", file.display());
    }
    // What shows nothing is open to all.
    for path in ["/healthz", "/readyz", "/"] {
        let (_, (status, said)) = curl(&[&format!("{}{path}", agent.url)]);
        assert_eq!(status, 200, "{path}: {said}");
    }

    // The command line says who may use the socket.
    let program = folder.path().join("cheops");
    fs::copy(env!("CARGO_BIN_EXE_cheops"), &program).unwrap();
    let address = format!("unix:{}", socket.display());
    let cheops = |group: &str| -> Ran {
        let mut cheops = as_nobody(group, &program);
        cheops.args(["--agent", &address, "--output", "json", "sites"]).output().unwrap().into()
    };
    let refused = cheops(NOBODY);
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    let group = fs::metadata(&socket).unwrap().gid();
    assert!(refused.out.contains("usermod -aG"), "{}", refused.out);
    // Who is of the socket's group is let in.
    let let_in = cheops(&group.to_string());
    assert_eq!(let_in.code, Some(0), "{}{}", let_in.out, let_in.err);
    assert_eq!(let_in.json()["me"], "paris");
}

#[test]
fn by_the_address_the_token_lets_in_alone_or_as_a_password() {
    let folder = folder();
    let agent = AgentProcess::start(folder.path(), "");
    let token = agent.token();
    let (bearer, password) = (format!("Authorization: Bearer {token}"), format!("anyone:{token}"));
    for more in [["--header", bearer.as_str()], ["--user", password.as_str()]] {
        let (status, said) = agent.curl("/api/v1/sites", &more);
        assert_eq!(status, 200, "{said}");
    }
    let wrong = format!("Authorization: Bearer {}x", &token[1..]);
    for more in [vec![], vec!["--header", wrong.as_str()], vec!["--user", "anyone:nothing"]] {
        let (status, said) = agent.curl("/api/v1/sites", &more);
        assert_eq!(status, 401, "{said}");
        let said_low = said.to_lowercase();
        assert!(said_low.contains("www-authenticate: bearer"), "{said}");
        assert!(said_low.contains("content-type: application/problem+json"), "{said}");
        let hint = "cheops-data/api.token";
        assert!(said.contains(hint) && said.contains("cheops open"), "{said}");
        assert!(!said.contains(&token), "{said}");
    }
    // The first Cheops's way in takes it as well.
    let form = ["--form", "command=true", "--form", "sites=paris", "--form", "type=set"];
    let (status, said) =
        agent.curl("/exec/x", &[&form[..], &["--user", password.as_str()]].concat());
    assert!(status == 200 && said.contains("\"Status\":\"OK\""), "{said}");
    // A page is not asked for a password by its browser: it says itself what to do.
    let (_, said) = agent.curl("/api/v1/sites", &["--header", "Sec-Fetch-Mode: cors"]);
    assert!(!said.to_lowercase().contains("www-authenticate: basic"), "{said}");
}

#[test]
fn the_command_line_finds_its_agent_and_what_lets_it_in() {
    let folder = folder();
    let mut agent = AgentProcess::start(folder.path(), "");
    // By the socket of the folder it is typed in.
    let ran = agent.cheops(&["--output", "json", "sites"]);
    assert_eq!((ran.code, &ran.json()["me"]), (Some(0), &Value::from("paris")), "{}", ran.err);
    // By the address, with the token of that folder, or of a file that is named.
    let ran = agent.cheops(&["--agent", &agent.url, "sites"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let elsewhere = |more: &[&str]| -> Ran {
        let mut command = command(&["--agent", &agent.url]);
        command.args(more).arg("sites").current_dir("/").output().unwrap().into()
    };
    let refused = elsewhere(&[]);
    assert_eq!(refused.code, Some(2), "{}", refused.out);
    assert!(refused.err.contains("CHEOPS_TOKEN_FILE"), "{}", refused.err);
    let file = folder.path().join("cheops-data/api.token");
    assert_eq!(elsewhere(&["--token-file", file.to_str().unwrap()]).code, Some(0));
    let named = command(&["--agent", &agent.url, "sites"])
        .env("CHEOPS_TOKEN_FILE", &file)
        .current_dir("/")
        .output()
        .unwrap();
    assert!(named.status.success(), "{}", text(&named.stderr));
    let missing = elsewhere(&["--token-file", "nowhere/api.token"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("`nowhere/api.token` cannot be read"), "{}", missing.err);

    // What a stopped agent leaves is nothing, and what a killed one leaves is replaced.
    agent.stop();
    assert!(!folder.path().join("cheops-data/api.sock").exists());
    drop(agent);
    let killed = AgentProcess::start(folder.path(), "");
    drop(killed);
    assert!(folder.path().join("cheops-data/api.sock").exists());
    let again = AgentProcess::start(folder.path(), "");
    assert_eq!(again.cheops(&["sites"]).code, Some(0));
}

#[test]
fn an_agent_that_would_let_strangers_in_does_not_start_and_says_what_to_do() {
    let folder = folder();
    let told = |api: &str| not_started(folder.path(), api);

    let said = told("listen = \"0.0.0.0:0\"");
    assert!(said.contains("paris.toml:3:10: `api.listen`"), "{said}");
    assert!(said.contains("`tls = \"FILE\"`"), "{said}");
    let said = told("listen = \"0.0.0.0:0\"\ntls = \"api.pem\"\nauth = \"none\"");
    assert!(said.contains("`api.auth`") && said.contains("leave `auth` out"), "{said}");
    let said = told("listen = \"127.0.0.1:0\"\ntls = \"api.pem\"");
    assert!(said.contains("api.pem` cannot be used"), "{said}");

    let token = folder.path().join("known.token");
    fs::write(&token, "0123456789abcdef0123456789abcdef\n").unwrap();
    set_mode(&token, 0o644);
    let said = told("listen = \"127.0.0.1:0\"\ntoken_file = \"known.token\"");
    assert!(said.contains("has mode 0644") && said.contains("chmod 600"), "{said}");

    fs::write(folder.path().join("notes"), "mine").unwrap();
    let said = told("listen = \"127.0.0.1:0\"\nsocket = \"notes\"");
    assert!(said.contains("is there and is no socket"), "{said}");
    let other = self::folder();
    let _agent = AgentProcess::start(other.path(), "socket = \"api.sock\"");
    let living = other.path().join("api.sock");
    let said = told(&format!("listen = \"127.0.0.1:0\"\nsocket = \"{}\"", living.display()));
    assert!(said.contains("another agent listens at"), "{said}");
}

#[test]
fn an_identity_that_others_can_read_is_refused() {
    let folder = folder();
    let cheops = |arguments: &[&str]| -> Ran {
        command(arguments).current_dir(folder.path()).output().unwrap().into()
    };
    for arguments in [vec!["mesh", "new"], vec!["mesh", "issue", "paris"]] {
        assert_eq!(cheops(&arguments).code, Some(0));
    }
    assert_eq!(cheops(&["init", "--site", "paris"]).code, Some(0));
    set_mode(&folder.path().join("paris.pem"), 0o640);
    let ran = cheops(&["agent", "--config", "paris.toml"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("mode 0640") && ran.err.contains("chmod 600"), "{}", ran.err);
}

#[test]
fn a_look_is_logged_without_the_text_of_its_command() {
    let folder = folder();
    let agent = AgentProcess::start(folder.path(), "");
    let ran = agent.cheops(&["show", "--id", "x", "--sites", "paris", "--", "echo s3cret"]);
    assert!(ran.out.contains("s3cret"), "{}{}", ran.out, ran.err);
    // The answer may be there before the line.
    let end = Instant::now() + Duration::from_secs(30);
    while !agent.logged().contains("somebody asked") && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    let logged = agent.logged();
    assert!(logged.contains("somebody asked") && logged.contains("show"), "{logged}");
    assert!(!logged.contains("s3cret"), "{logged}");
}

#[test]
fn an_agent_that_asks_for_nothing_says_so_at_every_start() {
    let folder = folder();
    for _ in 0..2 {
        let mut agent = AgentProcess::start(folder.path(), "auth = \"none\"");
        assert_eq!(agent.curl("/api/v1/sites", &[]).0, 200);
        let logged = agent.logged();
        assert!(logged.contains("WARN") && logged.contains("asks for no token"), "{logged}");
        assert!(!folder.path().join("cheops-data/api.token").exists());
        let opened = agent.cheops(&["open", "--output", "json"]).json();
        assert_eq!(opened["url"], format!("{}/", agent.url));
        agent.stop();
    }
}

#[test]
fn without_a_socket_the_token_is_the_only_way_in_and_metrics_can_be_opened() {
    let folder = folder();
    let agent = AgentProcess::start(folder.path(), "socket = \"off\"\nmetrics = \"open\"");
    assert!(!folder.path().join("cheops-data/api.sock").exists());
    assert_eq!(agent.curl("/metrics", &[]).0, 200);
    assert_eq!(agent.curl("/api/v1/sites", &[]).0, 401);
}

#[test]
fn a_link_lets_one_browser_in_once() {
    let folder = folder();
    let agent = AgentProcess::start(folder.path(), "");
    let opened = agent.cheops(&["open", "--output", "json"]).json();
    let link = opened["url"].as_str().unwrap();
    assert_eq!(opened["seconds"], 300);
    let path = link.strip_prefix(&agent.url).unwrap();
    assert!(path.starts_with("/login?once="), "{link}");

    // Who only looks where it leads does not use it up, nor is let in.
    let (status, said) = agent.curl(path, &["--head"]);
    assert_eq!(status, 303, "{said}");
    assert!(!said.to_lowercase().contains("set-cookie"), "{said}");

    let (status, said) = agent.curl(path, &[]);
    assert_eq!(status, 303, "{said}");
    let cookie = said.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("set-cookie").then_some(value)
    });
    let cookie = cookie.unwrap().trim();
    for part in ["HttpOnly", "SameSite=Strict", "Max-Age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let pair = cookie.split(';').next().unwrap();
    let (status, said) = agent.curl("/api/v1/sites", &["--cookie", pair]);
    assert_eq!(status, 200, "{said}");
    let forged = format!("{pair}0");
    assert_eq!(agent.curl("/api/v1/sites", &["--cookie", &forged]).0, 401);
    // A page of another port of this machine cannot use it: its browser says whose it is.
    let (status, said) =
        agent.curl("/api/v1/sites", &["--cookie", pair, "--header", "Origin: http://127.0.0.1:1"]);
    assert_eq!(status, 403, "{said}");

    let (status, said) = agent.curl(path, &[]);
    assert_eq!(status, 303, "{said}");
    let said = said.to_lowercase();
    assert!(!said.contains("set-cookie") && said.contains("location: /?link=over"), "{said}");
    assert!(said.contains("cache-control: no-store"), "{said}");
    assert!(!agent.logged().contains(path), "the log holds no link");

    // For people.
    let ran = agent.cheops(&["open"]);
    assert!(ran.out.starts_with(&format!("{}/login?once=", agent.url)), "{}", ran.out);
    assert!(ran.err.contains("once, within 5 minutes"), "{}", ran.err);
}

#[test]
fn an_api_with_a_certificate_is_reached_by_who_trusts_it_and_has_the_token() {
    let folder = folder();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let pem = folder.path().join("api.pem");
    let authority = folder.path().join("authority.pem");
    fs::write(&authority, made.cert.pem()).unwrap();
    fs::write(&pem, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
    set_mode(&pem, 0o644);
    let said = not_started(folder.path(), "listen = \"127.0.0.1:0\"\ntls = \"api.pem\"");
    assert!(said.contains("mode 0644"), "{said}");
    set_mode(&pem, 0o600);

    let agent = AgentProcess::start(folder.path(), "tls = \"api.pem\"");
    assert!(agent.url.starts_with("https://127.0.0.1:"), "{}", agent.url);
    let authority = authority.to_str().unwrap();
    let ran = agent.cheops(&["--agent", &agent.url, "--agent-ca", authority, "sites"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let curl = |more: &[&str]| agent.curl("/api/v1/sites", more).0;
    let bearer = format!("Authorization: Bearer {}", agent.token());
    assert_eq!(curl(&["--cacert", authority, "--header", &bearer]), 200);
    assert_eq!(curl(&["--cacert", authority, "--http1.1", "--header", &bearer]), 200);
    assert_eq!(curl(&["--cacert", authority]), 401);
    // Who does not trust it sends nothing.
    let untrusting = agent.cheops(&["--agent", &agent.url, "sites"]);
    assert_eq!(untrusting.code, Some(3), "{}", untrusting.err);
    let plain = agent.url.replace("https", "http");
    assert_ne!(agent.cheops(&["--agent", &plain, "sites"]).code, Some(0));
    // The cookie of such a page never travels without TLS.
    let link = agent.cheops(&["open", "--output", "json"]).json();
    let path = link["url"].as_str().unwrap().strip_prefix(&agent.url).unwrap().to_owned();
    let (_, said) = agent.curl(&path, &["--cacert", authority]);
    assert!(said.contains("; Secure"), "{said}");
}

#[test]
fn who_takes_too_many_connections_is_not_let_in_and_others_are() {
    let folder = folder();
    let agent = AgentProcess::start(folder.path(), "connections_per_address = 2");
    let address = agent.url.trim_start_matches("http://");
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let begin = || {
        let mut connection = TcpStream::connect(address).unwrap();
        let mut answer = [0; 12];
        let sent = connection.write_all(request.as_bytes());
        let read = sent.and_then(|()| connection.read_exact(&mut answer));
        (connection, read.is_ok() && answer == *b"HTTP/1.1 200")
    };
    let (_first, answered) = begin();
    assert!(answered);
    let (second, answered) = begin();
    assert!(answered);
    assert!(!begin().1, "a third is closed");
    assert_eq!(agent.cheops(&["sites"]).code, Some(0), "the socket is another way");
    // A place that is free again can be taken, as soon as the agent has noticed.
    drop(second);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !begin().1 {
        assert!(std::time::Instant::now() < deadline, "no place becomes free");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn who_connects_and_says_nothing_or_not_enough_is_not_kept() {
    let folder = folder();
    let agent = AgentProcess::start(folder.path(), "");
    let address = agent.url.trim_start_matches("http://");
    let said = ["", "GET /healthz HTTP/1.1\r\nHost:", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"];
    let connections: Vec<TcpStream> = said
        .iter()
        .map(|said| {
            let mut connection = TcpStream::connect(address).unwrap();
            connection.write_all(said.as_bytes()).unwrap();
            connection
        })
        .collect();
    for mut connection in connections {
        // Ends, with or without a last word.
        let _reset = connection.read_to_end(&mut Vec::new());
    }
}
