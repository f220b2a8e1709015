//! Bodies that are longer than what an agent may hold: they pass through it, and are nowhere whole.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy_buf, sink};
use tokio::net::{TcpListener, TcpStream};

use crate::e2e::cluster::{Cluster, Setup, Site};

/// So long they are, unless `CHEOPS_E2E_BODY_MIB` says otherwise.
const MEBIBYTES: u64 = 512;
/// So much more than before an agent may hold at its peak.
const GROWTH: u64 = 64 << 20;
const PIECE: usize = 256 << 10;
const SERVICE: u16 = 8091;
const PROXY: u16 = 18_091;
const CONFIG: &str = r#"
[[services]]
name = "store"
listen = "__SITE__:18091"
upstream = "http://__HOST__:8091"
"#;

fn length() -> u64 {
    let asked = std::env::var("CHEOPS_E2E_BODY_MIB").ok();
    asked.map_or(MEBIBYTES, |asked| asked.parse().expect("a number of MiB")) << 20
}

/// One side of a conversation.
struct Talk(BufReader<TcpStream>);

impl Talk {
    fn over(stream: TcpStream) -> Self {
        Self(BufReader::with_capacity(PIECE, stream))
    }

    /// Says a head, and a body of that length.
    async fn say(&mut self, head: &str, length: u64) -> io::Result<()> {
        let head = format!("{head}\r\nContent-Length: {length}\r\n\r\n");
        self.0.write_all(head.as_bytes()).await?;
        let piece = vec![b'x'; PIECE];
        for _ in 0..length / PIECE as u64 {
            self.0.write_all(&piece).await?;
        }
        Ok(())
    }

    /// Hears a head, and a body; how long that was.
    async fn hear(&mut self) -> io::Result<(String, u64)> {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).await? <= "\r\n".len() {
                break;
            }
            line.make_ascii_lowercase();
            if let Some(said) = line.strip_prefix("content-length: ") {
                length = said.trim().parse().expect("a length");
            }
            head.push_str(&line);
        }
        if head.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok((head, copy_buf(&mut (&mut self.0).take(length), &mut sink()).await?))
    }
}

/// A service that takes any body, and says as much to `GET /BYTES` as is asked for.
async fn service(at: SocketAddr) {
    let listener = TcpListener::bind(at).await.unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut talk = Talk::over(stream);
                while let Ok((head, heard)) = talk.hear().await {
                    let path = head.split(['/', ' ']).nth(2);
                    let asked = path.and_then(|path| path.parse().ok());
                    let head = format!("HTTP/1.1 200 OK\r\nX-Heard: {heard}");
                    if talk.say(&head, asked.unwrap_or(0)).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
}

/// Sends a body of that length to a service by the first site's proxy, and asks for one.
async fn pass(cluster: &Cluster, scope: &str, length: u64) {
    let address = SocketAddr::new(cluster.address_of(1), PROXY);
    let mut talk = Talk::over(TcpStream::connect(address).await.unwrap());
    for (asked, sent, heard) in [("PUT /0", length, 0), (&format!("GET /{length}"), 0, length)] {
        let head = format!("{asked} HTTP/1.1\r\nHost: x\r\nX-Scope: {scope}");
        talk.say(&head, sent).await.unwrap();
        let (head, answer) = talk.hear().await.unwrap();
        assert!(head.contains(&format!("x-heard: {sent}\r\n")), "{asked} {scope}: {head}");
        assert_eq!(answer, heard, "{asked} {scope}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_bodies_pass_within_a_site_and_between_sites_and_are_held_nowhere() {
    let cluster = Setup::sites(2).config(CONFIG).start().await;
    for site in cluster.sites() {
        service(SocketAddr::new(site.host, SERVICE)).await;
    }
    let peaks = || cluster.sites().map(Site::peak_memory).collect::<Vec<u64>>();
    for scope in ["store: site1", "store: site2"] {
        // What is needed for the first request of all is needed once.
        pass(&cluster, scope, 0).await;
        let (before, began) = (peaks(), std::time::Instant::now());
        pass(&cluster, scope, length()).await;
        let after = peaks();
        let took = began.elapsed().as_secs_f64();
        let sizes: Vec<_> = before.iter().chain(&after).map(|bytes| bytes >> 20).collect();
        eprintln!("{scope}: {} MiB each way in {took:.1} s; peaks {sizes:?} MiB", length() >> 20);
        for (before, after) in before.iter().zip(&after) {
            assert!(after - before < GROWTH, "{scope}: at its peak {after} bytes, before {before}");
        }
    }
}
