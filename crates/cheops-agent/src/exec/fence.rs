//! A control group around the agent and all that it starts, which no process can leave by itself.
//!
//! A program may leave its process group and clear its environment; it stays in the control group
//! that it was started in, and all of one can be ended at once. A process is born where its parent
//! is, so the agent itself goes inside: that costs nothing for a command, while to move each one
//! there would cost more than to run it. The keeper stays outside, and so does the agent when it is
//! to end the others.
//!
//! Needs Linux with the unified hierarchy (cgroup v2) and `cgroup.kill` (5.14), and a group of
//! which the agent may make children: its service manager gave it one (`Delegate=yes`), or it is
//! root. Where there is none, what is found by process group and environment has to do.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::token::RunToken;

/// What names of groups begin with; then comes the token.
const PREFIX: &str = "cheops-";
/// How long to wait until a group that was ended is empty.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);
/// How many groups are looked at for those of earlier starts, and how deep.
const MOST_LOOKED_AT: usize = 100_000;
const DEEPEST: usize = 32;

/// The group of one start of an agent. Dropped, the agent is outside again; what else is inside is
/// left to the keeper, or to the next start.
#[derive(Debug)]
pub(super) struct Fence {
    outside: PathBuf,
    inside: PathBuf,
}

impl Fence {
    /// Makes the group for this start, if there can be one.
    pub(super) fn build(run: &RunToken) -> Option<Self> {
        match Self::try_build(run) {
            Ok(fence) => fence,
            Err(error) => {
                tracing::debug!(%error, "there is no control group for commands");
                None
            }
        }
    }

    fn try_build(run: &RunToken) -> io::Result<Option<Self>> {
        let Some(outside) = own_group()? else { return Ok(None) };
        let inside = outside.join(format!("{PREFIX}{run}"));
        fs::create_dir(&inside)?;
        if !inside.join("cgroup.kill").exists() {
            fs::remove_dir(&inside)?;
            return Ok(None);
        }
        Ok(Some(Self { outside, inside }))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.inside
    }

    /// Goes inside, if that is allowed. From now on so does everything that is started.
    pub(super) fn enter(self) -> Option<Self> {
        match go_to(&self.inside) {
            Ok(()) => Some(self),
            Err(error) => {
                tracing::debug!(%error, "the control group for commands cannot be used");
                let _unused = fs::remove_dir(&self.inside);
                None
            }
        }
    }

    /// Ends everything inside but the agent, and takes the group away. Blocks.
    pub(super) fn clear(self) -> io::Result<()> {
        go_to(&self.outside)?;
        end(&self.inside)
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        // It may be outside, and the group gone.
        let _outside = go_to(&self.outside);
        let _empty = fs::remove_dir(&self.inside);
    }
}

/// Takes this process there, with all its threads.
fn go_to(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

/// Ends everything in a group, and takes it away.
fn end(group: &Path) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        fs::write(group.join("cgroup.kill"), "1")?;
        match fs::remove_dir(group) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                let message = format!("the processes of `{}` do not end: {error}", group.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            // They take a moment to go.
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Ends what is in the groups of earlier starts of this agent, wherever these were started; how
/// many processes that were.
pub(super) fn end_leftovers(run: &RunToken) -> io::Result<usize> {
    let Some(top) = mounted()? else { return Ok(0) };
    let own = own_group()?;
    let (starts, mine) = (format!("{PREFIX}{}", run.all_starts()), format!("{PREFIX}{run}"));
    let mut ended = 0;
    for group in named(&top.at, &starts) {
        // Never the one that this process is in: then it was started by a command of it.
        let is_ours = own.as_ref().is_some_and(|own| own.starts_with(&group));
        if is_ours || group.ends_with(&mine) {
            continue;
        }
        let inside = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        ended += inside.lines().count();
        match end(&group) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result?,
        }
    }
    Ok(ended)
}

/// The groups whose names begin like this.
fn named(top: &Path, begins: &str) -> Vec<PathBuf> {
    let (mut found, mut looked_at) = (Vec::new(), 0);
    let mut ahead = vec![(top.to_owned(), 0)];
    while let Some((dir, depth)) = ahead.pop() {
        // What is gone meanwhile, or not for us to see, is not ours.
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            looked_at += 1;
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(begins)) {
                found.push(entry.path());
            } else if depth < DEEPEST && looked_at < MOST_LOOKED_AT {
                ahead.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// Where the unified hierarchy is to be seen.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    at: PathBuf,
    /// Which group is the topmost there.
    root: PathBuf,
}

/// The unified hierarchy, if there is one.
fn mounted() -> io::Result<Option<Mount>> {
    Ok(mount_in(&read("/proc/self/mountinfo")?))
}

fn mount_in(mounts: &str) -> Option<Mount> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut fields = left.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        let is_unified = right.split(' ').next() == Some("cgroup2");
        is_unified.then(|| Mount { at: unescaped(at).into(), root: unescaped(root).into() })
    })
}

/// Blanks and backslashes stand there as octal numbers.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .into_iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The group that this process is in.
fn own_group() -> io::Result<Option<PathBuf>> {
    let (Some(mount), groups) = (mounted()?, read("/proc/self/cgroup")?) else { return Ok(None) };
    Ok(group_in(&groups, &mount))
}

fn group_in(groups: &str, mount: &Mount) -> Option<PathBuf> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = Path::new(own).strip_prefix(&mount.root).ok()?;
    Some(mount.at.join(below))
}

/// Where the system has no such file, it has no control groups.
fn read(path: &str) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_in_all_that_systems_have() {
        let unified = "24 30 0:22 / /proc rw - proc proc rw\n\
                       35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw";
        let hybrid = "41 40 0:36 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      42 40 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        let container = "9 8 0:30 /../.. /sys/fs/cgroup ro - cgroup2 cgroup rw";
        let part = "9 8 0:30 /box/a\\040b /cg rw - cgroup2 cgroup rw";
        let old = "41 40 0:36 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        let cases = [
            (
                unified,
                "0::/system.slice/cheops.service",
                "/sys/fs/cgroup/system.slice/cheops.service",
            ),
            (unified, "0::/", "/sys/fs/cgroup/"),
            (hybrid, "4:memory:/x\n0::/y", "/sys/fs/cgroup/unified/y"),
            (part, "0::/box/a b/c", "/cg/c"),
            (part, "0::/elsewhere", ""),
            (container, "0::/../../x", "/sys/fs/cgroup/x"),
            (unified, "4:memory:/x", ""),
            (old, "4:memory:/x", ""),
            ("", "", ""),
        ];
        for (mounts, groups, expected) in cases {
            let found = mount_in(mounts).and_then(|mount| group_in(groups, &mount));
            let expected = (!expected.is_empty()).then(|| PathBuf::from(expected));
            assert_eq!(found, expected, "{mounts} {groups}");
        }
    }
}
