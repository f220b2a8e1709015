//! cheops-scope
