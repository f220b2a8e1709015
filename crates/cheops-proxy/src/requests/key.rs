//! The key of the ids that this site gives to requests. It stays with the data directory, so that
//! an id of an earlier life is known to be one; there is none before the first scope is used.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};

use super::ids::IdKey;

/// Where the key is, below the data directory.
#[derive(Debug)]
pub(super) struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    pub(super) fn below(data_dir: &Path) -> Self {
        Self { path: data_dir.join("proxy").join("ids.key") }
    }

    /// The key of an earlier life, if one had use for it.
    pub(super) fn read(&self) -> Option<IdKey> {
        match fs::read(&self.path) {
            Ok(bytes) => {
                let key = IdKey::try_from(bytes.as_slice()).ok();
                if key.is_none() {
                    let path = self.path.display();
                    tracing::warn!(%path, "this is no key; ids of earlier requests are not known");
                }
                key
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                self.warn(&error, "read; ids of earlier requests are not known");
                None
            }
        }
    }

    /// A new key, for this life and those after it.
    pub(super) fn make(&self) -> IdKey {
        let mut key = IdKey::default();
        if SystemRandom::new().fill(&mut key).is_err() {
            // Random as well, and as nobody else has it: there is just less of it.
            key[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
            key[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        }
        if let Err(error) = self.write(&key) {
            self.warn(&error, "written; ids of requests are not known after a restart");
        }
        key
    }

    fn write(&self, key: &IdKey) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let draft = self.path.with_extension("draft");
        // Of an agent that was ended half-way.
        let _none = fs::remove_file(&draft);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(key)?;
        file.sync_all()?;
        fs::rename(&draft, &self.path)?;
        fs::File::open(folder)?.sync_all()
    }

    fn warn(&self, error: &io::Error, what: &str) {
        tracing::warn!(path = %self.path.display(), %error, "the key of ids cannot be {what}");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_the_same_in_the_next_life_and_nobody_elses_to_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = KeyFile::below(dir.path());
        assert_eq!(file.read(), None);
        let key = file.make();
        assert_eq!(KeyFile::below(dir.path()).read(), Some(key));
        let mode = fs::metadata(&file.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_is_no_key_is_replaced_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = KeyFile::below(dir.path());
        fs::create_dir_all(dir.path().join("proxy")).unwrap();
        fs::write(&file.path, b"short").unwrap();
        assert_eq!(file.read(), None);
        let key = file.make();
        assert_eq!(file.read(), Some(key));
    }
}
