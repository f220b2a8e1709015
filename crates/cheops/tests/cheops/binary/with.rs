//! `cheops with`: real programs, real sockets. Where a test has to see every byte, the program only
//! says where its proxy is, and the test plays the HTTP client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use expect_test::expect;
use rustix::process::{Pid, Signal, kill_process};

use crate::binary::running::{Ran, cheops, command};

/// Nothing here takes as long.
const DEADLINE: Duration = Duration::from_secs(30);
const WITH: [&str; 4] = ["with", "--scope", "image: paris&lyon", "--"];

fn with(program: &[&str]) -> Ran {
    cheops(&[&WITH, program].concat())
}

/// One end of a connection.
struct End(BufReader<TcpStream>);

impl End {
    fn at(address: &str) -> Self {
        Self::of(TcpStream::connect(address).unwrap())
    }

    fn of(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Self(BufReader::new(stream))
    }

    fn say(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// A line; empty at the end of a head, and of everything.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The first line and the headers, these in lower case and sorted.
    fn head(&mut self) -> Vec<String> {
        let first = self.line();
        let lines = std::iter::from_fn(|| Some(self.line()).filter(|line| !line.is_empty()));
        let mut lines: Vec<String> = lines.map(|line| line.to_ascii_lowercase()).collect();
        lines.sort();
        lines.insert(0, first);
        lines
    }

    fn bytes<const N: usize>(&mut self) -> String {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A service that takes one connection, and does this with it.
fn service<T: Send + 'static>(
    act: impl FnOnce(&mut End) -> T + Send + 'static,
) -> (String, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (address, spawn(move || act(&mut End::of(listener.accept().unwrap().0))))
}

/// A service that answers each request of one connection with its head.
fn mirror() -> (String, JoinHandle<()>) {
    service(|end| {
        loop {
            let head = end.head();
            if head[0].is_empty() {
                return;
            }
            let body = head.join("\n") + "\n";
            end.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        }
    })
}

/// A program that does nothing but be there, with what it knows of its proxy.
struct Standing {
    process: Child,
    address: String,
    credentials: String,
}

impl Standing {
    fn start() -> Self {
        let says = r#"known=${http_proxy#http://}; echo "${known#*@}"
            printf %s "${known%@*}" | base64; read until_closed"#;
        let mut process = command(&[&WITH, &["sh", "-c", says][..]].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap()).lines();
        let [address, credentials] = [(); 2].map(|()| said.next().unwrap().unwrap());
        Self { process, address, credentials }
    }

    /// A connection to the proxy.
    fn client(&self) -> End {
        End::at(&self.address)
    }

    /// The header that opens the proxy.
    fn key(&self) -> String {
        format!("Proxy-Authorization: Basic {}\r\n", self.credentials)
    }

    fn ended(mut self) -> Ran {
        drop(self.process.stdin.take());
        self.process.wait_with_output().unwrap().into()
    }
}

#[test]
fn every_request_carries_the_scope_and_nothing_that_was_for_the_proxy() {
    let (place, _mirror) = mirror();
    let standing = Standing::start();
    let mut client = standing.client();
    for _ in 0..2 {
        client.say(&format!(
            "GET http://{place}/a?b=c HTTP/1.1\r\nHost: other.example\r\n{}X-Scope: {{a: b}}\r\n\
             X-Cheops-Scope: {{a: b}}\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\
             Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: gzip, trailers\r\n\
             Upgrade: h2c\r\nAccept: */*\r\n\r\n",
            standing.key()
        ));
        assert_eq!(client.head()[0], "HTTP/1.1 200 OK");
        let heard: Vec<String> = (0..5).map(|_| client.line()).collect();
        let want = ["accept: */*", "host: other.example", "te: trailers"];
        assert_eq!(heard[0], "GET /a?b=c HTTP/1.1");
        assert_eq!(heard[1..4], want);
        assert_eq!(heard[4], "x-scope: {image: paris & lyon}");
    }
    let ran = standing.ended();
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""), "`read` at its end says 1");
}

