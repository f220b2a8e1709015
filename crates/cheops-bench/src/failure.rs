//! Why a measurement could not be made. A target that is missed is no failure.

use std::fmt::Display;

/// What could not be done, and why.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {because}")]
pub(crate) struct BenchFailure {
    what: String,
    because: String,
}

impl BenchFailure {
    pub(crate) fn new(what: impl Into<String>, because: impl Display) -> Self {
        Self { what: what.into(), because: because.to_string() }
    }
}

/// For `map_err`: the error with what was tried.
pub(crate) fn cannot<E: Display>(what: &str) -> impl FnOnce(E) -> BenchFailure {
    move |error| BenchFailure::new(format!("cannot {what}"), error)
}
