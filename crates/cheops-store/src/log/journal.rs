//! Batches on their way into the tables.
//!
//! A row in a table means a page here and an index there. Who waits for a batch need not wait for
//! all that: it is appended to this file in one piece, and durable when that piece is. The tables
//! take over many batches at once, and need not be synced before the file is used again from its
//! beginning.
//!
//! The file has its size from the start and is only written over, so that a sync has nothing to do
//! but bring the bytes to the medium, and a full disk does not stop what is under way. Whether a
//! frame counts is told by its checksum, which covers the place in the file and the key that the
//! tables hold: what an earlier round left behind matches nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cheops_core::engine::{Notice, Record};
use cheops_record::disk;

use super::head::{Head, Round};
use super::row::{decode_notice, decode_record};
use crate::error::LogPlace;
use crate::fault::StoreFault;
use crate::files;
use crate::ports::LogFence;

const MAGIC: [u8; 8] = *b"cheopsJ1";
/// Magic, the place of the first row, the length of the body, the checksum.
const HEADER: usize = 8 + 8 + 4 + SUM;
const SUM: usize = 16;
/// Frames begin at multiples of this, so that they are found again behind a damaged one.
const STEP: usize = 64;

/// What a user handed in may look like many frames: so many are looked at behind the last one.
const MOST_LOOKED_AT: usize = 10_000;

/// What the frames of one round through the file have in common, and no other round has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundKey(pub(crate) [u8; 32]);

impl RoundKey {
    /// Nobody can guess it, or a frame could be hidden in what a user hands in.
    pub(crate) fn draw() -> io::Result<Self> {
        let mut key = [0; 32];
        let mut filled = 0;
        while filled < key.len() {
            let flags = rustix::rand::GetRandomFlags::empty();
            filled += rustix::rand::getrandom(&mut key[filled..], flags)?;
        }
        Ok(Self(key))
    }

    /// Each that opens the log draws a key, which no other has.
    pub(crate) fn fence(self) -> LogFence {
        LogFence(u64::from_le_bytes(std::array::from_fn(|at| self.0[at])))
    }
}

/// Something that gets a row.
#[derive(Debug, Clone)]
pub(crate) enum JournalItem {
    Record(Record),
    Notice(Notice),
}

/// A batch: what it says, and its written form.
#[derive(Debug)]
pub(crate) struct JournalBatch {
    pub(crate) at_ms: u64,
    items: Vec<(JournalItem, Range<usize>)>,
    /// A whole frame, its header still empty: the time, then each item with its kind and length.
    frame: Vec<u8>,
}

const RECORD: u8 = 1;
const NOTICE: u8 = 2;