#[test]
fn both_bodies_pass_piece_by_piece_up_to_the_trailers() {
    let (place, service) = service(|end| {
        assert!(end.head().contains(&"transfer-encoding: chunked".to_owned()));
        end.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n");
        for _ in 0..2 {
            let piece = end.bytes::<8>();
            end.say(&piece);
        }
        let rest = [end.line(), end.line(), end.line()];
        end.say("0\r\nX-Sum: 2\r\n\r\n");
        rest
    });
    let standing = Standing::start();
    let mut client = standing.client();
    client.say(&format!(
        "PUT http://{place}/ HTTP/1.1\r\nHost: {place}\r\n{}TE: trailers\r\nConnection: TE\r\n\
         Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n",
        standing.key()
    ));
    for piece in ["3\r\none\r\n", "3\r\ntwo\r\n"] {
        // The second is not sent before the first is back.
        client.say(piece);
        if piece.contains("one") {
            assert_eq!(client.head()[0], "HTTP/1.1 200 OK");
        }
        assert_eq!(client.bytes::<8>(), piece);
    }
    client.say("0\r\nX-Sum: 1\r\n\r\n");
    assert_eq!(
        service.join().unwrap().map(|line| line.to_ascii_lowercase()),
        ["0", "x-sum: 1", ""]
    );
    let rest = [client.line(), client.line(), client.line()];
    assert_eq!(rest.map(|line| line.to_ascii_lowercase()), ["0", "x-sum: 2", ""]);
}

#[test]
fn who_asks_before_sending_is_answered_by_the_service() {
    let (place, service) = service(|end| {
        assert!(end.head().contains(&"expect: 100-continue".to_owned()));
        end.say("HTTP/1.1 100 Continue\r\n\r\n");
        let body = end.bytes::<4>();
        end.say("HTTP/1.1 204 No Content\r\n\r\n");
        body
    });
    let standing = Standing::start();
    let mut client = standing.client();
    client.say(&format!(
        "PUT http://{place}/ HTTP/1.1\r\nHost: {place}\r\n{}Content-Length: 4\r\n\
         Expect: 100-continue\r\n\r\n",
        standing.key()
    ));
    assert_eq!(client.head(), ["HTTP/1.1 100 Continue"]);
    client.say("body");
    assert_eq!(client.head()[0], "HTTP/1.1 204 No Content");
    assert_eq!(service.join().unwrap(), "body");
}

#[test]
fn a_web_socket_passes_with_its_scope() {
    let (place, service) = service(|end| {
        let head = end.head();
        end.say(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        );
        let heard = end.bytes::<4>();
        end.say("pong");
        (head, heard)
    });
    let standing = Standing::start();
    let mut client = standing.client();
    client.say(&format!(
        "GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n{}Connection: Upgrade\r\n\
         Upgrade: websocket\r\n\r\n",
        standing.key()
    ));
    let head = client.head();
    assert_eq!(head[0], "HTTP/1.1 101 Switching Protocols");
    assert!(head.contains(&"upgrade: websocket".to_owned()), "{head:?}");
    client.say("ping");
    assert_eq!(client.bytes::<4>(), "pong");
    let (head, heard) = service.join().unwrap();
    assert_eq!(heard, "ping");
    assert!(head.contains(&"x-scope: {image: paris & lyon}".to_owned()), "{head:?}");
}

#[test]
fn nobody_else_is_served() {
    let (place, _mirror) = mirror();
    let standing = Standing::start();
    let wrong = standing.key().replace("Basic ", "Basic A");
    for request in [
        format!("GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n\r\n"),
        format!("GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n{wrong}\r\n"),
        format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{wrong}\r\n"),
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
    ] {
        let mut client = standing.client();
        client.say(&request);
        let head = client.head();
        assert_eq!(head[0], "HTTP/1.1 407 Proxy Authentication Required", "{request}");
        assert!(head.contains(&"x-cheops-error: wrong-credentials".to_owned()), "{head:?}");
    }
}

