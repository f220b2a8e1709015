//! Everything of an agent that waits: driver, links, executors, HTTP, hooks.
//!
//! What to do is decided elsewhere (`cheops-core`); this crate carries events to the engine and
//! its effects to the world. [`Agent`] puts the parts together:
//!
//! ```text
//!  user ──HTTP──▶ http ──┐
//!  peer ──QUIC──▶ peers ─┼─▶ driver: engine + log ─▶ exec · peers · answers · hooks
//!  job ends ─────────────┘
//!  app  ──HTTP──▶ proxy ──▶ services, here or at another site ◀── exec
//! ```

mod actuators;
mod agent;
mod api_server;
mod causes;
mod content;
mod driver;
mod http;
pub mod mesh;
mod owner;
mod peers;
mod proxy;
mod replicas;
mod seals;
mod services;
pub mod telemetry;

pub mod config;
pub mod exec;
pub mod hooks;

pub use agent::{Agent, StartError};
pub use api_server::{SocketError, TlsError, TokenError, api_token};
pub use peers::PeersError;
pub use services::{ConnectorError, Services};
