//! Whose fault it is that something was not done, and what follows from that: the one table of it.

use super::Problem;

/// Who can do something about a failure.
///
/// | fault | HTTP status | exit code | in the agent's log |
/// | --- | --- | --- | --- |
/// | `Caller` | other 4xx | 2 | no |
/// | `NotNow` | 408, 429, 502, 503, 504 | 3 | no |
/// | `Ours` | other 5xx | 1 | as an error |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Whoever asked: the same request will fail again.
    Caller,
    /// Nobody right now: somebody is out of reach, busy or late.
    NotNow,
    /// Whoever runs the agent, or wrote it.
    Ours,
}

impl Fault {
    /// What an HTTP status that is no success says.
    pub const fn of_status(status: u16) -> Self {
        match status {
            408 | 429 | 502 | 503 | 504 => Self::NotNow,
            400..500 => Self::Caller,
            _ => Self::Ours,
        }
    }

    /// What a command ends with.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Caller => 2,
            Self::NotNow => 3,
            Self::Ours => 1,
        }
    }

    /// Whether the operator has to hear of it. Of the rest, whoever asked is told.
    pub const fn is_logged(self) -> bool {
        matches!(self, Self::Ours)
    }
}

impl Problem {
    /// Whose fault it is.
    pub const fn fault(&self) -> Fault {
        Fault::of_status(self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_whose_fault_it_is_and_that_decides_the_exit_code_and_the_log() {
        for (statuses, fault, exit_code, is_logged) in [
            (&[400, 401, 403, 404, 409, 410, 413, 421, 431][..], Fault::Caller, 2, false),
            (&[408, 429, 502, 503, 504], Fault::NotNow, 3, false),
            (&[500, 501, 507, 508], Fault::Ours, 1, true),
        ] {
            for status in statuses {
                let found = Problem::new(*status, "t", "d").fault();
                assert_eq!(found, fault, "{status}");
            }
            assert_eq!((fault.exit_code(), fault.is_logged()), (exit_code, is_logged));
        }
    }
}
