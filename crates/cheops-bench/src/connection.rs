//! One kept-open connection to an agent. The client shares the machine with what it measures, so
//! it does next to nothing: it sends bytes made before, and looks at how the answer ends.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use cheops_api::{Action, HttpAction, ShellAction, Submit, Wait, paths};
use clap::ValueEnum;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cluster::{BenchCluster, SERVICE};
use crate::failure::{BenchFailure, cannot};

/// Where the head of an answer ends.
const HEAD_END: &[u8] = b"\r\n\r\n";
/// The last chunk of an answer. JSON holds no bare line ends, so it is found nowhere else.
const END: &[u8] = b"\r\n0\r\n\r\n";
/// An answer that ends well: all who were waited for replied.
const DONE: &[u8] = b"{\"event\":\"done\"}\n\r\n0\r\n\r\n";
/// What every reply of a site that did it holds.
const OK: &[u8] = b"\"status\":\"OK\"";
/// No answer is longer.
const LONGEST: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Work {
    /// A request that the service answers by 204.
    Http,
    /// `true` in a shell.
    Shell,
}

impl Work {
    pub(crate) const ALL: [Self; 2] = [Self::Shell, Self::Http];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Http => "HTTP no-op",
            Self::Shell => "shell `true`",
        }
    }

    fn action(self) -> Action {
        match self {
            Self::Shell => Action::Shell(ShellAction { command: "true".to_owned() }),
            Self::Http => Action::Http(HttpAction {
                service: SERVICE.to_owned(),
                method: "PUT".to_owned(),
                path: "/noop".to_owned(),
                headers: Vec::new(),
                body: None,
            }),
        }
    }
}

/// A type of the `redis` profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `inc`: commutes with its like, cannot be repeated, and is kept for ever.
    Kept,
    /// `set`: replaces what was there, so that this can be forgotten.
    Replacing,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Kept => "inc",
            Self::Replacing => "set",
        }
    }
}

/// An operation on a resource, ready to be handed in.
pub(crate) fn operation(
    resource: &str,
    work: Work,
    kind: Kind,
    wait: Wait,
) -> Result<Bytes, BenchFailure> {
    request(resource, &submit(work, kind, wait))
}

fn submit(work: Work, kind: Kind, wait: Wait) -> Submit {
    Submit {
        kind: kind.word().to_owned(),
        sites: None,
        config: None,
        profile: None,
        action: work.action(),
        force: false,
        wait,
        timeout_ms: 30_000,
    }
}

fn request(resource: &str, submit: &Submit) -> Result<Bytes, BenchFailure> {
    let body = serde_json::to_string(submit).map_err(cannot("write an operation"))?;
    let path = paths::operations(resource);
    let length = body.len();
    let text = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    Ok(text.into())
}

/// Makes resources that live on all sites, by a first operation on each.
pub(crate) async fn make_resources(
    cluster: &BenchCluster,
    resources: &[String],
) -> Result<(), BenchFailure> {
    let first = Submit {
        sites: Some(all_sites(cluster)),
        profile: Some("redis".to_owned()),
        ..submit(Work::Http, Kind::Replacing, Wait::All)
    };
    let mut connection = Connection::open(cluster.sites[0].api).await?;
    for resource in resources {
        connection.hand_in(&request(resource, &first)?).await?;
    }
    Ok(())
}

/// The first operation of a resource that lives on all sites, with that config.
pub(crate) fn state_resource(
    cluster: &BenchCluster,
    resource: &str,
    config: Option<&serde_json::Value>,
) -> Result<Bytes, BenchFailure> {
    let first = Submit {
        sites: Some(all_sites(cluster)),
        config: config.cloned(),
        ..submit(Work::Http, Kind::Replacing, Wait::All)
    };
    request(resource, &first)
}

fn all_sites(cluster: &BenchCluster) -> String {
    let names: Vec<_> = cluster.sites.iter().map(|site| site.name.as_str()).collect();
    names.join(" & ")
}

/// A connection.
pub(crate) struct Connection {
    stream: TcpStream,
    heard: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, BenchFailure> {
        let connecting = async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let stream = connecting.await.map_err(cannot::<std::io::Error>("connect"))?;
        Ok(Self { stream, heard: Vec::with_capacity(4096) })
    }

    /// Hands in an operation, and waits until it is done. How many sites replied that it ran.
    pub(crate) async fn hand_in(&mut self, operation: &[u8]) -> Result<usize, BenchFailure> {
        let is_whole =
            |heard: &[u8]| heard.ends_with(END) || (is_refused(heard) && contains(heard, HEAD_END));
        self.ask(operation, is_whole).await?;
        if self.heard.ends_with(DONE) {
            return Ok(count(&self.heard, OK));
        }
        Err(BenchFailure::new("an operation was not done", String::from_utf8_lossy(&self.heard)))
    }

    /// Sends a request to a service, and waits until it is answered well.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<(), BenchFailure> {
        self.ask(request, is_whole_answer).await?;
        match self.heard.starts_with(b"HTTP/1.1 2") {
            true => Ok(()),
            false => {
                let heard = String::from_utf8_lossy(&self.heard);
                Err(BenchFailure::new("a request was not carried out", heard))
            }
        }
    }

    /// Sends a request whose answer has no body.
    pub(crate) async fn head_only(&mut self, request: &[u8]) -> Result<(), BenchFailure> {
        self.ask(request, |heard| heard.ends_with(HEAD_END)).await
    }

    async fn ask(
        &mut self,
        request: &[u8],
        is_whole: fn(&[u8]) -> bool,
    ) -> Result<(), BenchFailure> {
        self.heard.clear();
        let asking = async {
            self.stream.write_all(request).await?;
            while !is_whole(&self.heard) {
                let read = self.stream.read_buf(&mut self.heard).await?;
                if read == 0 || self.heard.len() > LONGEST {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        };
        let late = |_| Err(std::io::ErrorKind::TimedOut.into());
        let asked: std::io::Result<()> =
            tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(late);
        asked.map_err(cannot("hear an answer"))
    }
}

fn is_whole_answer(heard: &[u8]) -> bool {
    let Some(head) = heard.windows(HEAD_END.len()).position(|window| window == HEAD_END) else {
        return false;
    };
    let text = String::from_utf8_lossy(&heard[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    match length.and_then(|length| length.trim().parse::<usize>().ok()) {
        Some(length) => heard.len() >= head + HEAD_END.len() + length,
        None if text.contains("\r\ntransfer-encoding:") => heard.ends_with(END),
        None => true,
    }
}

fn is_refused(heard: &[u8]) -> bool {
    heard.len() > 12 && !heard.starts_with(b"HTTP/1.1 200")
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    count(text, part) > 0
}

fn count(text: &[u8], part: &[u8]) -> usize {
    text.windows(part.len()).filter(|window| *window == part).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_all_that_its_head_announces_is_there() {
        let cases = [
            ("HTTP/1.1 204 No Content\r\n", false),
            ("HTTP/1.1 204 No Content\r\n\r\n", true),
            ("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{", false),
            ("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}", true),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}", false),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", true),
        ];
        for (heard, whole) in cases {
            assert_eq!(is_whole_answer(heard.as_bytes()), whole, "{heard:?}");
        }
    }
}
