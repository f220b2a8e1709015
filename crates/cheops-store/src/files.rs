//! Files that are there whole or not at all, whatever stops the machine.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes the directory, for this user alone, and makes sure that it stays.
pub(crate) fn make_dir(dir: &Path) -> io::Result<()> {
    if dir.as_os_str().is_empty() || dir.is_dir() {
        return Ok(());
    }
    let parent = dir.parent().unwrap_or(Path::new("/"));
    make_dir(parent)?;
    match DirBuilder::new().mode(0o700).create(dir) {
        // Another thread was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
        made => made?,
    }
    sync_dir(parent)
}

/// Makes what was created, renamed or removed in the directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    // The parent of a relative name is the empty path.
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    File::open(dir)?.sync_all()
}

/// A new file, for this user alone.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Makes the file, if it is not there, and makes it this user's alone, whoever made it.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    keep_private(path)
}

/// Makes the file, if it is there, this user's alone.
pub(crate) fn keep_private(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_file() && there.mode() & 0o077 != 0 => {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens the file; `None` if there is none.
pub(crate) fn open_if_there(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the open file is what is there now.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether there is another in place of the open file, as far as can be told.
pub(crate) fn is_replaced(file: &File, path: &Path) -> bool {
    let (Ok(opened), Ok(there)) = (file.metadata(), fs::metadata(path)) else { return false };
    (there.dev(), there.ino()) != (opened.dev(), opened.ino())
}

/// Removes the file; whether there was one.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// What is in the directory; nothing if there is no such directory.
pub(crate) fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The last part of the path, if it is text.
pub(crate) fn name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// A file being written. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Draft {
    file: File,
    path: PathBuf,
}

impl Draft {
    /// A new file in that directory, which holds nothing but drafts of this process.
    pub(crate) fn create(dir: &Path) -> io::Result<Self> {
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        make_dir(dir)?;
        let path = dir.join(DRAFTS.fetch_add(1, Ordering::Relaxed).to_string());
        Ok(Self { file: create_new(&path)?, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Makes the content durable; its name is not yet.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Gives the content its name, at once and in place of what had it. The caller makes the
    /// directory durable.
    pub(crate) fn rename_to(self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)
        // The drop that follows finds nothing to remove.
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // What stays behind is swept when the directory is opened the next time.
        let _swept_later = fs::remove_file(&self.path);
    }
}

/// Writes the whole file and makes it durable, or leaves what was there.
pub(crate) fn write_whole(path: &Path, drafts: &Path, content: &[u8]) -> io::Result<()> {
    use io::Write;
    let mut draft = Draft::create(drafts)?;
    draft.file().write_all(content)?;
    draft.sync()?;
    draft.rename_to(path)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Empties a directory of drafts: whoever wrote them is gone.
pub(crate) fn remove_drafts(dir: &Path) -> io::Result<()> {
    list(dir)?.iter().try_for_each(|path| remove_if_there(path).map(drop))
}

/// How many bytes the files below the directory hold.
pub(crate) fn bytes_below(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for path in list(dir)? {
        // A file may go between being listed and being looked at.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        bytes += if metadata.is_dir() { bytes_below(&path)? } else { metadata.len() };
    }
    Ok(bytes)
}
