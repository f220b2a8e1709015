//! Types that a matrix does not list: taken, and told of.

use std::fmt;

use super::Config;
use super::spelling::nearest;
use crate::ids::OperationType;

/// A type of which a matrix says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlistedType {
    /// The type.
    pub kind: OperationType,
    /// Those that are listed, by name.
    pub listed: Vec<OperationType>,
    /// The one that was probably meant.
    pub meant: Option<OperationType>,
}

impl Config {
    /// Whether the matrix says nothing of that type. Where there is no matrix, no type is listed, and
    /// none is missed; of Cheops' own types no matrix says anything.
    pub fn unlisted(&self, kind: &OperationType) -> Option<UnlistedType> {
        let kinds = self.kinds();
        if self.matrix.is_empty() || kinds.contains(kind) || kind.is_reserved() {
            return None;
        }
        let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let meant = nearest(kind.as_str(), &names);
        let meant = meant.and_then(|name| kinds.iter().find(|kind| kind.as_str() == name));
        Some(UnlistedType {
            kind: kind.clone(),
            meant: meant.map(|kind| OperationType::clone(kind)),
            listed: kinds.into_iter().cloned().collect(),
        })
    }
}

impl fmt::Display for UnlistedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, listed, meant } = self;
        write!(
            f,
            "the matrix does not list the type `{kind}`, so it may run in any order with all"
        )?;
        let listed: Vec<String> = listed.iter().map(|kind| format!("`{kind}`")).collect();
        write!(f, "; listed are {}", listed.join(", "))?;
        match meant {
            Some(meant) => write!(f, "; did you mean `{meant}`?"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::profile;

    #[test]
    fn a_type_that_the_matrix_does_not_list_is_told_of_with_those_it_does() {
        let kind = |name| OperationType::new(name).unwrap();
        let redis = &profile("redis").unwrap().config;
        for (name, expected) in [
            ("inc", None),
            (
                "incr",
                Some(
                    "the matrix does not list the type `incr`, so it may run in any order with all; \
                     listed are `del`, `inc`, `sadd`, `set`, `srem`; did you mean `inc`?",
                ),
            ),
            (
                "expire-soon",
                Some(
                    "the matrix does not list the type `expire-soon`, so it may run in any order \
                     with all; listed are `del`, `inc`, `sadd`, `set`, `srem`",
                ),
            ),
        ] {
            let told = redis.unlisted(&kind(name)).map(|it| it.to_string());
            assert_eq!(told.as_deref(), expected, "{name}");
        }
        assert_eq!(redis.unlisted(&OperationType::deletion()), None);
        assert_eq!(Config::default().unlisted(&kind("anything")), None);
    }
}
