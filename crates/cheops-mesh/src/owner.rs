//! Whose a file with a secret is: its mode says nothing against its owner, who can read and change
//! it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// It is neither root's nor that of the user who this process runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it belongs to the user {owner}, neither to root nor to {me}, who runs the agent")]
pub struct OfAnother {
    owner: u32,
    me: u32,
}

/// Whether a file is this user's, or root's.
pub fn check(found: &Metadata) -> Result<(), OfAnother> {
    is_ours(found.uid(), rustix::process::geteuid().as_raw())
}

fn is_ours(owner: u32, me: u32) -> Result<(), OfAnother> {
    if owner == 0 || owner == me { Ok(()) } else { Err(OfAnother { owner, me }) }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use super::*;

    /// Gives a file to another user; only root can.
    #[allow(clippy::print_stderr, reason = "`scripts/attack` looks for it")]
    pub(crate) fn given_away(path: &Path) -> bool {
        let given = std::os::unix::fs::chown(path, Some(65_534), None).is_ok();
        if !given {
            eprintln!("NOT TRIED: only root can give a file away");
        }
        given
    }

    #[test]
    fn a_file_is_roots_or_ours_or_refused() {
        assert_eq!(is_ours(0, 1000), Ok(()));
        assert_eq!(is_ours(1000, 1000), Ok(()));
        assert_eq!(is_ours(1001, 1000), Err(OfAnother { owner: 1001, me: 1000 }));
        assert!(is_ours(1000, 0).is_err(), "root believes no user");
    }
}
