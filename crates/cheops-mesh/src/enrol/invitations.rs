//! Which invitations are open, and what became of the others. Kept in one file, where only a hash of
//! each secret is; what is written there is on the disk before anybody hears of it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use cheops_core::model::SiteId;
use serde::{Deserialize, Serialize};

use super::token::{self, InvitationId, JoinSecret};
use crate::durable;

/// How many may be open at a time.
const MOST_OPEN: usize = 256;
/// How many that are over are remembered, to say what became of them.
const MOST_OVER: usize = 1_024;
/// After so many wrong secrets nobody needs to try any more.
const MOST_WRONG: u32 = 5;
const MODE: u32 = 0o600;

/// Why nobody can be invited.
#[derive(Debug, thiserror::Error)]
pub enum InvitationError {
    /// There is no end of them.
    #[error("{MOST_OPEN} invitations are open; revoke some, or wait until they end")]
    TooMany,
    /// Nobody knows of it.
    #[error("there is no invitation `{0}`")]
    Unknown(InvitationId),
    /// It is over.
    #[error("invitation `{0}` cannot be revoked: it was {1}")]
    Over(InvitationId, InvitationOutcome),
    /// It could not be written down.
    #[error("the invitations in `{}` cannot be {doing}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What came of it.
        source: io::Error,
    },
}

/// Why a token does not let a site in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RedeemRefusal {
    /// There is no such invitation, or its secret is another.
    Unknown,
    /// It was used, by another key, at this second since 1970.
    Used(u64),
    /// Its time was over at this second.
    Expired(u64),
    /// Somebody took it back at this second.
    Revoked(u64),
    /// Somebody tried wrong secrets until this second.
    Guessed(u64),
}

/// What became of an invitation, and when, in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InvitationOutcome {
    /// A site joined with it.
    Used {
        /// When.
        at: u64,
        /// With which public key: who lost the answer may ask again.
        key: [u8; 32],
        /// From where.
        from: String,
    },
    /// Somebody took it back.
    Revoked {
        /// When.
        at: u64,
    },
    /// Somebody tried too many wrong secrets.
    Guessed {
        /// When.
        at: u64,
    },
}

impl std::fmt::Display for InvitationOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Used { .. } => "used",
            Self::Revoked { .. } => "revoked",
            Self::Guessed { .. } => "ended after wrong tries",
        })
    }
}

/// One invitation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// Whom it lets in.
    pub site: SiteId,
    /// When it was made, in seconds since 1970.
    pub made: u64,
    /// When it ends.
    pub until: u64,
    /// Who asked for it.
    pub asked_by: String,
    /// What became of it, if anything did.
    pub outcome: Option<InvitationOutcome>,
    /// A hash of its secret, which is random enough that this needs no salt.
    secret: [u8; 32],
    /// How often somebody tried another one.
    wrong: u32,
}

