//! A number for each cluster, and with it addresses and names that no other cluster on this machine
//! has. A cluster that was killed leaves its namespaces and folders behind: who gets its number
//! next clears them away.

use std::net::{IpAddr, Ipv4Addr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use super::network::ip;

const CLUSTERS: u8 = 200;

/// A number that is ours as long as this lives, however it ends: the system takes the name of the
/// socket back.
pub(crate) struct Ground {
    number: u8,
    _held: UnixListener,
}

impl Ground {
    pub(crate) fn take() -> Self {
        let ground = (1..=CLUSTERS).find_map(Self::hold).expect("no room for another cluster");
        ground.clear();
        clear_the_rest();
        ground
    }

    fn hold(number: u8) -> Option<Self> {
        let name = SocketAddr::from_abstract_name(format!("cheops-e2e-{number}")).unwrap();
        UnixListener::bind_addr(&name).ok().map(|held| Self { number, _held: held })
    }

    pub(crate) fn folder(&self) -> PathBuf {
        std::env::temp_dir().join(format!("cheops-e2e-{}", self.number))
    }

    pub(crate) fn namespace(&self, site: u8) -> String {
        format!("cheops-e2e-{}-{site}", self.number)
    }

    /// The interface through which this process reaches a site in its namespace.
    pub(crate) fn interface(&self, site: u8) -> String {
        format!("ce2e{}s{site}", self.number)
    }

    /// The two ends of that way: ours and the site's. The range is kept for tests of networks.
    pub(crate) fn way_to(&self, site: u8) -> [IpAddr; 2] {
        [1, 2].map(|end| Ipv4Addr::new(198, 18, self.number, 4 * site + end).into())
    }

    /// An address of loopback.
    pub(crate) fn loopback(&self, site: u8) -> IpAddr {
        Ipv4Addr::new(127, self.number, site, 1).into()
    }

    /// Removes whatever has this number.
    pub(crate) fn clear(&self) {
        for site in 0..=super::MOST_SITES {
            let (namespace, interface) = (self.namespace(site), self.interface(site));
            // It goes with its namespace as well, but some time later.
            if Path::new("/sys/class/net").join(&interface).exists() {
                let _gone = ip(&["link", "del", &interface]);
            }
            if Path::new("/run/netns").join(&namespace).exists() {
                let _in_use = ip(&["netns", "del", &namespace]);
            }
        }
        super::full::unmount_below(&self.folder());
        let _none = std::fs::remove_dir_all(self.folder());
    }
}

/// Clears what clusters left behind that were killed and whose numbers nobody took since.
fn clear_the_rest() {
    let named = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let rest = name.strip_prefix("cheops-e2e-")?.split('-').next()?.to_owned();
        rest.parse::<u8>().ok()
    };
    let places = [PathBuf::from("/run/netns"), std::env::temp_dir()];
    let entries = places.into_iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten();
    for number in entries.filter_map(named) {
        if let Some(left_behind) = Ground::hold(number) {
            left_behind.clear();
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.clear();
    }
}
