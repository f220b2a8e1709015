//! How a site behaves on its links, from one to the next: who sends what cannot be read calls again
//! at once, and fills no log by that, and is still named while its link is just there again.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use cheops_core::model::SiteId;

use super::lock;

/// So many lines are logged of one site in a while.
const MOST_OF_A_SITE: u32 = 64;
const A_WHILE: Duration = Duration::from_secs(600);
/// Who has sent nothing of the kind for so long may have been mended.
const SHOWN_FOR: Duration = Duration::from_secs(60);

/// Room for lines in the log.
#[derive(Debug)]
pub(super) struct LogRoom {
    most: u32,
    used: Mutex<Option<(Instant, u32)>>,
}

impl LogRoom {
    pub(super) fn of(most: u32) -> Self {
        Self { most, used: Mutex::default() }
    }

    /// Whether there is room for one more line. The last one says so.
    pub(super) fn take(&self, about: impl std::fmt::Display) -> bool {
        self.take_at(about, Instant::now())
    }

    fn take_at(&self, about: impl std::fmt::Display, now: Instant) -> bool {
        let mut used = lock(&self.used);
        let is_old = used.is_none_or(|(since, _)| now.duration_since(since) >= A_WHILE);
        let (since, lines) = used.filter(|_| !is_old).unwrap_or((now, 0));
        if lines >= self.most {
            return false;
        }
        *used = Some((since, lines + 1));
        if lines + 1 == self.most {
            tracing::warn!(%about, "more of this is not logged for ten minutes");
        }
        true
    }
}

/// What is remembered of one site, whatever becomes of its links.
#[derive(Debug)]
pub(super) struct Conduct {
    log: LogRoom,
    unreadable: Mutex<Option<(String, Instant)>>,
}

impl Default for Conduct {
    fn default() -> Self {
        Self { log: LogRoom::of(MOST_OF_A_SITE), unreadable: Mutex::default() }
    }
}

impl Conduct {
    /// Whether one more line is to be logged of that site.
    pub(super) fn is_to_log(&self, site: &SiteId) -> bool {
        self.log.take(site)
    }

    /// It sent what cannot be read, for that reason.
    pub(super) fn note_unreadable(&self, why: String) {
        *lock(&self.unreadable) = Some((why, Instant::now()));
    }

    /// What is wrong with it of late.
    pub(super) fn problem(&self, now: Instant) -> Option<String> {
        let (why, at) = lock(&self.unreadable).clone()?;
        (now.duration_since(at) < SHOWN_FOR).then(|| format!("its link was closed: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many_lines_and_again_after_a_while() {
        let (room, begin) = (LogRoom::of(3), Instant::now());
        let lines = |at| (0..1_000).filter(|_| room.take_at("lyon", at)).count();
        assert_eq!(lines(begin), 3);
        assert_eq!(lines(begin + A_WHILE / 2), 0);
        assert_eq!(lines(begin + A_WHILE), 3);
    }

    #[test]
    fn who_sent_what_cannot_be_read_is_named_for_a_while() {
        let conduct = Conduct::default();
        assert_eq!(conduct.problem(Instant::now()), None);
        conduct.note_unreadable("a frame of 9 bytes".to_owned());
        let said = conduct.problem(Instant::now());
        assert_eq!(said.as_deref(), Some("its link was closed: a frame of 9 bytes"));
        assert_eq!(conduct.problem(Instant::now() + SHOWN_FOR), None);
    }
}
