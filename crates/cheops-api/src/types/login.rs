//! How a browser is let in.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A link that lets one browser in, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoginLink {
    /// Where to go, seen from the agent's machine.
    pub url: String,
    /// The same without the host: it is below whatever address the agent is reached at.
    pub path: String,
    /// For how long it serves, if nobody uses it before; none if the page is open to anyone.
    pub seconds: Option<u64>,
}
