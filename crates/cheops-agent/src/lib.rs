//! Everything of an agent that waits: driver, links, executors, HTTP, hooks.
