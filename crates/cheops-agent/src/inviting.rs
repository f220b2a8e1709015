//! A site with the mesh's authority: it invites others, and lets them in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cheops_core::model::SiteId;
use cheops_mesh::authority::{self, Authority};
use cheops_mesh::enrol::{
    EnrolHost, Invitation, InvitationError, InvitationId, Invitations, JoinToken, KnownSite,
    MeshAtHand, Newcomer, NewcomerRegistry, fingerprint,
};
use cheops_mesh::identity::{Identity, MeshError};
use cheops_mesh::{Peers, PeersError, WeakPeers};

use crate::config::AgentConfig;

/// Where invitations are kept, in the data directory.
const FILE: &str = "invitations.json";
/// How long a token serves if nobody says so, and at most.
pub(crate) const TOKEN_SERVES: Duration = Duration::from_secs(24 * 60 * 60);
pub(crate) const TOKEN_SERVES_AT_MOST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Why a site that has the authority cannot use it.
#[derive(Debug, thiserror::Error)]
pub enum InviterError {
    /// It is another mesh's.
    #[error("the authority in `{}` is not the one of this site's identity", .path.display())]
    Other {
        /// The folder.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error(transparent)]
    Authority(#[from] MeshError),
    /// It cannot be known who was invited.
    #[error(transparent)]
    Invitations(#[from] InvitationError),
}

impl InviterError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Other { .. } | Self::Authority(_) => {
                "`authority` in `[mesh]` names the folder that the identity was issued with"
            }
            Self::Invitations(_) => "without that file no token serves that was made until now",
        }
    }
}

/// What invites, where there is an authority.
#[derive(Clone)]
pub(crate) struct Inviter {
    authority: PathBuf,
    fingerprint: [u8; 32],
    invitations: Arc<Invitations>,
}

impl Inviter {
    /// None where the config names no authority.
    pub(crate) fn open(
        config: &AgentConfig,
        identity: Option<&Identity>,
    ) -> Result<Option<Self>, InviterError> {
        let named = config.mesh.as_ref().and_then(|mesh| mesh.authority.clone());
        let Some((dir, identity)) = named.zip(identity) else { return Ok(None) };
        let authority = Authority::open(&dir)?;
        if authority.certificate() != identity.authority() {
            return Err(InviterError::Other { path: dir });
        }
        let fingerprint = fingerprint(authority.certificate());
        let invitations = Invitations::open(&config.data_dir.join(FILE))?.into();
        Ok(Some(Self { authority: dir, fingerprint, invitations }))
    }

    /// Lets in those who come with a token of this one.
    pub(crate) fn begin(
        &self,
        identity: &Identity,
        peers: &Peers,
        me: KnownSite,
    ) -> Result<(), PeersError> {
        let registry = Arc::new(Newcomers { me, peers: peers.weak() });
        let host = EnrolHost::new(&self.authority, self.invitations.clone(), registry);
        peers.enrol(identity, host)
    }

    /// Where the authority is.
    pub(crate) fn folder(&self) -> &Path {
        &self.authority
    }

    /// The authority itself.
    pub(crate) fn open_authority(&self) -> Result<Authority, MeshError> {
        Authority::open(&self.authority)
    }

    /// Makes an invitation, and the token that goes with it.
    pub(crate) fn invite(
        &self,
        site: &SiteId,
        serves: Duration,
        asked_by: &str,
        address: String,
    ) -> Result<(JoinToken, Option<Invitation>), InvitationError> {
        let now = SystemTime::now();
        let (id, secret) = self.invitations.invite(site, serves, asked_by, now)?;
        let made = self.invitations.list().into_iter().find(|(other, _)| *other == id);
        let token = JoinToken { authority: self.fingerprint, id, secret, address };
        Ok((token, made.map(|(_, invitation)| invitation)))
    }

    /// All invitations, the latest first.
    pub(crate) fn list(&self) -> Vec<(InvitationId, Invitation)> {
        self.invitations.list()
    }

    /// Takes one back.
    pub(crate) fn revoke(&self, id: InvitationId) -> Result<SiteId, InvitationError> {
        self.invitations.revoke(id, SystemTime::now())
    }

    /// Whether a site can be called so.
    pub(crate) fn check_name(site: &SiteId) -> Result<(), MeshError> {
        authority::check_name(site)
    }
}

/// Where sites that join are made known.
struct Newcomers {
    me: KnownSite,
    peers: WeakPeers,
}

impl NewcomerRegistry for Newcomers {
    fn admit(&self, newcomer: Newcomer) -> MeshAtHand {
        let others = |peers: Peers| {
            let others = peers.sites().into_iter().filter(|site| *site != newcomer.site);
            let others = others.filter_map(|site| {
                let address = peers.status(&site)?.address?;
                Some(KnownSite { site, address })
            });
            others.collect::<Vec<_>>()
        };
        let others = self.peers.upgrade().map(others).unwrap_or_default();
        let sites = std::iter::once(self.me.clone()).chain(others).collect();
        MeshAtHand { sites, directory: Vec::new() }
    }
}

/// Whether somebody else can be told that a site is there.
pub(crate) fn leads_here(address: &str) -> bool {
    let is_nowhere = |address: std::net::SocketAddr| address.ip().is_unspecified();
    !address.parse().is_ok_and(is_nowhere)
}