impl JournalBatch {
    pub(crate) fn new<'a>(
        at_ms: u64,
        records: &[Record],
        notices: impl IntoIterator<Item = &'a Notice>,
    ) -> Result<Self, StoreFault> {
        let mut frame = vec![0; HEADER];
        frame.extend(at_ms.to_le_bytes());
        let mut batch = Self { at_ms, items: Vec::new(), frame };
        for record in records {
            batch.add(RECORD, &disk::encode_record(record), JournalItem::Record(record.clone()))?;
        }
        for notice in notices {
            batch.add(NOTICE, &disk::encode_notice(notice), JournalItem::Notice(notice.clone()))?;
        }
        batch.frame.resize(batch.frame.len().next_multiple_of(STEP), 0);
        Ok(batch)
    }

    fn add(&mut self, kind: u8, body: &[u8], item: JournalItem) -> Result<(), StoreFault> {
        let length = u32::try_from(body.len()).map_err(|_long| StoreFault::TooLong(body.len()))?;
        self.frame.push(kind);
        self.frame.extend(length.to_le_bytes());
        let start = self.frame.len();
        self.frame.extend(body);
        self.items.push((item, start..self.frame.len()));
        Ok(())
    }

    /// Reads what [`JournalBatch::new`] wrote.
    fn read(frame: &[u8]) -> Result<Self, String> {
        let (at_ms, mut rest) =
            frame.get(HEADER..).and_then(<[u8]>::split_first_chunk).ok_or("it has no time")?;
        let mut items = Vec::new();
        // What follows the last item is nothing but zeros, and no kind.
        while let Some((&kind @ (RECORD | NOTICE), after)) = rest.split_first() {
            let (length, after) = after.split_first_chunk().ok_or("an item is cut")?;
            let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
            let body = after.get(..length).ok_or("an item is longer than its frame")?;
            let item = match kind {
                RECORD => decode_record(body).map(JournalItem::Record),
                _ => decode_notice(body).map(JournalItem::Notice),
            };
            let item = item.map_err(|error| format!("an item cannot be read: {error}"))?;
            let start = frame.len() - after.len();
            items.push((item, start..start + length));
            rest = &after[length..];
        }
        Ok(Self { at_ms: u64::from_le_bytes(*at_ms), items, frame: frame.to_vec() })
    }

    /// Each item with its written form.
    pub(crate) fn items(&self) -> impl DoubleEndedIterator<Item = (&JournalItem, &[u8])> {
        self.items.iter().map(|(item, body)| (item, &self.frame[body.clone()]))
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.items.iter().filter_map(|(item, _)| match item {
            JournalItem::Record(record) => Some(record),
            JournalItem::Notice(_) => None,
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.frame.len()
    }
}

/// The file.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    key: RoundKey,
    size: u64,
    /// Where the next frame goes.
    end: u64,
    /// A frame that could not be made durable may be in the file all the same.
    leftover: bool,
}

impl Journal {
    /// Makes the file, empty and as long as it will ever be.
    pub(crate) fn create(path: &Path, drafts: &Path, size: u64) -> io::Result<()> {
        let mut draft = files::Draft::create(drafts)?;
        // In small pieces: a large buffer would stay with this process.
        io::copy(&mut io::repeat(0).take(size), draft.file())?;
        draft.sync()?;
        draft.rename_to(path)?;
        path.parent().map_or(Ok(()), files::sync_dir)
    }

    /// Reads the batches from that place on: those that the tables do not have. What is behind
    /// them is to be written over, once [`Journal::start_over`] said with which key.
    pub(crate) fn open(path: &Path, head: &Head) -> Result<(Self, Vec<JournalBatch>), StoreFault> {
        let Round { size, key } = head.journal;
        let failed = |error| StoreFault::Io("read", path.to_path_buf(), error);
        let damaged = |what: String| StoreFault::Damaged(LogPlace::Journal, what);
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => damaged("it was lost".to_string()),
            _ => failed(error),
        })?;
        let mut bytes = vec![0; usize::try_from(size).map_err(|error| damaged(error.to_string()))?];
        file.read_exact_at(&mut bytes, 0).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("it was cut".to_string()),
            _ => failed(error),
        })?;
        let batches = unread(&bytes, key, head.next_seq).map_err(damaged)?;
        let journal = Self { file, path: path.to_path_buf(), key, size, end: 0, leftover: false };
        Ok((journal, batches))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// From its beginning, with that key. The tables have everything, durably, and the key too.
    pub(crate) fn start_over(&mut self, key: RoundKey) {
        (self.key, self.end, self.leftover) = (key, 0, false);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.end == 0
    }

    pub(crate) fn has_room_for(&self, batch: &JournalBatch) -> bool {
        self.size - self.end >= batch.frame.len() as u64
    }

    /// Makes the batch durable, all of it or nothing.
    pub(crate) fn append(
        &mut self,
        first_seq: i64,
        batch: &mut JournalBatch,
    ) -> Result<(), StoreFault> {
        seal(&mut batch.frame, self.key, self.end, first_seq);
        match self.write(&batch.frame) {
            Ok(()) => {
                self.end += batch.frame.len() as u64;
                self.leftover = false;
                Ok(())
            }
            Err(error) => {
                self.leftover = true;
                // If that fails too, whoever wants to be sure tries again.
                let _later = self.bury();
                Err(error)
            }
        }
    }

    /// Makes sure that a frame which failed is not found after a restart.
    pub(crate) fn bury(&mut self) -> Result<(), StoreFault> {
        if self.leftover {
            self.write(&[0; HEADER])?;
            self.leftover = false;
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> Result<(), StoreFault> {
        let written = self.file.write_all_at(bytes, self.end);
        let synced = written.and_then(|()| self.file.sync_data());
        synced.map_err(|error| StoreFault::Io("write", self.path.clone(), error))
    }
}

fn seal(frame: &mut [u8], key: RoundKey, at: u64, first_seq: i64) {
    let (header, body) = frame.split_at_mut(HEADER);
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    header[..8].copy_from_slice(&MAGIC);
    header[8..16].copy_from_slice(&first_seq.to_le_bytes());
    header[16..20].copy_from_slice(&length.to_le_bytes());
    let sum = sum(key, at, &header[..HEADER - SUM], body);
    header[HEADER - SUM..].copy_from_slice(&sum);
}

fn sum(key: RoundKey, at: u64, header: &[u8], body: &[u8]) -> [u8; SUM] {
    let mut hasher = blake3::Hasher::new_keyed(&key.0);
    hasher.update(&at.to_le_bytes()).update(header).update(body);
    let mut sum = [0; SUM];
    hasher.finalize_xof().fill(&mut sum);
    sum
}

/// A frame that is what was written, and where it ends.
struct FoundFrame<'a> {
    first_seq: i64,
    frame: &'a [u8],
    end: usize,
}

