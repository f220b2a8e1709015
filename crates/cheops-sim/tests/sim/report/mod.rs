//! The matrices of the technical report, for its experiments in the simulator and with whole agents.

/// Kubernetes, table 4 of the report.
pub(crate) const TABLE_4: &str = r#"{"ResolutionMatrix": [
    {"Before": "apply", "After": "apply", "Result": "take-one"}]}"#;

/// Redis, table 5. It says nothing of two sets.
pub(crate) const TABLE_5: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
    {"Before": "inc", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "inc", "After": "inc", "Result": "take-both"}]}"#;

/// A file, table 6. It says nothing of two appends.
pub(crate) const TABLE_6: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "add", "Result": "take-both-keep-order"},
    {"Before": "add", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;
