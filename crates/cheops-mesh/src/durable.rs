//! Files that are there whole or not at all, also after a crash: a draft beside them is written to the
//! disk first, and then gets their name.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Writes a file that is not there yet; one that is there is left as it is, and that is an error.
pub fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let draft = draft(path, content, mode)?;
    // Unlike renaming, this replaces nothing.
    let linked = fs::hard_link(&draft, path);
    let removed = fs::remove_file(&draft);
    linked.and(removed)?;
    settle(path)
}

/// Writes a file, in the place of one that may be there.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    fs::rename(draft(path, content, mode)?, path)?;
    settle(path)
}

/// What a crash left of an earlier draft is overwritten: there is one writer of each file.
fn draft(path: &Path, content: &[u8], mode: u32) -> io::Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let draft = PathBuf::from(name);
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
    // Whatever this process's mask takes away.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()?;
    Ok(draft)
}

/// The name is on the disk as well.
fn settle(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_once_replaced_when_asked_and_nothing_stays_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        fs::write(dir.path().join("secret.new"), "what a crash left").unwrap();
        write_new(&path, b"one", 0o600).unwrap();
        let again = write_new(&path, b"two", 0o600).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        replace(&path, b"three", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
