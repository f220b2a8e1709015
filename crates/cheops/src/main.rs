//! The `cheops` command.
fn main() {}
