//! The name of one start of an agent, by which the processes it started are known.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use ring::rand::{SecureRandom, SystemRandom};

/// The variable in the environment of every command that says whose it is.
pub(super) const RUN_VARIABLE: &str = "CHEOPS_RUN";

/// One start of one agent: `<data directory>.<random>`. Every process that it starts carries this
/// in its environment, and hands it on to its own children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunToken {
    text: Arc<str>,
    data_length: usize,
}

impl RunToken {
    /// A new start of the agent whose data are in this directory, which must exist. No two
    /// directories of a machine share a name, whatever they are mounted as.
    ///
    /// # Errors
    ///
    /// When the directory cannot be looked at, or the system has no random numbers.
    pub fn new(data_dir: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let path = data_dir.canonicalize()?;
        let found = path.metadata()?;
        let mut hash = blake3::Hasher::new();
        hash.update(path.as_os_str().as_encoded_bytes());
        hash.update(&found.dev().to_le_bytes());
        hash.update(&found.ino().to_le_bytes());
        let data: String = hash.finalize().to_hex().chars().take(24).collect();
        let mut random = [0; 8];
        let filled = SystemRandom::new().fill(&mut random);
        filled.map_err(|_| io::Error::other("the system has no random numbers"))?;
        let text = format!("{data}.{:016x}", u64::from_le_bytes(random));
        Ok(Self { text: text.into(), data_length: data.len() })
    }

    /// What the tokens of all starts of this agent begin with.
    pub(super) fn all_starts(&self) -> &str {
        &self.text[..=self.data_length]
    }

    /// The value for the how-manieth run of this start.
    pub(super) fn of_run(&self, n: u64) -> String {
        format!("{self}.{n}")
    }

    /// Which run of this start a value names.
    pub(super) fn run_of(&self, value: &[u8]) -> Option<u64> {
        let rest = value.strip_prefix(self.text.as_bytes())?.strip_prefix(b".")?;
        std::str::from_utf8(rest).ok()?.parse().ok()
    }
}

impl fmt::Display for RunToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_of_one_agent_share_their_beginning_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (RunToken::new(dir.path()).unwrap(), RunToken::new(dir.path()).unwrap());
        assert_ne!(one, two);
        assert_eq!(one.all_starts(), two.all_starts());
        assert!(one.all_starts().ends_with('.'));
        assert_eq!(one.run_of(one.of_run(7).as_bytes()), Some(7));
        assert_eq!(one.run_of(two.of_run(7).as_bytes()), None);
        assert_eq!(one.run_of(format!("{one}.x").as_bytes()), None);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(one.all_starts(), RunToken::new(other.path()).unwrap().all_starts());
    }
}