impl Invitation {
    /// Whether a site can still join with it.
    pub fn is_open(&self, now: SystemTime) -> bool {
        self.outcome.is_none() && seconds(now) < self.until
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

type ById = BTreeMap<InvitationId, Invitation>;

/// What is in the file.
#[derive(Default, Serialize, Deserialize)]
struct KeptInvitations {
    invitations: Vec<(String, Invitation)>,
}

/// All invitations of a site with the authority.
pub struct Invitations {
    path: PathBuf,
    known: Mutex<ById>,
}

impl Invitations {
    /// Those in that file; none, if there is no such file.
    pub fn open(path: &Path) -> Result<Self, InvitationError> {
        let failed = |source| InvitationError::File { path: path.into(), doing: "read", source };
        let kept: KeptInvitations = match fs::read(path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| failed(error.into()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => KeptInvitations::default(),
            Err(error) => return Err(failed(error)),
        };
        let known = kept.invitations.into_iter().map(|(id, invitation)| {
            let id = id.parse::<InvitationId>().map_err(|error| failed(io::Error::other(error)))?;
            Ok((id, invitation))
        });
        let known = Mutex::new(known.collect::<Result<_, _>>()?);
        Ok(Self { path: path.to_owned(), known })
    }

    /// Makes one, and the secret that nobody else will ever be told.
    pub fn invite(
        &self,
        site: &SiteId,
        lasts: Duration,
        asked_by: &str,
        now: SystemTime,
    ) -> Result<(InvitationId, JoinSecret), InvitationError> {
        let failed =
            |source| InvitationError::File { path: self.path.clone(), doing: "added to", source };
        let id = InvitationId(token::random().map_err(failed)?);
        let secret = JoinSecret(token::random().map_err(failed)?);
        self.change(|known| {
            if known.values().filter(|known| known.is_open(now)).count() >= MOST_OPEN {
                return Err(InvitationError::TooMany);
            }
            forget_oldest(known, now);
            let invitation = Invitation {
                site: site.clone(),
                made: seconds(now),
                until: seconds(now + lasts),
                asked_by: asked_by.to_owned(),
                outcome: None,
                secret: *blake3::hash(&secret.0).as_bytes(),
                wrong: 0,
            };
            known.insert(id, invitation);
            Ok(())
        })?;
        Ok((id, secret))
    }

    /// All that are known, the latest first.
    pub fn list(&self) -> Vec<(InvitationId, Invitation)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = known.iter().map(|(id, it)| (*id, it.clone())).collect();
        all.sort_by_key(|(id, it)| (std::cmp::Reverse(it.made), *id));
        all
    }

    /// Takes one back.
    pub fn revoke(&self, id: InvitationId, now: SystemTime) -> Result<SiteId, InvitationError> {
        self.change(|known| {
            let invitation = known.get_mut(&id).ok_or(InvitationError::Unknown(id))?;
            if let Some(outcome) = &invitation.outcome {
                return Err(InvitationError::Over(id, outcome.clone()));
            }
            invitation.outcome = Some(InvitationOutcome::Revoked { at: seconds(now) });
            Ok(invitation.site.clone())
        })
    }

    /// Lets the site with that key in, if the secret is right and the invitation serves. What is
    /// made for it is made before the invitation counts as used; and that is on the disk before
    /// anybody gets it. Whoever asks again with the same key gets it again: its answer was lost.
    ///
    /// # Errors
    ///
    /// When something could not be made or written: then the invitation serves as before.
    pub fn redeem<T, E: From<InvitationError>>(
        &self,
        (id, secret): (InvitationId, &JoinSecret),
        (key, from): ([u8; 32], &str),
        now: SystemTime,
        make: impl FnOnce(&SiteId) -> Result<T, E>,
    ) -> Result<Result<T, RedeemRefusal>, E> {
        self.change(|known| {
            let Some(invitation) = known.get_mut(&id) else {
                return Ok(Err(RedeemRefusal::Unknown));
            };
            // Hashes are compared in the same time whatever is in them.
            if blake3::hash(&secret.0) != blake3::Hash::from(invitation.secret) {
                note_wrong(invitation, now);
                return Ok(Err(RedeemRefusal::Unknown));
            }
            if let Err(refusal) = serves(invitation, &key, now) {
                return Ok(Err(refusal));
            }
            let made = make(&invitation.site)?;
            if invitation.outcome.is_none() {
                let (at, from) = (seconds(now), from.to_owned());
                invitation.outcome = Some(InvitationOutcome::Used { at, key, from });
            }
            Ok(Ok(made))
        })
    }

    /// Changes them, on the disk first.
    fn change<T, E: From<InvitationError>>(
        &self,
        change: impl FnOnce(&mut ById) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = known.clone();
        let came_of_it = change(&mut changed)?;
        if changed != *known {
            self.write(&changed)?;
            *known = changed;
        }
        Ok(came_of_it)
    }

    fn write(&self, known: &ById) -> Result<(), InvitationError> {
        let invitations = known.iter().map(|(id, it)| (id.to_string(), it.clone())).collect();
        let written = serde_json::to_vec_pretty(&KeptInvitations { invitations })
            .map_err(io::Error::from)
            .and_then(|text| durable::replace(&self.path, &text, MODE));
        let path = self.path.clone();
        written.map_err(|source| InvitationError::File { path, doing: "written", source })
    }
}

/// Whether it lets that key in.
fn serves(invitation: &Invitation, key: &[u8; 32], now: SystemTime) -> Result<(), RedeemRefusal> {
    match &invitation.outcome {
        Some(InvitationOutcome::Revoked { at }) => return Err(RedeemRefusal::Revoked(*at)),
        Some(InvitationOutcome::Guessed { at }) => return Err(RedeemRefusal::Guessed(*at)),
        Some(InvitationOutcome::Used { at, key: used_by, .. }) if used_by != key => {
            return Err(RedeemRefusal::Used(*at));
        }
        Some(InvitationOutcome::Used { .. }) | None => {}
    }
    match seconds(now) < invitation.until {
        true => Ok(()),
        false => Err(RedeemRefusal::Expired(invitation.until)),
    }
}

fn note_wrong(invitation: &mut Invitation, now: SystemTime) {
    if invitation.outcome.is_some() {
        return;
    }
    invitation.wrong += 1;
    if invitation.wrong >= MOST_WRONG {
        invitation.outcome = Some(InvitationOutcome::Guessed { at: seconds(now) });
    }
}

fn forget_oldest(known: &mut ById, now: SystemTime) {
    let over = |known: &ById| {
        let over = known.iter().filter(|(_, it)| !it.is_open(now));
        over.map(|(id, it)| (it.made, *id)).collect::<Vec<_>>()
    };
    let mut over = over(known);
    over.sort_unstable();
    for (_, id) in over.iter().take(over.len().saturating_sub(MOST_OVER)) {
        known.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    struct Kept {
        dir: tempfile::TempDir,
        invitations: Invitations,
        now: SystemTime,
    }

    impl Kept {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let invitations = Invitations::open(&dir.path().join("invitations.json")).unwrap();
            Self { dir, invitations, now: SystemTime::UNIX_EPOCH + DAY * 20_000 }
        }

        fn invite(&self) -> (InvitationId, JoinSecret) {
            let site = SiteId::new("lyon").unwrap();
            self.invitations.invite(&site, DAY, "uid:7", self.now).unwrap()
        }

        fn reopened(&mut self) {
            self.invitations =
                Invitations::open(&self.dir.path().join("invitations.json")).unwrap();
        }

        fn redeem(
            &self,
            (id, secret): &(InvitationId, JoinSecret),
            key: u8,
            later: Duration,
        ) -> Result<String, RedeemRefusal> {
            let make = |site: &SiteId| Ok::<_, InvitationError>(site.to_string());
            let (by, now) = (([key; 32], "10.0.0.7"), self.now + later);
            self.invitations.redeem((*id, secret), by, now, make).unwrap()
        }
    }

    #[test]
    fn an_invitation_serves_one_key_also_after_a_restart() {
        let mut kept = Kept::new();
        let (one, used_at) = (kept.invite(), 20_000 * 86_400);
        assert_eq!(kept.redeem(&one, 1, Duration::ZERO).as_deref(), Ok("lyon"));
        kept.reopened();
        assert_eq!(kept.redeem(&one, 2, Duration::ZERO), Err(RedeemRefusal::Used(used_at)));
        assert_eq!(kept.redeem(&one, 1, Duration::ZERO).as_deref(), Ok("lyon"), "asked again");
        let (_, known) = kept.invitations.list().remove(0);
        assert!(!known.is_open(kept.now) && known.asked_by == "uid:7", "{known:?}");
    }

    #[test]
    fn an_invitation_ends_by_its_time_and_by_being_revoked() {
        let mut kept = Kept::new();
        let (first, second) = (kept.invite(), kept.invite());
        let ended = Err(RedeemRefusal::Expired(20_001 * 86_400));
        assert_eq!(kept.redeem(&first, 1, DAY), ended);
        assert!(kept.redeem(&first, 1, DAY - Duration::from_secs(1)).is_ok());
        assert_eq!(kept.redeem(&first, 1, DAY), ended, "also for who joined");

        kept.invitations.revoke(second.0, kept.now).unwrap();
        kept.reopened();
        let revoked = Err(RedeemRefusal::Revoked(20_000 * 86_400));
        assert_eq!(kept.redeem(&second, 1, Duration::ZERO), revoked);
        let again = kept.invitations.revoke(first.0, kept.now).unwrap_err();
        assert!(again.to_string().ends_with("cannot be revoked: it was used"), "{again}");
        let unknown = kept.invitations.revoke(InvitationId([9; 8]), kept.now);
        assert!(matches!(unknown, Err(InvitationError::Unknown(_))));
    }

    #[test]
    fn who_guesses_ends_the_invitation_and_learns_nothing() {
        let mut kept = Kept::new();
        let (id, secret) = kept.invite();
        let wrong = (id, JoinSecret([0; 20]));
        for _ in 0..MOST_WRONG {
            assert_eq!(kept.redeem(&wrong, 1, Duration::ZERO), Err(RedeemRefusal::Unknown));
            kept.reopened();
        }
        assert_eq!(kept.redeem(&wrong, 1, Duration::ZERO), Err(RedeemRefusal::Unknown));
        let ended = kept.redeem(&(id, secret), 1, Duration::ZERO);
        assert_eq!(ended, Err(RedeemRefusal::Guessed(20_000 * 86_400)));
    }

    #[test]
    fn what_could_not_be_made_or_written_leaves_the_invitation_as_it_was() {
        let kept = Kept::new();
        let one = kept.invite();
        let fails = |_: &SiteId| Err::<(), _>(InvitationError::TooMany);
        let by = ([1; 32], "10.0.0.7");
        kept.invitations.redeem((one.0, &one.1), by, kept.now, fails).unwrap_err();
        assert!(kept.invitations.list()[0].1.is_open(kept.now));

        std::fs::remove_dir_all(kept.dir.path()).unwrap();
        let make = |_: &SiteId| Ok::<_, InvitationError>(());
        kept.invitations.redeem((one.0, &one.1), by, kept.now, make).unwrap_err();
        assert!(kept.invitations.list()[0].1.is_open(kept.now), "nobody was let in");
    }

    #[test]
    fn the_secret_is_nowhere_in_the_file_which_only_its_owner_can_read() {
        use std::os::unix::fs::PermissionsExt;
        let kept = Kept::new();
        let (_, JoinSecret(secret)) = kept.invite();
        let path = kept.dir.path().join("invitations.json");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, MODE);
        let text = fs::read_to_string(&path).unwrap();
        let bytes = secret.map(|byte| byte.to_string()).join(",");
        let text: String = text.split_whitespace().collect();
        assert!(!text.contains(&bytes), "{text}");
    }

    #[test]
    fn so_many_are_open_at_a_time_and_so_many_are_remembered() {
        let kept = Kept::new();
        kept.invite();
        let (_, one) = kept.invitations.list().remove(0);
        let copies = |from: u64, count: usize, made: u64| {
            let made = Invitation { made, until: made + 1, ..one.clone() };
            (from..).take(count).map(move |n| (InvitationId(n.to_be_bytes()), made.clone()))
        };
        let open = seconds(kept.now);
        kept.invitations.known.lock().unwrap().extend(copies(0, MOST_OPEN - 1, open));
        let one_more = kept.invitations.invite(&one.site, DAY, "uid:7", kept.now);
        assert!(matches!(one_more, Err(InvitationError::TooMany)));

        kept.invitations.known.lock().unwrap().extend(copies(1_000, MOST_OVER, 7));
        kept.invitations.known.lock().unwrap().extend(copies(9_000, 10, 3));
        let later = kept.now + Duration::from_secs(1);
        kept.invitations.invite(&one.site, DAY, "uid:7", later).unwrap();
        let list = kept.invitations.list();
        assert_eq!(list.len(), MOST_OVER + 2, "the open ones are kept");
        assert!(list.iter().all(|(_, it)| it.made > 3), "the oldest are gone");
    }
}
