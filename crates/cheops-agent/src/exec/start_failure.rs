//! Why something was not even begun: for good, or for want of what may be there again later.
//!
//! An operation that was taken in runs at every site. A disk that is full just now must not be the
//! reason why one of them goes without it for ever.

use std::error::Error;
use std::io;

use cheops_core::model::Outcome;
use cheops_store::BlobError;
use rustix::io::Errno;

use cheops_core::causes;

/// What the system has not enough of at times: room on a disk, files, processes, memory.
const SHORTAGES: [Errno; 6] =
    [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];

/// Nothing has happened, and this is why.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StartFailure {
    ForGood(String),
    ForNow(String),
}

impl StartFailure {
    /// What could not be done, because of this and all that led to it.
    pub(super) fn because(what: &str, error: &(dyn Error + 'static)) -> Self {
        let reason = format!("{what}: {}", causes(error));
        if passes(error) { Self::ForNow(reason) } else { Self::ForGood(reason) }
    }
}

impl From<String> for StartFailure {
    fn from(reason: String) -> Self {
        Self::ForGood(reason)
    }
}

impl From<StartFailure> for Outcome {
    fn from(start_failure: StartFailure) -> Self {
        match start_failure {
            StartFailure::ForGood(reason) => Self::NotStarted { reason },
            StartFailure::ForNow(reason) => Self::NotYet { reason, in_doubt: false },
        }
    }
}

/// Whether it may be otherwise at the next try: it was a shortage, or a file that the disk damaged,
/// which another site sends again.
pub(super) fn passes(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |&cause| inner(cause));
    causes.any(|cause| {
        let system = cause.downcast_ref::<io::Error>().and_then(Errno::from_io_error);
        system.is_some_and(|system| SHORTAGES.contains(&system))
            || matches!(cause.downcast_ref(), Some(BlobError::Corrupt { .. }))
    })
}

/// What led to an error. One that was put into an `io::Error` is not its source, but itself.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    within.map(|within| within as &(dyn Error + 'static)).or_else(|| error.source())
}

#[cfg(test)]
mod tests {
    use cheops_core::model::BlobId;

    use super::*;

    #[test]
    fn only_what_passes_by_itself_is_waited_for_and_the_cause_is_told() {
        let cases = [
            (Errno::NOSPC, true, "No space left on device"),
            (Errno::DQUOT, true, "quota exceeded"),
            (Errno::MFILE, true, "Too many open files"),
            (Errno::NFILE, true, "Too many open files in system"),
            (Errno::AGAIN, true, "Resource temporarily unavailable"),
            (Errno::NOMEM, true, "Cannot allocate memory"),
            (Errno::NOENT, false, "No such file or directory"),
            (Errno::ACCESS, false, "Permission denied"),
            (Errno::IO, false, "Input/output error"),
        ];
        for (errno, waits, cause) in cases {
            let source = io::Error::from(errno);
            let plain = StartFailure::because("file `h`", &source);
            let place = "/run-1/h".into();
            let blob = BlobError::Io { doing: "copy to", place, source: io::Error::from(errno) };
            let stored = StartFailure::because("file `h`", &io::Error::other(blob));
            for (start_failure, begins) in
                [(plain, "file `h`: "), (stored, "file `h`: could not copy")]
            {
                let (reason, is_for_now) = match &start_failure {
                    StartFailure::ForNow(reason) => (reason, true),
                    StartFailure::ForGood(reason) => (reason, false),
                };
                assert_eq!(is_for_now, waits, "{start_failure:?}");
                assert!(reason.starts_with(begins) && reason.contains(cause), "{reason}");
            }
        }
    }

    #[test]
    fn a_file_that_was_damaged_is_waited_for_and_one_that_nobody_has_is_not() {
        let id = BlobId([7; 32]);
        let damaged = BlobError::Corrupt { id, place: "/blobs/damaged/07".into() };
        let gone = BlobError::Missing { id };
        assert!(matches!(
            [damaged, gone]
                .map(|error| StartFailure::because("file `h`", &io::Error::other(error))),
            [StartFailure::ForNow(_), StartFailure::ForGood(_)]
        ));
    }
}
