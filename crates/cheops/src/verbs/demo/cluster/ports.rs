//! Where to listen on this machine.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// Which ports a demo likes best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Scheme {
    /// Those that commands to paste are shortest with, if they are free.
    Usual,
    /// Any: nobody sees them, and others may be about to take the usual ones.
    Any,
}

/// Ports that are held until whoever is to listen there starts, so that none is given out twice.
pub(super) struct Ports {
    scheme: Scheme,
    held: Vec<TcpListener>,
}

impl Ports {
    pub(super) fn new(scheme: Scheme) -> Self {
        Self { scheme, held: Vec::new() }
    }

    /// One for the site of that place, counted from the usual one of the first site.
    pub(super) fn take(&mut self, usual: u16, at: usize) -> std::io::Result<SocketAddr> {
        let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = match (self.scheme, u16::try_from(at)) {
            (Scheme::Usual, Ok(at)) => {
                let usual = usual.saturating_add(at);
                TcpListener::bind((Ipv4Addr::LOCALHOST, usual)).or_else(|_taken| free())?
            }
            _ => free()?,
        };
        let address = listener.local_addr()?;
        self.held.push(listener);
        Ok(address)
    }
}

/// Free ports for datagrams.
pub(super) fn for_datagrams(count: usize) -> std::io::Result<Vec<SocketAddr>> {
    // Held until all are found, so that none is found twice.
    let sockets: Vec<_> =
        (0..count).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>()?;
    sockets.iter().map(UdpSocket::local_addr).collect()
}
