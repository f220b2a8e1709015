//! Files that travel with operations: stored once by the hash of their content, streamed, and
//! removed when no operation needs them.
//!
//! Who removes and who adds may meet on the same content. Two rules keep them apart:
//! - A blob that no entry refers to yet is held by a [`Pin`]. Pins are counted under one lock, and
//!   a file is removed under that lock, only if it has none. So a file is either pinned before it
//!   is put in place (then it stays), or removed before it is put in place (then it is put there
//!   again).
//! - References are added and taken by the store's one writer alone, which is also the one who
//!   removes: what has no reference when it decides gets none before the file is gone.
//!
//! So: pin, hand in the operation, and let go of the pin once its batch is committed.
//!
//! What has arrived of a content is kept apart, by age: whether its link breaks, or the agent
//! stops, the rest is fetched when the sites hear each other again.

mod checked;
mod error;
mod kept;
mod memory;
mod partial;
mod pins;
mod port;
mod writer;

use std::any::Any;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cheops_core::model::BlobId;

use crate::files;
use crate::options::StoreOptions;
use checked::DiskCheckedBlob;
pub use error::BlobError;
use error::failed;
use kept::KeptBodies;
pub use kept::MOST_KEPT_BODY;
pub(crate) use memory::MemoryBlobs;
use partial::DiskPartialBlob;
pub use pins::Pin;
use pins::{ContentOrigin, Pins};
pub use port::{BlobWriter, Blobs, CheckedBlob, PartialBlob, Stored};
use writer::DiskBlobWriter;

/// How long what was fetched of a content waits for the rest. Sites may be cut off for days, and
/// what they were about to send may be large.
const PARTIALS_STAY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Contents in a directory, one file each. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct DiskBlobs {
    places: Arc<BlobPaths>,
    pins: Arc<Pins>,
    kept: Arc<KeptBodies>,
    /// Nobody else may open the directory while this is in use.
    _open: Arc<dyn Any + Send + Sync>,
}

/// What is where.
#[derive(Debug)]
struct BlobPaths {
    dir: PathBuf,
    drafts: PathBuf,
    partials: PathBuf,
    damaged: PathBuf,
}

impl BlobPaths {
    /// Spread over directories by the first byte: some file systems are slow with many in one.
    fn of(&self, id: &BlobId) -> PathBuf {
        let name = id.to_string();
        let (first, rest) = name.split_at(2);
        self.dir.join(first).join(rest)
    }

    fn partial(&self, id: &BlobId) -> PathBuf {
        self.partials.join(id.to_string())
    }
}

impl DiskBlobs {
    /// Opens the directory and removes what is not needed: whatever a stop left behind. What is short of
    /// it is kept for readers of the history, as the options say.
    pub(crate) fn open(
        dir: &Path,
        needed: &BTreeSet<BlobId>,
        open: Arc<dyn Any + Send + Sync>,
        options: &StoreOptions,
    ) -> Result<Self, BlobError> {
        let places = BlobPaths {
            dir: dir.to_path_buf(),
            drafts: dir.join("tmp"),
            partials: dir.join("partial"),
            damaged: dir.join("damaged"),
        };
        for dir in [&places.dir, &places.drafts, &places.partials] {
            files::make_dir(dir).map_err(failed("make", dir))?;
        }
        files::remove_drafts(&places.drafts).map_err(failed("clean up", &places.drafts))?;
        let kept = dir.join("kept");
        let kept = Arc::new(
            KeptBodies::open(kept.clone(), options).map_err(failed("look through", &kept))?,
        );
        let blobs = Self { places: Arc::new(places), pins: Arc::default(), kept, _open: open };
        for (id, path) in blobs.all()? {
            if !needed.contains(&id) {
                blobs.kept.take(&id, &path).map_err(failed("remove", &path))?;
            }
        }
        blobs.kept.drop_old();
        blobs.remove_abandoned()?;
        Ok(blobs)
    }

