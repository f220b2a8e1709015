//! What lies between the sites, and can be cut: a pair of interfaces between each two namespaces,
//! or two relays.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::ground::Ground;
use crate::e2e::relay::Relay;

const MESH_PORT: u16 = 8078;
const API_PORT: u16 = 8079;

/// What links are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Namespaces,
    Relays,
}

impl Links {
    /// What was asked for, or else what this machine allows.
    pub(crate) fn here() -> Self {
        static HERE: OnceLock<Links> = OnceLock::new();
        *HERE.get_or_init(|| {
            let links = match std::env::var("CHEOPS_E2E_LINKS").as_deref() {
                Ok("netns") => Self::Namespaces,
                Ok("relay") => Self::Relays,
                Ok(other) => panic!("CHEOPS_E2E_LINKS is `{other}`; expected `netns` or `relay`"),
                Err(_) if namespaces_can_be_made() => Self::Namespaces,
                Err(_) => Self::Relays,
            };
            match links {
                Self::Namespaces => eprintln!("links: network namespaces"),
                Self::Relays => eprintln!("links: relays in this process"),
            }
            links
        })
    }
}

/// Runs `ip`.
pub(crate) fn ip(arguments: &[&str]) -> Result<(), String> {
    let ran = Command::new("ip").args(arguments).stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| format!("ip: {error}"))?;
    match ran.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&ran.stderr);
            Err(format!("ip {}: {}", arguments.join(" "), said.trim()))
        }
    }
}

fn namespaces_can_be_made() -> bool {
    let name = format!("cheops-e2e-probe-{}", std::process::id());
    let made = ip(&["netns", "add", &name]).is_ok();
    let used = made && ip(&["netns", "exec", &name, "true"]).is_ok();
    made && ip(&["netns", "del", &name]).is_ok() && used
}

/// A way between two sites: the lower number first.
type Between = (u8, u8);

enum Way {
    /// The names of its interfaces in the two namespaces.
    Interfaces,
    /// One for the calls of each: to the second, and to the first.
    Relays([Relay; 2]),
}

/// All ways.
pub(crate) struct Network {
    links: Links,
    namespaces: Vec<String>,
    ways: BTreeMap<Between, Way>,
}

fn pairs(sites: u8) -> impl Iterator<Item = Between> {
    (1..=sites).flat_map(move |a| (a + 1..=sites).map(move |b| (a, b)))
}

/// The address of one end of the way between two sites in their namespaces.
fn end_of((a, b): Between, at: u8) -> Ipv4Addr {
    Ipv4Addr::new(198, 19, 16 * a + b, if at == a { 1 } else { 2 })
}

fn interface_to(site: u8) -> String {
    format!("to-site{site}")
}

impl Network {
    pub(crate) async fn between(sites: u8, ground: &Ground) -> Self {
        let links = Links::here();
        let mut network = Self { links, namespaces: Vec::new(), ways: BTreeMap::new() };
        match links {
            Links::Namespaces => network.make_namespaces(sites, ground).unwrap(),
            Links::Relays => network.make_relays(sites, ground).await,
        }
        network
    }

    fn make_namespaces(&mut self, sites: u8, ground: &Ground) -> Result<(), String> {
        for site in 1..=sites {
            let (namespace, interface) = (ground.namespace(site), ground.interface(site));
            let [ours, theirs] = ground.way_to(site).map(|address| format!("{address}/30"));
            ip(&["netns", "add", &namespace])?;
            ip(&["-n", &namespace, "link", "set", "lo", "up"])?;
            ip(&[
                "link", "add", &interface, "type", "veth", "peer", "name", "manage", "netns",
                &namespace,
            ])?;
            ip(&["address", "add", &ours, "dev", &interface])?;
            ip(&["link", "set", &interface, "up"])?;
            ip(&["-n", &namespace, "address", "add", &theirs, "dev", "manage"])?;
            ip(&["-n", &namespace, "link", "set", "manage", "up"])?;
            self.namespaces.push(namespace);
        }
        for (a, b) in pairs(sites) {
            let [at_a, at_b] = [self.namespace(a), self.namespace(b)];
            let (to_b, to_a) = (interface_to(b), interface_to(a));
            ip(&[
                "-n", at_a, "link", "add", &to_b, "type", "veth", "peer", "name", &to_a, "netns",
                at_b,
            ])?;
            for (namespace, interface, at) in [(at_a, &to_b, a), (at_b, &to_a, b)] {
                let address = format!("{}/30", end_of((a, b), at));
                ip(&["-n", namespace, "address", "add", &address, "dev", interface])?;
                ip(&["-n", namespace, "link", "set", interface, "up"])?;
            }
            self.ways.insert((a, b), Way::Interfaces);
        }
        Ok(())
    }

