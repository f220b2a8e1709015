//! An agent as its users, applications and peers meet it. One program: linking it takes longer than
//! most of its tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test")]

mod asked_by;
mod backup;
mod cluster;
mod config;
mod docs;
mod exec_edit;
mod exec_http;
mod exec_program;
mod exec_shell;
mod exec_support;
mod exec_survivors;
mod files;
mod hooks;
mod inline_bodies;
mod links;
#[cfg(feature = "otlp")]
mod otlp;
mod own_files;
mod own_service;
mod proxy;
mod proxy_around;
mod proxy_bodies;
mod proxy_conformance;
mod proxy_cross;
mod proxy_http2;
mod proxy_links;
mod proxy_many;
mod proxy_needs;
mod proxy_replays;
mod proxy_replicas;
mod proxy_trust;
mod proxy_upgrades;
mod raw_peer;
mod refusals;
mod sample_service;
mod standings;
mod telemetry;
mod together;
mod told;
mod upgrade;
mod views;
mod wire_floods;
mod wire_lies;
mod wire_versions;
