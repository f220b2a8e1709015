//! Public wire types of the agent's HTTP API, its OpenAPI document, and a typed client.
//!
//! The server and the client share everything here: [`paths`], the types, and what is refused how
//! ([`Problem`]). Nothing here knows how an agent decides.

mod client;
mod openapi;
pub mod paths;
mod token;
mod types;

pub use client::{
    BadAddress, Changes, Client, ClientError, ClientOptions, Lines, Upload, is_loopback,
};
pub use openapi::{openapi, openapi_json};
pub use token::{BadToken, Token};
pub use types::*;
