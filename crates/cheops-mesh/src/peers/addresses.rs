//! Where one site is looked for: when to look its name up, and what to call.
//!
//! What cuts a site off often takes its name service along. So what was found once is called until
//! something else is found, and nothing waits for a lookup but a site that was never found.
//!
//! A name may stand for several addresses, some of which lead nowhere. Each call takes the next one.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use super::frame::LinkError;

/// The addresses of one site.
#[derive(Debug)]
pub(super) struct Addresses {
    /// As configured: a name, or an address.
    name: String,
    /// The address of the socket that calls.
    from: SocketAddr,
    lookups: Lookups,
    /// As last found, the next to be called first.
    known: VecDeque<SocketAddr>,
    /// Why nothing was found the last time.
    problem: Option<LinkError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lookups {
    /// It is an address already.
    NotNeeded,
    NoneUnderWay,
    /// Never more than one: a name service that says nothing keeps each for half a minute.
    OneUnderWay,
}

impl Addresses {
    pub(super) fn new(name: String, from: SocketAddr) -> Self {
        let (lookups, problem) = (Lookups::NoneUnderWay, None);
        let mut addresses = Self { name, from, lookups, known: VecDeque::new(), problem };
        if let Ok(literal) = addresses.name.parse() {
            addresses.found(Ok(vec![literal]));
            addresses.lookups = Lookups::NotNeeded;
        }
        addresses
    }

    /// The name, if it is to be looked up now. Then [`Addresses::found`] must follow.
    pub(super) fn look_up(&mut self) -> Option<&str> {
        match self.lookups {
            Lookups::NotNeeded => None,
            Lookups::NoneUnderWay => {
                self.lookups = Lookups::OneUnderWay;
                Some(&self.name)
            }
            Lookups::OneUnderWay => {
                if self.known.is_empty() && self.problem.is_none() {
                    self.problem = Some(self.not_found("the name service has not answered yet"));
                }
                None
            }
        }
    }

    /// What a lookup came to.
    pub(super) fn found(&mut self, found: Result<Vec<SocketAddr>, String>) {
        self.lookups = Lookups::NoneUnderWay;
        self.problem = match found.map(|found| self.fitting(found)) {
            Ok(Ok(found)) => {
                self.know(found);
                None
            }
            Ok(Err(unfit)) => Some(unfit),
            Err(why) => Some(self.not_found(&why)),
        };
    }

    /// What to call now. The next call has another, if there is one.
    pub(super) fn call(&mut self) -> Option<SocketAddr> {
        let next = self.known.pop_front()?;
        self.known.push_back(next);
        Some(next)
    }

    /// A call there got through: once the link is lost, that is where to call first.
    pub(super) fn answered(&mut self, there: SocketAddr) {
        if let Some(place) = self.known.iter().position(|known| same(*known, there)) {
            self.known.rotate_left(place);
        }
    }

    /// Where it was last found.
    pub(super) fn known(&self) -> impl Iterator<Item = &SocketAddr> {
        self.known.iter()
    }

    /// Whether there is nothing to call.
    pub(super) fn is_lost(&self) -> bool {
        self.known.is_empty()
    }

