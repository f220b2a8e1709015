//! The socket of a demo that runs: where it is, and how it is asked for what lets commands in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use cheops_api::Token;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

/// How long an answer may be.
const LONGEST: usize = 64 * 1024;
/// Where commands of the demo's own user learn what lets them in.
pub(crate) const TOKENS: &str = "/tokens";
/// How long a demo may take to say so. One that is about to start says nothing yet.
const TELLING: Duration = Duration::from_secs(1);

/// What lets commands in at each agent, by its address.
pub(crate) type Tokens = BTreeMap<String, String>;

pub(crate) type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// Asks the demo at the other end.
pub(crate) async fn asked<T: DeserializeOwned>(
    stream: UnixStream,
    request: Request<Body>,
) -> Result<T, BoxedError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let bytes = to_bytes(Body::new(response.into_body()), LONGEST).await?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Where it is, in the user's own folder if there is one.
pub(crate) fn path() -> PathBuf {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let user = std::env::var("USER").unwrap_or_else(|_| "user".into());
    match own.filter(|dir| dir.is_dir()) {
        Some(dir) => dir.join("cheops-demo.sock"),
        None => std::env::temp_dir().join(format!("cheops-demo-{user}.sock")),
    }
}

/// What lets commands in at the agent with that address, if it is one of a demo of this user.
pub(crate) async fn token_of(api: &str) -> Option<Token> {
    let stream = UnixStream::connect(path()).await.ok()?;
    // The name of the socket can be had by anyone where it is not in the user's own folder.
    let is_ours = stream.peer_cred().ok()?.uid() == rustix::process::geteuid().as_raw();
    let request = Request::get(TOKENS).body(Body::empty()).ok().filter(|_| is_ours)?;
    let told = tokio::time::timeout(TELLING, asked::<Tokens>(stream, request)).await.ok()?;
    Token::new(told.ok()?.get(api)?).ok()
}