    fn file(&self, id: &BlobId) -> Result<Option<File>, BlobError> {
        let path = self.places.of(id);
        files::open_if_there(&path).map_err(failed("open", &path))
    }

    /// A content that is not what its name says is of use to nobody: it is put aside, where it can
    /// be looked at, and does not keep the right one from being fetched.
    fn compare(&self, id: &BlobId, read: &File, hasher: &blake3::Hasher) -> Result<(), BlobError> {
        if hasher.finalize().as_bytes() == &id.0 {
            return Ok(());
        }
        let (from, to) = (self.places.of(id), self.places.damaged.join(id.to_string()));
        let aside = self.pins.alone(|| {
            // Somebody else may have seen it too, and fetched the right one.
            if !files::is_at(read, &from)? {
                return Ok(());
            }
            files::make_dir(&self.places.damaged)?;
            fs::rename(&from, &to)
        });
        aside.map_err(failed("put aside", &from))?;
        Err(BlobError::Corrupt { id: *id, place: (&to).into() })
    }

    /// Removes the content, unless it is pinned; a short one is kept for readers of the history. A
    /// file that cannot be removed is one more to remove when the directory is opened next.
    pub(crate) fn remove_unpinned(&self, id: &BlobId) {
        self.pins.unless_pinned(id, |_| {
            let _at_next_open = self.kept.take(id, &self.places.of(id));
        });
    }

    /// How many bytes contents take that are kept for readers of the history only.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.kept.bytes()
    }

    /// Drops those of them that are too old, or too many; whether some were too many.
    pub(crate) fn drop_kept(&self) -> bool {
        self.kept.drop_old()
    }

    /// The same for a content that no entry refers to. If it came from another site, its operation
    /// may come yet, with others of which the files were cut off: then it counts as fetched.
    pub(crate) fn set_aside_unpinned(&self, id: &BlobId) {
        self.pins.unless_pinned(id, |origin| {
            let path = self.places.of(id);
            let _at_next_open = match origin {
                ContentOrigin::AnotherSite => fs::rename(path, self.places.partial(id)).is_ok(),
                ContentOrigin::Unimportant => files::remove_if_there(&path).is_ok(),
            };
        });
    }

    /// An entry refers to it, so it is kept for its own sake from now on.
    pub(crate) fn found_needed(&self, id: &BlobId) {
        self.pins.found_needed(id);
    }

    /// Removes what was fetched of contents that nobody went on with for long. No entry tells which
    /// are still wanted: an operation is taken in only when its files are here.
    pub(crate) fn remove_abandoned(&self) -> Result<(), BlobError> {
        let dir = &self.places.partials;
        for path in files::list(dir).map_err(failed("read", dir))? {
            let Some(id) = files::name(&path).and_then(named) else { continue };
            let age = fs::metadata(&path).and_then(|file| file.modified());
            // A time that is still to come tells of a clock, not of an age.
            let is_old = age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > PARTIALS_STAY));
            if is_old {
                self.pins
                    .unless_fetched(&id, || files::remove_if_there(&path))
                    .map_err(failed("remove", &path))?;
            }
        }
        Ok(())
    }

    /// What lost its last pin since this was asked before: it may have no reference either.
    pub(crate) fn take_unpinned(&self) -> BTreeSet<BlobId> {
        self.pins.take_unpinned()
    }

    /// Puts a finished file in its place. It is pinned before, so nobody takes it away again; and
    /// it takes the place of what is there, which may be damaged.
    fn place(&self, pin: &Pin, put: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), BlobError> {
        let path = self.places.of(&pin.id());
        let dir = path.parent().unwrap_or(&self.places.dir);
        files::make_dir(dir).map_err(failed("make", dir))?;
        put(&path).map_err(failed("put in place", &path))?;
        let partial = self.places.partial(&pin.id());
        let removed = self.pins.unless_fetched(&pin.id(), || files::remove_if_there(&partial));
        removed.map_err(failed("remove", &partial))?;
        files::sync_dir(dir).map_err(failed("sync", dir))
    }

    /// Every content that is whole. Files that are none of ours are left alone.
    fn all(&self) -> Result<Vec<(BlobId, PathBuf)>, BlobError> {
        let mut all = Vec::new();
        let list = |dir: &Path| files::list(dir).map_err(failed("read", dir));
        for dir in list(&self.places.dir)? {
            let Some(first) = files::name(&dir).filter(|name| name.len() == 2) else { continue };
            for path in list(&dir)? {
                let name = format!("{first}{}", files::name(&path).unwrap_or_default());
                if let Some(id) = named(&name) {
                    all.push((id, path));
                }
            }
        }
        Ok(all)
    }
}