    async fn make_relays(&mut self, sites: u8, ground: &Ground) {
        for (a, b) in pairs(sites) {
            let to = |site| SocketAddr::new(ground.loopback(site), MESH_PORT);
            let relay = async |site| {
                let listen = SocketAddr::new(ground.loopback(0), 0);
                Relay::start(listen, to(site)).await.unwrap()
            };
            self.ways.insert((a, b), Way::Relays([relay(b).await, relay(a).await]));
        }
    }

    fn namespace(&self, site: u8) -> &str {
        &self.namespaces[usize::from(site) - 1]
    }

    /// What starts a program at a site.
    pub(crate) fn command(&self, site: u8, program: &str) -> Command {
        match self.links {
            Links::Relays => Command::new(program),
            // `ip` becomes the program: they are one process.
            Links::Namespaces => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", self.namespace(site), program]);
                command
            }
        }
    }

    /// Where a site's own processes listen, for each other and for this one.
    pub(crate) fn address(&self, site: u8, ground: &Ground) -> IpAddr {
        match self.links {
            Links::Namespaces => ground.way_to(site)[1],
            Links::Relays => ground.loopback(site),
        }
    }

    /// Where a site's agent listens for programs of that site. This process comes by the socket.
    pub(crate) fn api(&self, site: u8, ground: &Ground) -> SocketAddr {
        let address = match self.links {
            Links::Namespaces => Ipv4Addr::LOCALHOST.into(),
            Links::Relays => ground.loopback(site),
        };
        SocketAddr::new(address, API_PORT)
    }

    /// Where this process can listen for a site.
    pub(crate) fn host_of(&self, site: u8, ground: &Ground) -> IpAddr {
        match self.links {
            Links::Namespaces => ground.way_to(site)[0],
            Links::Relays => ground.loopback(site),
        }
    }

    /// Where a site listens for the others.
    pub(crate) fn mesh(&self, site: u8, ground: &Ground) -> SocketAddr {
        let address = match self.links {
            Links::Namespaces => Ipv4Addr::UNSPECIFIED.into(),
            Links::Relays => ground.loopback(site),
        };
        SocketAddr::new(address, MESH_PORT)
    }

    /// Where one site finds another.
    pub(crate) fn peer(&self, of: u8, site: u8) -> SocketAddr {
        let between = (of.min(site), of.max(site));
        match &self.ways[&between] {
            Way::Interfaces => SocketAddr::new(end_of(between, site).into(), MESH_PORT),
            Way::Relays([to_second, _]) if of < site => to_second.address(),
            Way::Relays([_, to_first]) => to_first.address(),
        }
    }

    /// Cuts the way between two sites, or heals it.
    pub(crate) fn set_cut(&self, between: Between, cut: bool) {
        match &self.ways[&between] {
            Way::Relays(relays) => relays.iter().for_each(|relay| relay.set_cut(cut)),
            Way::Interfaces => {
                let state = if cut { "down" } else { "up" };
                let (a, b) = between;
                for (at, to) in [(a, b), (b, a)] {
                    let interface = interface_to(to);
                    ip(&["-n", self.namespace(at), "link", "set", &interface, state]).unwrap();
                }
            }
        }
    }

    /// Cuts all ways, or heals them.
    pub(crate) fn set_all_cut(&self, cut: bool) {
        self.ways.keys().for_each(|between| self.set_cut(*between, cut));
    }

    /// Cuts all ways to a site, or heals them.
    pub(crate) fn set_cut_off(&self, site: u8, cut: bool) {
        let concern = |(a, b): &&Between| *a == site || *b == site;
        self.ways.keys().filter(concern).for_each(|between| self.set_cut(*between, cut));
    }
}