fn frame_at(bytes: &[u8], at: usize, key: RoundKey) -> Option<FoundFrame<'_>> {
    let header: &[u8; HEADER] = bytes.get(at..)?.first_chunk()?;
    let (magic, rest) = header.split_first_chunk()?;
    let (first_seq, rest) = rest.split_first_chunk()?;
    let (length, written) = rest.split_first_chunk()?;
    if *magic != MAGIC {
        return None;
    }
    let end = (at + HEADER).checked_add(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    let body = bytes.get(at + HEADER..end)?;
    let expected = sum(key, at as u64, &header[..HEADER - SUM], body);
    let first_seq = i64::from_le_bytes(*first_seq);
    (written == expected).then(|| FoundFrame { first_seq, frame: &bytes[at..end], end })
}

/// The batches from that place on, in order.
///
/// Frames are made durable one after the other. So one that does not match may have been under way
/// when the machine stopped, and nobody was told of it: but then nothing follows it.
fn unread(bytes: &[u8], key: RoundKey, mut next_seq: i64) -> Result<Vec<JournalBatch>, String> {
    let mut batches = Vec::new();
    let mut at = 0;
    while let Some(found) = frame_at(bytes, at, key) {
        let batch = JournalBatch::read(found.frame).map_err(|what| damage(at, &what))?;
        let after = found.first_seq.saturating_add_unsigned(batch.rows() as u64);
        if found.first_seq > next_seq {
            return Err(damage(at, "batches before it are missing"));
        }
        if found.first_seq == next_seq {
            batches.push(batch);
            next_seq = after;
        } else if after > next_seq {
            return Err(damage(at, "the log has half of it"));
        }
        at = found.end;
    }
    let later = (at..bytes.len()).step_by(STEP);
    let looks_like_one = |at: &usize| bytes[*at..].starts_with(&MAGIC);
    let later = later.filter(looks_like_one).take(MOST_LOOKED_AT);
    if later.filter_map(|at| frame_at(bytes, at, key)).any(|found| found.first_seq >= next_seq) {
        return Err(damage(at, "its checksum does not match, and it is not the last one"));
    }
    Ok(batches)
}

fn damage(at: usize, what: &str) -> String {
    format!("batch at byte {at}: {what}")
}