#[test]
fn what_goes_wrong_on_our_side_is_told_apart_from_what_services_say() {
    let (silent, _closes) = service(End::line);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let standing = Standing::start();
    for (line, status, code) in [
        (format!("GET http://{nobody}/"), "502 Bad Gateway", "unreachable"),
        (format!("CONNECT {nobody}"), "502 Bad Gateway", "unreachable"),
        (format!("GET http://{silent}/"), "502 Bad Gateway", "broken-off"),
        ("GET /".to_owned(), "400 Bad Request", "not-for-a-proxy"),
        ("GET https://x/".to_owned(), "400 Bad Request", "not-for-a-proxy"),
    ] {
        let mut client = standing.client();
        client.say(&format!(
            "{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}\r\n",
            standing.key()
        ));
        let head = client.head();
        assert_eq!(head[0], format!("HTTP/1.1 {status}"), "{line}");
        assert!(head.contains(&format!("x-cheops-error: {code}")), "{line}: {head:?}");
        assert!(head.contains(&"content-type: application/problem+json".to_owned()));
        assert!(client.line().contains(r#""hint":""#), "{line}");
    }
}

#[test]
fn a_tunnel_passes_as_it_is_and_one_warning_says_so() {
    let standing = Standing::start();
    for _ in 0..2 {
        let (place, service) = service(|end| {
            let heard = end.bytes::<4>();
            end.say("\u{16}pong");
            heard
        });
        let mut client = standing.client();
        client.say(&format!("CONNECT {place} HTTP/1.1\r\nHost: x\r\n{}\r\n", standing.key()));
        assert_eq!(client.head()[0], "HTTP/1.1 200 OK");
        client.say("\u{16}\u{3}\u{1}x");
        assert_eq!(client.bytes::<5>(), "\u{16}pong");
        assert_eq!(service.join().unwrap(), "\u{16}\u{3}\u{1}x");
    }
    let said = standing.ended().err;
    assert_eq!(said.matches("warning: ").count(), 1, "{said}");
    assert!(said.contains("cannot be read"), "{said}");
}

#[test]
fn plain_requests_in_a_tunnel_get_their_scope() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let heard = spawn(move || {
        // The first connection is the tunnel's own; what can be read takes another one.
        let _first = listener.accept().unwrap();
        let mut end = End::of(listener.accept().unwrap().0);
        let head = end.head();
        end.say("HTTP/1.1 204 No Content\r\n\r\n");
        head
    });
    let standing = Standing::start();
    let mut client = standing.client();
    client.say(&format!("CONNECT {place} HTTP/1.1\r\nHost: x\r\n{}\r\n", standing.key()));
    assert_eq!(client.head()[0], "HTTP/1.1 200 OK");
    client.say(&format!("GET /a HTTP/1.1\r\nHost: {place}\r\n\r\n"));
    assert_eq!(client.head()[0], "HTTP/1.1 204 No Content");
    let head = heard.join().unwrap();
    assert_eq!(head[0], "GET /a HTTP/1.1");
    assert!(head.contains(&"x-scope: {image: paris & lyon}".to_owned()), "{head:?}");
    assert_eq!(standing.ended().err, "");
}

#[test]
fn curl_needs_no_options_and_no_proxy_does_not_lead_around() {
    if Command::new("curl").arg("--version").output().is_err() {
        return;
    }
    let (place, _mirror) = mirror();
    let url = format!("http://{place}/v2/images");
    let ran: Ran = command(&[&WITH, &["curl", "-sS", &url][..]].concat())
        .env("no_proxy", "127.0.0.1")
        .output()
        .unwrap()
        .into();
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.starts_with("GET /v2/images HTTP/1.1\n"), "{}", ran.out);
    assert!(ran.out.contains("\nx-scope: {image: paris & lyon}\n"), "{}", ran.out);
}

#[test]
fn the_programs_end_is_ours_and_its_arguments_arrive_as_they_were_typed() {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill $$", 143)] {
        assert_eq!(with(&["sh", "-c", script]).code, Some(code), "{script}");
    }
    let ran = with(&["printf", "%s|", "a b", "--", "--scope", ""]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "a b|--|--scope||"));
    with(&["/dev/null"]).check(
        126,
        &expect![[r#"
            --- aside
            error: `/dev/null` cannot be run
            because: Permission denied (os error 13)
        "#]],
    );
    with(&["no-such-program"]).check(
        127,
        &expect![[r#"
            --- aside
            error: there is no program `no-such-program`
            hint: the first word after `--` is the program, such as `-- curl http://…`
        "#]],
    );
}

#[test]
fn nothing_runs_under_a_scope_with_problems() {
    cheops(&["with", "--scope", "image: & lyon", "--", "echo", "ran"]).check(
        2,
        &expect![[r#"
            --- aside
            error: unexpected `&`
             --> scope:1:8
              |
            1 | image: & lyon
              |        ^ expected a site such as `paris`, `around(…)` or `(`
        "#]],
    );
    let ran = cheops(&["-o", "json", "with", "--scope", "image:", "--", "echo", "ran"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), ""));
    assert_eq!(ran.json()["ok"], false);
    for wrong in [&["with", "--", "echo"][..], &["with", "--scope", "image: lyon"]] {
        let ran = cheops(wrong);
        assert_eq!(ran.code, Some(2));
        assert!(ran.err.contains("Usage: cheops with --scope <EXPR> -- <PROGRAM>"), "{}", ran.err);
    }
}

#[test]
fn a_signal_reaches_the_program_which_ends_first() {
    let script = r#"sleep 60 & trap 'kill $!; echo told; exit 5' TERM
        echo ready; wait"#;
    let mut process = command(&[&WITH, &["sh", "-c", script][..]].concat())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(process.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "ready");
    let id = Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    assert_eq!(said.next().unwrap().unwrap(), "told");
    assert_eq!(process.wait().unwrap().code(), Some(5));
}
