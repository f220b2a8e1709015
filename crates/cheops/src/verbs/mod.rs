//! One file, or folder, per verb.

pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod matrix;
pub(crate) mod scope;
