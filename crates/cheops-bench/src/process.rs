//! What the kernel says of a process and of the machine, and how much a folder holds.

use std::fs;
use std::io;
use std::path::Path;

use crate::failure::{BenchFailure, cannot};

/// The memory of this process that is resident, in bytes.
pub(crate) fn resident(pid: u32) -> Result<u64, BenchFailure> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let status = status.map_err(cannot("read a process's status"))?;
    resident_in(&status)
        .ok_or_else(|| BenchFailure::new("no resident memory", "there is no `VmRSS`"))
}

fn resident_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Seconds of processor time that this process used, in user and in kernel mode, without its
/// children.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64, BenchFailure> {
    seconds(pid, 2)
}

/// The same with the children that it waited for.
pub(crate) fn cpu_seconds_with_children(pid: u32) -> Result<f64, BenchFailure> {
    seconds(pid, 4)
}

fn seconds(pid: u32, times: usize) -> Result<f64, BenchFailure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    let stat = stat.map_err(cannot("read a process's processor time"))?;
    let ticks =
        ticks_in(&stat, times).ok_or_else(|| BenchFailure::new("no processor time", &stat))?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// The sum of so many of the times that stand there: its own in user and kernel mode, its children's.
fn ticks_in(stat: &str, times: usize) -> Option<u64> {
    // A program's name may hold anything, also spaces and brackets.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').skip(11).take(times).collect();
    (fields.len() == times).then_some(())?;
    fields.into_iter().map(|field| field.parse::<u64>().ok()).sum()
}

/// Processor time of the whole machine, in ticks since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MachineTime {
    all: u64,
    /// When a virtual processor had work, and the host had no time for it.
    stolen: u64,
}

impl MachineTime {
    pub(crate) fn now() -> Result<Self, BenchFailure> {
        let stat = fs::read_to_string("/proc/stat").map_err(cannot("read the processors' time"))?;
        Self::of(&stat)
            .ok_or_else(|| BenchFailure::new("no processors' time", "`/proc/stat` has none"))
    }

    fn of(stat: &str) -> Option<Self> {
        let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        // What guests use is in the first two already.
        let ticks: Vec<u64> =
            fields.take(8).map(|field| field.parse().ok()).collect::<Option<_>>()?;
        Some(Self { all: ticks.iter().sum(), stolen: *ticks.get(7)? })
    }

    /// The part of the time since then that the host took, of 1.
    pub(crate) fn stolen_since(self, before: Self) -> f64 {
        let since = |now: u64, then: u64| now.saturating_sub(then) as f64;
        since(self.stolen, before.stolen) / since(self.all, before.all).max(1.0)
    }
}

/// What the files in a folder take on disk, in bytes.
pub(crate) fn disk(folder: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk(&entry.path())?,
            Ok(metadata) => metadata.blocks() * 512,
            // The agent goes on working meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_from_the_status() {
        assert_eq!(resident_in("Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t3\n"), Some(2_097_152));
        assert_eq!(resident_in("Name:\tx\n"), None);
    }

    #[test]
    fn what_a_host_took_is_a_part_of_all_time() {
        let at = |stat| MachineTime::of(stat).unwrap();
        let before = at("cpu  10 0 10 70 0 0 5 5 9 0\ncpu0 1 2\n");
        let after = at("cpu  20 0 20 140 0 0 10 10 9 0\ncpu0 1 2\n");
        assert!((after.stolen_since(before) - 0.05).abs() < 1e-9);
        assert_eq!(MachineTime::of("cpu  1 2 3\n"), None);
    }

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 30 12 5 6 20 0";
        assert_eq!((ticks_in(stat, 2), ticks_in(stat, 4)), (Some(42), Some(53)));
    }
}