    /// Those of them that our socket can call.
    fn fitting(&self, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, LinkError> {
        let Some(first) = found.first().copied() else {
            return Err(self.not_found("the name has no address"));
        };
        let mut fitting = Vec::new();
        for address in found {
            if fits(self.from.ip(), address.ip()) && !fitting.contains(&address) {
                fitting.push(address);
            }
        }
        if fitting.is_empty() {
            return Err(LinkError::OtherFamily { there: first, from: self.from });
        }
        Ok(fitting)
    }

    /// Name services like to change the order, which must not keep an address from its turn.
    fn know(&mut self, found: Vec<SocketAddr>) {
        let is_new = |address: &SocketAddr| !self.known.contains(address);
        if found.len() != self.known.len() || found.iter().any(is_new) {
            self.known = found.into();
        }
    }

    /// Why there is nothing to call, or nothing but what was found earlier.
    pub(super) fn problem(&self) -> Option<&LinkError> {
        self.problem.as_ref()
    }

    fn not_found(&self, why: &str) -> LinkError {
        LinkError::NoAddress(self.name.clone(), why.to_owned())
    }
}

/// Whether a socket of the one address can call the other. One of IPv6 for all addresses is for IPv4
/// too, unless the system is told otherwise: then such a call fails, and the next has its turn.
fn fits(from: IpAddr, to: IpAddr) -> bool {
    match from.to_canonical() {
        IpAddr::V4(_) => to.is_ipv4(),
        IpAddr::V6(from) => to.is_ipv6() || from.is_unspecified(),
    }
}

/// A socket of IPv6 knows an address of IPv4 by another form.
fn same(one: SocketAddr, other: SocketAddr) -> bool {
    (one.ip().to_canonical(), one.port()) == (other.ip().to_canonical(), other.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn said(addresses: &Addresses) -> String {
        addresses.problem().map(ToString::to_string).unwrap_or_default()
    }

    #[test]
    fn an_address_is_called_without_a_lookup() {
        for literal in ["192.0.2.1:8078", "[2001:db8::1]:8078"] {
            let mut addresses = Addresses::new(literal.to_owned(), at("[::]:8078"));
            assert_eq!(addresses.look_up(), None);
            assert_eq!(addresses.call(), Some(at(literal)));
        }
    }

    #[test]
    fn a_name_is_looked_up_with_every_call_but_never_twice_at_once() {
        let mut addresses = Addresses::new("lyon.example:8078".to_owned(), at("0.0.0.0:8078"));
        assert_eq!(addresses.look_up(), Some("lyon.example:8078"));
        assert_eq!((addresses.call(), said(&addresses).as_str()), (None, ""));
        for _ in 0..1000 {
            assert_eq!(addresses.look_up(), None, "one is under way");
        }
        let silent = "`lyon.example:8078` cannot be found: the name service has not answered yet";
        assert_eq!((addresses.call(), said(&addresses).as_str()), (None, silent));
        addresses.found(Ok(vec![at("192.0.2.1:8078")]));
        assert_eq!((addresses.call(), said(&addresses).as_str()), (Some(at("192.0.2.1:8078")), ""));
        assert_eq!(addresses.look_up(), Some("lyon.example:8078"));
    }

    #[test]
    fn what_was_found_is_called_while_nothing_else_is() {
        let (old, new) = (at("192.0.2.1:8078"), at("192.0.2.2:8078"));
        let cases = [
            (None, Some(old), ""),
            (
                Some(Err("Temporary failure in name resolution".to_owned())),
                Some(old),
                "`lyon:8078` cannot be found: Temporary failure in name resolution",
            ),
            (Some(Ok(vec![])), Some(old), "`lyon:8078` cannot be found: the name has no address"),
            (Some(Ok(vec![new])), Some(new), ""),
        ];
        for (second, call, problem) in cases {
            let mut addresses = Addresses::new("lyon:8078".to_owned(), at("0.0.0.0:8078"));
            addresses.look_up();
            addresses.found(Ok(vec![old]));
            addresses.look_up();
            if let Some(second) = second.clone() {
                addresses.found(second);
            }
            // A lookup that hangs is as one that has only just begun.
            addresses.look_up();
            assert_eq!(
                (addresses.call(), said(&addresses).as_str()),
                (call, problem),
                "{second:?}"
            );
        }
    }

    /// What the first calls go to, from a socket there to a site with these addresses.
    fn calls(from: &str, found: &[&str]) -> (Vec<String>, String) {
        let mut addresses = Addresses::new("lyon:8078".to_owned(), at(from));
        addresses.look_up();
        addresses.found(Ok(found.iter().copied().map(at).collect()));
        let calls = (0..3).filter_map(|_| addresses.call()).map(|to| to.to_string()).collect();
        (calls, said(&addresses))
    }

    #[test]
    fn each_call_goes_to_the_next_address_that_our_socket_can_call() {
        let (four, other_four, six) = ("192.0.2.1:1", "192.0.2.2:1", "[2001:db8::1]:1");
        let cases: &[(&str, &[&str], [&str; 3])] = &[
            ("0.0.0.0:8078", &[six, four], [four; 3]),
            ("0.0.0.0:8078", &[four, six, four, other_four], [four, other_four, four]),
            ("192.0.2.9:8078", &[six, four], [four; 3]),
            ("[::]:8078", &[six, four], [six, four, six]),
            ("[2001:db8::9]:8078", &[four, six], [six; 3]),
            ("[::ffff:192.0.2.9]:8078", &[six, four], [four; 3]),
        ];
        for (from, found, expected) in cases {
            let (calls, problem) = calls(from, found);
            assert_eq!(
                (calls, problem.as_str()),
                (expected.map(str::to_owned).into(), ""),
                "{from}"
            );
        }
    }

    #[test]
    fn where_no_address_can_be_called_it_is_said_what_would_help() {
        let remedy = "`listen = \"[::]:8078\"` in `[mesh]` is for IPv4 and IPv6";
        for (from, there) in [
            ("0.0.0.0:8078", "[2001:db8::1]:1"),
            ("192.0.2.9:8078", "[2001:db8::1]:1"),
            ("[2001:db8::9]:8078", "192.0.2.1:1"),
        ] {
            let (none, problem) = calls(from, &[there]);
            assert!(none.is_empty(), "{none:?}");
            assert_eq!(problem, format!("`{there}` cannot be called from `{from}`: {remedy}"));
            let literal = Addresses::new(there.to_owned(), at(from));
            assert_eq!((literal.is_lost(), said(&literal)), (true, problem));
        }
    }

    #[test]
    fn what_answered_is_called_first_when_the_link_is_lost() {
        let [one, two, three] = ["192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1"].map(at);
        let mut addresses = Addresses::new("lyon:8078".to_owned(), at("[::]:8078"));
        addresses.look_up();
        addresses.found(Ok(vec![one, two, three]));
        addresses.answered(at("[::ffff:192.0.2.2]:1"));
        assert_eq!(addresses.call(), Some(two));
        addresses.look_up();
        addresses.found(Ok(vec![one, three, two]));
        assert_eq!(addresses.call(), Some(three), "the order of an answer means nothing");
        assert_eq!(addresses.call(), Some(one));
    }
}
