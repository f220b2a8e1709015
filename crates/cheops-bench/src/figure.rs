//! One measured number, and what it is a measure of.

use serde::Serialize;

/// What a figure counts, and so what more of it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Measure {
    /// So many a second: more is faster.
    Rate,
    /// Less is faster.
    Time,
    /// Memory, disk, processor time: more or less of it is neither fast nor slow.
    Amount,
}

/// What a figure depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Of {
    Program,
    /// Measured without the program. If it differs, the machine was not the same for both.
    Machine,
}

/// One measured number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) measure: Measure,
    pub(crate) of: Of,
    pub(crate) value: f64,
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>, measure: Measure, value: f64) -> Self {
        Self { name: name.into(), measure, of: Of::Program, value }
    }

    /// What the machine does by itself.
    pub(crate) fn of_machine(name: impl Into<String>, measure: Measure, value: f64) -> Self {
        Self { of: Of::Machine, ..Self::new(name, measure, value) }
    }
}
