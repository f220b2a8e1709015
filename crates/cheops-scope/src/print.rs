//! The canonical text of a tree: braces, single spaces, no parentheses that change nothing.
//!
//! Reading it back gives the same tree.

use std::fmt;

use crate::ast::{Binding, Location, LocationKind, Scope};

impl Scope {
    /// The one text of all scopes that say the same: services by name, and the sites of `&`, which
    /// have no order among them, too.
    #[must_use]
    pub fn canonical(mut self) -> String {
        self.bindings.sort_by(|one, other| one.service.value.cmp(&other.service.value));
        for binding in &mut self.bindings {
            order(&mut binding.location);
        }
        self.to_string()
    }
}

fn order(location: &mut Location) {
    match &mut location.kind {
        LocationKind::Both(parts) => {
            parts.iter_mut().for_each(order);
            parts.sort_by_cached_key(ToString::to_string);
        }
        LocationKind::Spread(parts) | LocationKind::Otherwise(parts) => {
            parts.iter_mut().for_each(order);
        }
        LocationKind::Around { centre, .. } => order(centre),
        LocationKind::Site(_) => {}
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, binding) in self.bindings.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{binding}")?;
        }
        f.write_str("}")
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.service.value, self.location)?;
        match &self.options.consistency {
            Some(given) => write!(f, " [consistency={}]", given.value),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            LocationKind::Site(site) => write!(f, "{site}"),
            LocationKind::Both(parts) => joined(f, parts, " & ", Binds::Both),
            LocationKind::Spread(parts) => joined(f, parts, " % ", Binds::Spread),
            LocationKind::Otherwise(parts) => joined(f, parts, " ; ", Binds::Otherwise),
            LocationKind::Around { centre, within } => write!(f, "around({centre}, {within})"),
        }
    }
}

/// How tightly a location holds together; the loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binds {
    Otherwise,
    Spread,
    Both,
    Atom,
}

impl Binds {
    fn of(location: &Location) -> Self {
        match location.kind {
            LocationKind::Otherwise(_) => Self::Otherwise,
            LocationKind::Spread(_) => Self::Spread,
            LocationKind::Both(_) => Self::Both,
            LocationKind::Site(_) | LocationKind::Around { .. } => Self::Atom,
        }
    }
}

/// The same operator within itself keeps its parentheses: without them it would read back flat.
fn joined(
    f: &mut fmt::Formatter<'_>,
    parts: &[Location],
    operator: &str,
    outer: Binds,
) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            f.write_str(operator)?;
        }
        if Binds::of(part) > outer {
            write!(f, "{part}")?;
        } else {
            write!(f, "({part})")?;
        }
    }
    Ok(())
}
