//! The API's socket on this machine. Who may open the file is let in; the system says who that is.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen};
use tokio::net::UnixListener;

/// The user and the group of the agent, and root.
const MODE: u32 = 0o660;
/// How many may wait to be let in.
const WAITING: i32 = 1024;

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Somebody answers there.
    #[error("another agent listens at `{}`", .0.display())]
    InUse(PathBuf),
    /// There is something else.
    #[error("`{}` is there and is no socket", .0.display())]
    NoSocket(PathBuf),
    /// It could not be made.
    #[error("the socket `{}` could not be made", .path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What came of it.
        source: io::Error,
    },
}

/// A socket that is listened on. Dropped, its file is removed.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(super) listener: UnixListener,
    pub(super) path: PathBuf,
    /// What tells our file from one that has its name by now.
    file: (u64, u64),
}

impl Socket {
    /// Listens there, in the place of what a killed agent left.
    pub(crate) fn bind(path: &Path) -> Result<Self, SocketError> {
        clear(path)?;
        let failed = |source| SocketError::Io { path: path.to_owned(), source };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let socket = socket.map_err(|error| failed(error.into()))?;
        let address = SocketAddrUnix::new(path).map_err(|error| failed(error.into()))?;
        bind(&socket, &address).map_err(|error| failed(error.into()))?;
        // Until it is listened on nobody can connect, whatever the mode was so far.
        let made = fs::set_permissions(path, fs::Permissions::from_mode(MODE))
            .and_then(|()| Ok(listen(&socket, WAITING)?))
            .and_then(|()| fs::metadata(path))
            .and_then(|file| {
                Ok((UnixListener::from_std(StdListener::from(socket))?, (file.dev(), file.ino())))
            });
        let (listener, file) = made.map_err(failed)?;
        Ok(Self { listener, path: path.to_owned(), file })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|there| (there.dev(), there.ino()) == self.file);
        if is_ours {
            let _gone = fs::remove_file(&self.path);
        }
    }
}

/// Removes a socket on which nobody listens any more.
fn clear(path: &Path) -> Result<(), SocketError> {
    let failed = |source| SocketError::Io { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(there) if !there.file_type().is_socket() => {
            return Err(SocketError::NoSocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match StdStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(_) => Err(SocketError::InUse(path.to_owned())),
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[tokio::test]
    async fn it_is_for_the_owner_and_the_group_and_goes_with_the_agent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("api.sock");
        let socket = Socket::bind(&path).unwrap();
        assert_eq!(mode(&path), 0o660);
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_a_dead_agent_left_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("api.sock");
        drop(StdListener::bind(&path).unwrap());
        assert!(path.exists());
        let living = Socket::bind(&path).unwrap();
        assert!(matches!(Socket::bind(&path), Err(SocketError::InUse(_))));
        drop(living);
    }

    #[tokio::test]
    async fn a_file_of_somebody_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("api.sock");
        fs::write(&path, "mine").unwrap();
        assert!(matches!(Socket::bind(&path), Err(SocketError::NoSocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[tokio::test]
    async fn the_socket_of_who_came_after_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("api.sock");
        let first = Socket::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let second = Socket::bind(&path).unwrap();
        drop(first);
        assert!(StdStream::connect(&path).is_ok());
        drop(second);
    }
}
