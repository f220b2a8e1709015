//! cheops-sim
