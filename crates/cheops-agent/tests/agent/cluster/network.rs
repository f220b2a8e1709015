//! What lies between two sites: it may delay, hold, drop or count what they say.

use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;

use super::Cluster;

/// Which way a datagram goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From who calls to who is called.
    There,
    Back,
}

/// A stretch of network.
pub(crate) trait Network: Send + 'static {
    /// Which datagrams go on now that this one is here: itself, none, or such as were held.
    fn crossing(&mut self, way: Way, datagram: &[u8]) -> Vec<Vec<u8>>;

    /// What each takes.
    fn takes(&self) -> Duration {
        Duration::ZERO
    }

    /// Lays it in front of that address; where it begins.
    fn to(self, address: SocketAddr) -> SocketAddr
    where
        Self: Sized,
    {
        let [near, far] = [0, 1].map(|_| {
            let socket = StdSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            Arc::new(UdpSocket::from_std(socket).unwrap())
        });
        let begins = near.local_addr().unwrap();
        tokio::spawn(carry(self, near, far, address));
        begins
    }
}

async fn carry(
    mut network: impl Network,
    near: Arc<UdpSocket>,
    far: Arc<UdpSocket>,
    called: SocketAddr,
) {
    let (mut call, mut answer) = (vec![0; 65_536], vec![0; 65_536]);
    let mut caller = None;
    loop {
        // A datagram that nobody took shows up as an error of its own.
        let (crossing, by, to) = tokio::select! {
            got = near.recv_from(&mut call) => {
                let Ok((length, from)) = got else { continue };
                caller = Some(from);
                (network.crossing(Way::There, &call[..length]), &far, called)
            }
            got = far.recv_from(&mut answer) => {
                let (Ok((length, _)), Some(caller)) = (got, caller) else { continue };
                (network.crossing(Way::Back, &answer[..length]), &near, caller)
            }
        };
        for datagram in crossing {
            if network.takes().is_zero() {
                let _refused = by.send_to(&datagram, to).await;
                continue;
            }
            let (by, takes) = (Arc::clone(by), network.takes());
            tokio::spawn(async move {
                tokio::time::sleep(takes).await;
                let _refused = by.send_to(&datagram, to).await;
            });
        }
    }
}

impl Cluster {
    /// Two sites, of which the first calls over this network; nobody hears the other's calls.
    pub(crate) async fn over(
        network: impl Network + Clone,
        more: impl Fn(usize) -> String,
    ) -> Self {
        let nobody = StdSocket::bind("127.0.0.1:0").unwrap();
        let nowhere = nobody.local_addr().unwrap();
        let looks_at = |site, _, at| if site == 0 { network.clone().to(at) } else { nowhere };
        Self::reached(2, more, looks_at).await
    }
}
