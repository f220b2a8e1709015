//! CONNECT: a way through to a place, for what only the two ends understand.
//!
//! Some clients (Node's `fetch`) ask for one even if plain HTTP follows. That can be read, so it
//! gets its scope like any other request. What cannot be read passes as it is, and is told of.

use std::convert::Infallible;
use std::io;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::http::uri::Authority;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, copy_bidirectional, join, split};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::forward::{CONNECT, Forward, not_for_us, unreachable};
use super::proxy::connections;

/// A longer first line is taken for something else than HTTP.
const LONGEST_FIRST_LINE: usize = 64 * 1024;

/// Connects, and says so; what follows is passed on in the background.
pub(super) async fn open(
    mut request: Request<Incoming>,
    forward: Forward,
    unreadable: mpsc::Sender<String>,
) -> Response<Body> {
    let place = request.uri().authority().filter(|place| place.port().is_some()).cloned();
    let Some(place) = place else { return not_for_us(request.uri()) };
    let stream = match connect(&place).await {
        Ok(stream) => stream,
        Err(error) => return unreachable(&place, &error.to_string()),
    };
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        if let Ok(ours) = upgrade.await {
            // However it ends, both sides see it.
            let _ended = pass(TokioIo::new(ours), stream, place, forward, unreadable).await;
        }
    });
    Response::new(Body::empty())
}

async fn connect(place: &Authority) -> io::Result<TcpStream> {
    let port = place.port_u16().unwrap_or_default();
    let stream = timeout(CONNECT, TcpStream::connect(format!("{}:{port}", place.host()))).await??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn pass(
    mut ours: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    mut theirs: TcpStream,
    place: Authority,
    forward: Forward,
    unreadable: mpsc::Sender<String>,
) -> io::Result<()> {
    let (first, content) = first_words(&mut ours, &theirs).await?;
    let (read, write) = split(ours);
    let mut ours = join(io::Cursor::new(first).chain(read), write);
    if content != TunnelContent::Http {
        if content == TunnelContent::Other {
            // If there is no room, one that is told of already waits there.
            let _told = unreadable.try_send(place.to_string());
        }
        copy_bidirectional(&mut ours, &mut theirs).await?;
        return Ok(());
    }
    drop(theirs);
    let answer = service_fn(move |request| {
        let (forward, place) = (forward.clone(), place.clone());
        async move { Ok::<_, Infallible>(forward.send_to(place, request).await) }
    });
    let connection = connections().serve_connection(TokioIo::new(ours), answer).with_upgrades();
    connection.await.map_err(io::Error::other)
}

/// What goes through a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TunnelContent {
    /// Requests that can be read.
    Http,
    /// Anything else.
    Other,
    /// Not enough was said to know.
    Unknown,
}

/// Reads until it is known what the client speaks, or the server is the one to begin.
async fn first_words(
    ours: &mut (impl AsyncRead + Unpin),
    theirs: &TcpStream,
) -> io::Result<(Vec<u8>, TunnelContent)> {
    let mut first = Vec::new();
    loop {
        let read = tokio::select! {
            read = ours.read_buf(&mut first) => read?,
            readable = theirs.readable() => {
                readable?;
                return Ok((first, TunnelContent::Other));
            }
        };
        match content(&first) {
            TunnelContent::Unknown if read > 0 => {}
            known => return Ok((first, known)),
        }
    }
}

/// HTTP/1 begins with a line such as `GET /v2/images HTTP/1.1`.
fn content(first: &[u8]) -> TunnelContent {
    let method = first.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    let rest = &first[method..];
    let begins_so = rest.is_empty() || (method > 0 && (rest == b" " || rest.starts_with(b" /")));
    if !begins_so || first.len() > LONGEST_FIRST_LINE {
        return TunnelContent::Other;
    }
    match rest.split(|&byte| byte == b'\n').next() {
        Some(line) if line.len() < rest.len() => {
            let line = line.trim_ascii_end();
            let is_http = line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0");
            if is_http { TunnelContent::Http } else { TunnelContent::Other }
        }
        _ => TunnelContent::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_told_from_all_else_by_its_first_line() {
        for (first, want) in [
            (&b""[..], TunnelContent::Unknown),
            (b"GET", TunnelContent::Unknown),
            (b"GET ", TunnelContent::Unknown),
            (b"GET /v2/images HTT", TunnelContent::Unknown),
            (b"GET /v2/images HTTP/1.1\r\nHost:", TunnelContent::Http),
            (b"POST / HTTP/1.0\n", TunnelContent::Http),
            (b"\x16\x03\x01\x02\x00", TunnelContent::Other),
            (b"PRI * HTTP/2.0\r\n", TunnelContent::Other),
            (b"GET key\r\n", TunnelContent::Other),
            (b"GET /key\r\n", TunnelContent::Other),
            (b" /", TunnelContent::Other),
            (b"ssh-2.0", TunnelContent::Other),
            (&[b'A'; LONGEST_FIRST_LINE + 1], TunnelContent::Other),
        ] {
            assert_eq!(content(first), want, "{}", String::from_utf8_lossy(first));
        }
    }
}
