//! What the machine itself takes: the least that anything built on it can cost.

use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::cluster::SITES;
use crate::connection::Connection;
use crate::failure::{BenchFailure, cannot};
use crate::stats::rate;

/// About what a record takes on disk.
const RECORD_BYTES: usize = 300;
const REQUEST: &[u8] = b"PUT /noop HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";

/// Runs `true` in a shell, as an agent would.
async fn shell() -> Result<(), BenchFailure> {
    let mut command = Command::new("sh");
    command.args(["-c", "true"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().await.map(|_| ()).map_err(cannot("run `sh`"))
}

/// The same command once per site, one after the other.
pub(crate) async fn shell_in_turn() -> Result<Duration, BenchFailure> {
    let start = Instant::now();
    for _ in 0..SITES {
        shell().await?;
    }
    Ok(start.elapsed())
}

/// The same command once per site, all at once.
pub(crate) async fn shell_at_once() -> Result<Duration, BenchFailure> {
    let start = Instant::now();
    tokio::try_join!(shell(), shell(), shell())?;
    Ok(start.elapsed())
}

/// How many shells a second so many tasks run.
pub(crate) async fn shell_rate(tasks: usize, time: Duration) -> Result<f64, BenchFailure> {
    let (start, mut running) = (Instant::now(), JoinSet::new());
    for _ in 0..tasks {
        running.spawn(async move {
            let mut count = 0;
            while start.elapsed() < time {
                shell().await?;
                count += 1;
            }
            Ok::<u64, BenchFailure>(count)
        });
    }
    let mut count = 0;
    while let Some(ran) = running.join_next().await {
        count += ran.map_err(cannot("wait for a shell"))??;
    }
    Ok(rate(count, start.elapsed()))
}

/// Requests to a service, by kept-open connections.
pub(crate) struct Requests([Connection; SITES]);

impl Requests {
    pub(crate) async fn to(service: SocketAddr) -> Result<Self, BenchFailure> {
        let open = || Connection::open(service);
        Ok(Self([open().await?, open().await?, open().await?]))
    }

    /// One per site, one after the other.
    pub(crate) async fn in_turn(&mut self) -> Result<Duration, BenchFailure> {
        let start = Instant::now();
        for connection in &mut self.0 {
            connection.head_only(REQUEST).await?;
        }
        Ok(start.elapsed())
    }

    /// One per site, all at once.
    pub(crate) async fn at_once(&mut self) -> Result<Duration, BenchFailure> {
        let start = Instant::now();
        let [first, second, third] = &mut self.0;
        tokio::try_join!(
            first.head_only(REQUEST),
            second.head_only(REQUEST),
            third.head_only(REQUEST)
        )?;
        Ok(start.elapsed())
    }
}

/// Somebody on loopback who says again what is said.
pub(crate) struct EchoConnection {
    stream: TcpStream,
}

impl EchoConnection {
    pub(crate) async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let stream = TcpStream::connect(listener.local_addr()?).await?;
        let (mut other, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        other.set_nodelay(true)?;
        tokio::spawn(async move {
            let mut buffer = [0; 64];
            // It ends with the one who asks.
            while other.read_exact(&mut buffer).await.is_ok()
                && other.write_all(&buffer).await.is_ok()
            {}
        });
        Ok(Self { stream })
    }

    pub(crate) async fn round_trip(&mut self) -> std::io::Result<Duration> {
        let (start, mut buffer) = (Instant::now(), [0; 64]);
        self.stream.write_all(&buffer).await?;
        self.stream.read_exact(&mut buffer).await?;
        Ok(start.elapsed())
    }
}

/// How often a second a record's worth of bytes can be made durable.
pub(crate) fn sync_rate(folder: &Path, time: Duration) -> std::io::Result<f64> {
    let mut file = File::create(folder.join("bare"))?;
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < time {
        file.write_all(&[0; RECORD_BYTES])?;
        file.sync_data()?;
        count += 1;
    }
    Ok(rate(count, start.elapsed()))
}
