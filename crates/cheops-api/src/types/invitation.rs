//! How other sites are let into the mesh.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whom to invite.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Invite {
    /// The name that the site will have.
    pub site: String,
    /// For how long its token serves; a day, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Where the new site finds this one, if not where the others do: host and port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Whether a site that is known already gets another identity, for it lost its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// How a site is put out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveSite {
    /// Whether it is lost, with whatever only it knew.
    pub dead: bool,
}

/// An invitation that was just made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Invited {
    /// What to carry to the new site, by a way that nobody else can read. It is shown this once.
    pub token: String,
    /// What is known of it.
    pub invitation: SiteInvitation,
}

/// An invitation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SiteInvitation {
    /// By which it is revoked.
    pub id: String,
    /// Whom it lets in.
    pub site: String,
    /// What becomes of it.
    pub state: InvitationState,
    /// When it was made.
    pub made: String,
    /// When it ends.
    pub until: String,
    /// When it was used or revoked.
    pub ended: Option<String>,
    /// Who asked for it.
    pub asked_by: String,
    /// From which address it was used.
    pub used_from: Option<String>,
}

/// What becomes of an invitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InvitationState {
    /// It waits for the site.
    Open,
    /// The site joined with it.
    Used,
    /// Nobody used it in its time.
    Expired,
    /// Somebody took it back.
    Revoked,
    /// Somebody tried wrong secrets with it, and ended it by that.
    Guessed,
}
