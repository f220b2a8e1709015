//! A small disk, where the machine lets us mount one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file system in memory, of that size. Unmounted when dropped.
pub(crate) struct SmallDisk {
    at: PathBuf,
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl SmallDisk {
    pub(crate) fn mount(at: &Path, mebibytes: u32) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let size = format!("size={mebibytes}m");
        let mounted = run("mount", &["-t", "tmpfs", "-o", &size, "cheops-e2e", at.to_str()?]);
        mounted.then(|| Self { at: at.to_owned() })
    }

    pub(crate) fn resize(&self, mebibytes: u32) {
        let size = format!("remount,size={mebibytes}m");
        assert!(run("mount", &["-o", &size, &self.at.to_string_lossy()]));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run("umount", &["-l", &self.at.to_string_lossy()]);
    }
}

/// What a test left mounted that was killed.
pub(super) fn unmount_below(folder: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    for place in places.filter(|place| Path::new(place).starts_with(folder)) {
        run("umount", &["-l", place]);
    }
}
