//! cheops-core