impl Blobs for DiskBlobs {
    fn create(&self) -> Result<Box<dyn BlobWriter>, BlobError> {
        Ok(Box::new(DiskBlobWriter::new(self.clone())?))
    }

    fn partial(&self, id: BlobId, size: u64) -> Result<Box<dyn PartialBlob>, BlobError> {
        Ok(Box::new(DiskPartialBlob::open(self.clone(), id, size)?))
    }

    fn pin(&self, id: BlobId) -> Pin {
        Pins::pin(&self.pins, id)
    }

    fn contains(&self, id: &BlobId) -> bool {
        self.places.of(id).is_file()
    }

    fn open_checked(
        &self,
        id: BlobId,
        from: u64,
    ) -> Result<Option<Box<dyn CheckedBlob>>, BlobError> {
        let opened = DiskCheckedBlob::open(self.clone(), id, from)?;
        Ok(opened.map(|opened| Box::new(opened) as Box<dyn CheckedBlob>))
    }

    fn copy_to(&self, id: &BlobId, path: &Path) -> Result<u64, BlobError> {
        let mut from = self.file(id)?.ok_or(BlobError::Missing { id: *id })?;
        let mut to = files::create_new(path).map_err(failed("make", path))?;
        let mut hasher = blake3::Hasher::new();
        let copied = copy_hashed(&mut from, &mut to, &mut hasher)
            .map_err(failed("copy to", path))
            .and_then(|size| self.compare(id, &from, &hasher).map(|()| size));
        if copied.is_err() {
            // The error says more than that this failed, too.
            let _left = fs::remove_file(path);
        }
        copied
    }

    fn short(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BlobError> {
        if let Some(kept) = self.kept.read(id).map_err(failed("read", &self.places.dir))? {
            return Ok(Some(kept));
        }
        let Some(mut whole) = self.open_checked(*id, 0)? else { return Ok(None) };
        if whole.size() > MOST_KEPT_BODY {
            return Ok(None);
        }
        let mut content = Vec::new();
        loop {
            let some = whole.next(MOST_KEPT_BODY as usize)?;
            if some.is_empty() {
                return Ok(Some(content));
            }
            content.extend(some);
        }
    }

    fn size(&self) -> Result<u64, BlobError> {
        let all = files::bytes_below(&self.places.dir).map_err(failed("read", &self.places.dir))?;
        let kept = files::bytes_below(self.kept.dir()).map_err(failed("read", &self.places.dir))?;
        Ok(all.saturating_sub(kept))
    }
}

/// Which content has that name, if any may have it.
fn named(name: &str) -> Option<BlobId> {
    blake3::Hash::from_hex(name).ok().map(|hash| BlobId(*hash.as_bytes()))
}

fn copy_hashed(
    from: &mut impl Read,
    to: &mut impl Write,
    hasher: &mut blake3::Hasher,
) -> io::Result<u64> {
    let mut chunk = vec![0; 64 * 1024];
    let mut size = 0;
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => return Ok(size),
            Ok(read) => chunk.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(read);
        to.write_all(read)?;
        size += read.len() as u64;
    }
}
