//! What happens when: things scheduled, in the order of their time.

use cheops_core::engine::{JobId, Message};

#[derive(Debug)]
pub(super) enum AgendaItem {
    Deliver { to: usize, from: usize, message: Message },
    CarryOut { site: usize, start: u64, job: JobId },
    End { site: usize, start: u64, job: JobId },
    Tick { site: usize, start: u64 },
    Restart { site: usize, start: u64 },
}

#[derive(Debug)]
pub(super) struct Scheduled {
    pub(super) at_ms: u64,
    pub(super) number: u64,
    pub(super) what: AgendaItem,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ms, self.number) == (other.at_ms, other.number)
    }
}
impl Eq for Scheduled {}
impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ms, self.number).cmp(&(other.at_ms, other.number))
    }
}
