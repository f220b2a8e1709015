//! A stretch of network that can be cut: what comes in at one address goes out to another, and the
//! answers go back, until it is told to drop everything.
//!
//! It stands between the agents of the demo and of the tests. To them a cut looks like any other:
//! nothing arrives, and nobody says so.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// The largest datagram there is.
const LARGEST: usize = 65_536;
/// Those on one side that are remembered; a site calls from one address.
const MOST_CALLERS: usize = 64;

/// A relay at work. Dropped, it stops.
pub(crate) struct Relay {
    address: SocketAddr,
    cut: Arc<AtomicBool>,
    work: JoinHandle<()>,
}

impl Relay {
    /// Starts one at a free port of loopback, or at that address.
    pub(crate) async fn start(listen: SocketAddr, to: SocketAddr) -> io::Result<Self> {
        let socket = Arc::new(UdpSocket::bind(listen).await?);
        let address = socket.local_addr()?;
        let cut = Arc::new(AtomicBool::new(false));
        let work = tokio::spawn(forward(socket, to, cut.clone()));
        Ok(Self { address, cut, work })
    }

    /// Where to send to instead.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Drops everything from now on, or no longer.
    pub(crate) fn set_cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }

    /// Whether it drops everything.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// One caller's way through, so that answers find back.
struct CallerPath {
    socket: Arc<UdpSocket>,
    back: JoinHandle<()>,
}

impl Drop for CallerPath {
    fn drop(&mut self) {
        self.back.abort();
    }
}

async fn forward(socket: Arc<UdpSocket>, to: SocketAddr, cut: Arc<AtomicBool>) {
    let mut ways: HashMap<SocketAddr, CallerPath> = HashMap::new();
    let mut buffer = vec![0; LARGEST];
    loop {
        // A datagram that could not be delivered earlier shows up here as an error of its own.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
        if cut.load(Ordering::Relaxed) {
            continue;
        }
        if !ways.contains_key(&from) {
            if ways.len() >= MOST_CALLERS {
                ways.clear();
            }
            let Ok(way) = open(&socket, from, to, &cut).await else { continue };
            ways.insert(from, way);
        }
        if let Some(way) = ways.get(&from) {
            let _lost = way.socket.send(&buffer[..length]).await;
        }
    }
}

async fn open(
    front: &Arc<UdpSocket>,
    caller: SocketAddr,
    to: SocketAddr,
    cut: &Arc<AtomicBool>,
) -> io::Result<CallerPath> {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = Arc::new(UdpSocket::bind(any).await?);
    socket.connect(to).await?;
    let (front, behind, cut) = (front.clone(), socket.clone(), cut.clone());
    let back = tokio::spawn(async move {
        let mut buffer = vec![0; LARGEST];
        loop {
            let Ok(length) = behind.recv(&mut buffer).await else { continue };
            if !cut.load(Ordering::Relaxed) {
                let _lost = front.send_to(&buffer[..length], caller).await;
            }
        }
    });
    Ok(CallerPath { socket, back })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_sent_through_it_arrives_until_it_is_cut_and_again_once_it_is_healed() {
        let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let loopback = "127.0.0.1:0".parse().unwrap();
        let relay = Relay::start(loopback, far.local_addr().unwrap()).await.unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        near.connect(relay.address()).await.unwrap();
        let mut buffer = [0; 16];

        near.send(b"one").await.unwrap();
        let (length, from) = far.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"one");
        far.send_to(b"two", from).await.unwrap();
        let length = near.recv(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"two");

        relay.set_cut(true);
        near.send(b"lost").await.unwrap();
        far.send_to(b"lost too", from).await.unwrap();
        let a_while = std::time::Duration::from_millis(200);
        let mut other = [0; 16];
        tokio::select! {
            _ = far.recv_from(&mut buffer) => panic!("it arrived though all is cut"),
            _ = near.recv(&mut other) => panic!("the answer arrived though all is cut"),
            () = tokio::time::sleep(a_while) => {}
        }

        relay.set_cut(false);
        near.send(b"three").await.unwrap();
        // Where this machine was away for a while, the relay may see the lost one only now.
        while buffer[..5] != *b"three" {
            far.recv_from(&mut buffer).await.unwrap();
        }
    }
}
