//! Clients that hand in one operation after the other, each by a connection of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::failure::{BenchFailure, cannot};

/// Who is meant at a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskedOf {
    /// The agent itself, by its API.
    Agent,
    /// The service that it stands in front of.
    Service,
}

/// One client: whom it asks, and for what in turn.
pub(crate) struct LoadClient {
    pub(crate) site: SocketAddr,
    pub(crate) of: AskedOf,
    pub(crate) operations: Vec<Bytes>,
}

/// When it is enough, for all clients together.
#[derive(Debug, Clone)]
pub(crate) enum LoadLimit {
    Time(Duration),
    Count(u64),
}

/// What became of it.
pub(crate) struct Load {
    /// How long each operation took.
    pub(crate) times: Vec<Duration>,
    /// How long all of it took.
    pub(crate) took: Duration,
    /// How many replies said that the operation ran.
    pub(crate) ran: u64,
}

impl Load {
    pub(crate) fn count(&self) -> u64 {
        self.times.len() as u64
    }
}

/// What the clients still have to do.
struct Rest {
    end: Option<Instant>,
    left: AtomicU64,
}

impl Rest {
    fn of(until: &LoadLimit) -> Self {
        match until {
            LoadLimit::Time(time) => {
                Self { end: Some(Instant::now() + *time), left: AtomicU64::new(u64::MAX) }
            }
            LoadLimit::Count(count) => Self { end: None, left: AtomicU64::new(*count) },
        }
    }

    fn take(&self) -> bool {
        self.end.is_none_or(|end| Instant::now() < end)
            && self
                .left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
    }
}

/// Lets all clients work at once.
pub(crate) async fn load(clients: Vec<LoadClient>, until: LoadLimit) -> Result<Load, BenchFailure> {
    let mut connected = Vec::new();
    for client in clients {
        connected.push((Connection::open(client.site).await?, client));
    }
    let (start, rest) = (Instant::now(), Arc::new(Rest::of(&until)));
    let mut working = JoinSet::new();
    for (connection, client) in connected {
        working.spawn(work(connection, client, Arc::clone(&rest)));
    }
    let (mut times, mut ran) = (Vec::new(), 0);
    while let Some(worked) = working.join_next().await {
        let worked = worked.map_err(cannot("wait for a client"))??;
        times.extend(worked.0);
        ran += worked.1;
    }
    Ok(Load { times, took: start.elapsed(), ran })
}

async fn work(
    mut connection: Connection,
    client: LoadClient,
    rest: Arc<Rest>,
) -> Result<(Vec<Duration>, u64), BenchFailure> {
    let (mut times, mut ran) = (Vec::new(), 0);
    for operation in client.operations.iter().cycle() {
        if !rest.take() {
            break;
        }
        let start = Instant::now();
        ran += match client.of {
            AskedOf::Agent => connection.hand_in(operation).await? as u64,
            AskedOf::Service => connection.send(operation).await.map(|()| 1)?,
        };
        times.push(start.elapsed());
    }
    Ok((times, ran))
}
