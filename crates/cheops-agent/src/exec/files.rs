//! Files that come with an operation, in a fresh directory for one run.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cheops_core::model::FileRef;

use super::content::ContentStore;
use super::fill::Insert;
use super::start_failure::StartFailure;

const PREFIX: &str = "run-";
/// Longest name of a placed file, in bytes; file systems take 255.
const LONGEST_NAME: usize = 128;

/// The directory of one run. It goes with this value.
#[derive(Debug)]
pub(super) struct RunDirectory {
    pub(super) dir: PathBuf,
    /// Each placeholder's file.
    names: Vec<(String, String)>,
}

impl RunDirectory {
    /// Places the files, on a thread that may block.
    pub(super) async fn place(
        scratch: &Path,
        n: u64,
        files: &[FileRef],
        content: &Arc<dyn ContentStore>,
    ) -> Result<Self, StartFailure> {
        let dir = scratch.join(format!("{PREFIX}{n}"));
        let (files, content) = (files.to_vec(), Arc::clone(content));
        let placing = move || {
            let whole = format!("directory `{}`", dir.display());
            let made = fs::DirBuilder::new().mode(0o700).create(&dir);
            made.map_err(|error| StartFailure::because(&whole, &error))?;
            // From here on it is removed whatever happens.
            let mut placed = Self { dir, names: Vec::new() };
            for (file, name) in files.iter().zip(names(&files)) {
                let path = placed.dir.join(&name);
                let one = format!("file `{}`", file.name);
                let copied = content.copy_to(&file.blob, &path);
                copied.map_err(|error| StartFailure::because(&one, &error))?;
                placed.names.push((file.name.clone(), name));
            }
            Ok(placed)
        };
        let placed = tokio::task::spawn_blocking(placing).await;
        placed.map_err(|error| StartFailure::because("its files", &error)).flatten()
    }

    /// What the placeholders become. Of two files of one name, the first is meant.
    pub(super) fn inserts(&self) -> Vec<(String, Insert)> {
        let dir = match self.dir.to_str() {
            Some(dir) => Insert::of(dir, "CHEOPS_FILES"),
            None => Insert::Variable("CHEOPS_FILES", String::new()),
        };
        let mut inserts: Vec<(String, Insert)> = Vec::new();
        for (placeholder, name) in &self.names {
            let placeholder = format!("{{{placeholder}}}");
            if inserts.iter().all(|(known, _)| *known != placeholder) {
                inserts.push((placeholder, dir.then(&format!("/{name}"))));
            }
        }
        inserts
    }

    /// Removes the directory, on a thread that may block.
    pub(super) async fn remove(self) {
        // A run that is given up may leave the removing to `drop`, or to the next start.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            tracing::warn!(dir = %self.dir.display(), %error, "a run's files could not be removed");
        }
    }
}

/// Makes the directory for runs, and removes what an earlier start of the agent left in it.
pub(super) fn prepare(scratch: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(scratch)?;
    for entry in fs::read_dir(scratch)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// A name for each file: the last part of its own, of characters that mean nothing to a shell, so
/// that the path can stand in a command in any quotes; no two the same.
fn names(files: &[FileRef]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for file in files {
        let wanted = safe_name(&file.name);
        let numbered = (2..).map(|n| format!("{n}-{wanted}"));
        let mut candidates = std::iter::once(wanted.clone()).chain(numbered);
        names.extend(candidates.find(|name| !names.contains(name)));
    }
    names
}

fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+=@,-".contains(c);
    let mut safe: String =
        last.chars().take(LONGEST_NAME).map(|c| if plain(c) { c } else { '_' }).collect();
    // `.` and `..` are not files; `-x` would be taken for an option.
    if safe.is_empty() || safe.starts_with(['.', '-']) {
        safe.insert_str(0, "file");
    }
    safe
}

#[cfg(test)]
mod tests {
    use cheops_core::model::BlobId;

    use super::*;

    #[test]
    fn names_of_files_are_safe_and_different() {
        let cases: &[(&[&str], &[&str])] = &[
            (&["a.yaml"], &["a.yaml"]),
            (&["../../etc/passwd", "passwd"], &["passwd", "2-passwd"]),
            (&["a", "a", "a"], &["a", "2-a", "3-a"]),
            (&["my 'file' $(x).txt"], &["my__file____x_.txt"]),
            (&["..", ".", "", "/"], &["file..", "file.", "file", "2-file"]),
            (&["-rf", ".hidden"], &["file-rf", "file.hidden"]),
            (&["C:\\dir\\x.txt"], &["x.txt"]),
        ];
        for (given, expected) in cases {
            let file =
                |name: &&str| FileRef { name: (*name).to_owned(), blob: BlobId([0; 32]), size: 0 };
            assert_eq!(names(&given.iter().map(file).collect::<Vec<_>>()), *expected);
        }
    }
}
