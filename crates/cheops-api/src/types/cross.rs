//! Resources over several sites, of which each has a part.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One resource over several sites. Its id says all of this: no site was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cross {
    /// What users call it.
    pub id: String,
    /// In the order of the scope it was made under.
    pub parts: Vec<CrossPart>,
}

/// What one site has of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CrossPart {
    /// Where.
    pub site: String,
    /// What that site's service calls it.
    pub id: String,
}
