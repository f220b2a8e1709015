//! One agent: all that waits and is not of the data plane (driver, executors, HTTP API, hooks, config,
//! telemetry), and what puts everything together.
//!
//! What to do is decided elsewhere (`cheops-core`); this crate carries events to the engine and
//! its effects to the world. [`Agent`] puts the parts together, and `ports` ties them to the data plane:
//!
//! ```text
//!  user ──HTTP──▶ http ───────────┐
//!  peer ──QUIC──▶ cheops-mesh ────┼─▶ driver: engine + log ─▶ exec · cheops-mesh · answers · hooks
//!  app  ──HTTP──▶ cheops-proxy ───┘                             │
//!                      └──────▶ cheops-services ◀───────────────┘
//! ```

mod actuators;
mod agent;
mod api_server;
mod content;
mod driver;
mod http;
mod ports;
pub mod telemetry;

pub mod config;
pub mod exec;
pub mod hooks;

pub use agent::{Agent, StartError};
pub use api_server::{SocketError, TlsError, TokenError, api_token};
pub use cheops_mesh::{PeersError, identity as mesh};
pub use cheops_services::{ConnectorError, Services};
pub use driver::AgentFailure;
