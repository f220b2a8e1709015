//! The token's file: made once, readable by its owner alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cheops_api::{BadToken, Token};
use ring::rand::{SecureRandom, SystemRandom};

use cheops_mesh::owner::{self, OfAnother};

/// How much random there is in a token.
const BYTES: usize = 32;
/// A token is far shorter.
const LONGEST_FILE: u64 = 4096;
/// What nobody but the owner may do.
const OF_OTHERS: u32 = 0o077;

/// Why there is no token to ask for.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Somebody else could have read it.
    #[error("`{}` has mode {mode:04o}: not only its owner can read it", .path.display())]
    Readable {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Somebody else could have read or changed it.
    #[error("`{}` is for this agent alone, and {owner}", .path.display())]
    OfAnother {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: OfAnother,
    },
    /// There is something else in it.
    #[error("`{}` holds no token", .path.display())]
    NoToken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: BadToken,
    },
    /// It could not be read or made.
    #[error("`{}` could not be {doing}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What came of it.
        source: io::Error,
    },
}

impl TokenError {
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Readable { path, .. } => format!(
                "`chmod 600 {0}`; if somebody may have read it, remove it: a new one is made at the \
                 next start",
                path.display()
            ),
            Self::OfAnother { path, .. } | Self::NoToken { path, .. } => {
                format!("remove `{}`: a new one is made at the next start", path.display())
            }
            Self::File { .. } => "`api.token_file` names the file".to_owned(),
        }
    }
}

/// The token in that file; a new one, if there is no such file.
///
/// # Errors
///
/// When it could have been read by others, holds no token, or cannot be read or made.
pub fn api_token(path: &Path) -> Result<Token, TokenError> {
    let failed = |doing| move |source| TokenError::File { path: path.to_owned(), doing, source };
    match File::open(path) {
        Ok(file) => read(&file, path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(path).map_err(failed("made"))?;
            read(&File::open(path).map_err(failed("read"))?, path)
        }
        Err(error) => Err(failed("read")(error)),
    }
}

fn read(file: &File, path: &Path) -> Result<Token, TokenError> {
    let failed = |source| TokenError::File { path: path.to_owned(), doing: "read", source };
    let found = file.metadata().map_err(failed)?;
    owner::check(&found).map_err(|owner| TokenError::OfAnother { path: path.to_owned(), owner })?;
    let mode = found.mode() & 0o7777;
    if mode & OF_OTHERS != 0 {
        return Err(TokenError::Readable { path: path.to_owned(), mode });
    }
    let mut text = String::new();
    file.take(LONGEST_FILE).read_to_string(&mut text).map_err(failed)?;
    Token::new(&text).map_err(|source| TokenError::NoToken { path: path.to_owned(), source })
}

/// Written beside it first: a file that has this name holds a whole token.
fn make(path: &Path) -> io::Result<()> {
    let mut random = [0; BYTES];
    let no_reason = |_| io::Error::other("the system gives no random numbers");
    SystemRandom::new().fill(&mut random).map_err(no_reason)?;
    let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let draft = PathBuf::from(name);
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    // Whatever this process's mask takes away.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_token_is_made_once_and_only_its_owner_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("api.token");
        let made = api_token(&path).unwrap();
        assert_eq!(made.secret().len(), 2 * BYTES);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(api_token(&path).unwrap(), made);
        let other = api_token(&dir.path().join("other.token")).unwrap();
        assert_ne!(other, made);
    }

    #[test]
    fn a_token_that_others_can_read_is_refused_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("api.token");
        api_token(&path).unwrap();
        for mode in [0o640, 0o604, 0o660, 0o610] {
            with_mode(&path, mode);
            let error = api_token(&path).unwrap_err();
            assert!(matches!(error, TokenError::Readable { .. }), "{mode:o}: {error}");
            assert!(error.hint().contains("chmod 600"), "{}", error.hint());
        }
        with_mode(&path, 0o400);
        assert!(api_token(&path).is_ok());
    }

    #[test]
    fn a_token_that_belongs_to_somebody_else_is_refused_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("api.token");
        api_token(&path).unwrap();
        // Only root can.
        let is_given_away = std::os::unix::fs::chown(&path, Some(65_534), None).is_ok();
        if !is_given_away {
            eprintln!("NOT TRIED: only root can give a file away");
        } else {
            let error = api_token(&path).unwrap_err();
            assert!(matches!(error, TokenError::OfAnother { .. }), "{error}");
            assert!(error.hint().contains("remove"), "{}", error.hint());
        }
    }

    #[test]
    fn what_is_no_token_is_refused_and_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("api.token");
        fs::write(&path, "short\n").unwrap();
        with_mode(&path, 0o600);
        assert!(matches!(api_token(&path), Err(TokenError::NoToken { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "short\n");
    }
}
