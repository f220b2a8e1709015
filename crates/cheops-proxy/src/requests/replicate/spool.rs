//! Bodies on their way to every site: a short one becomes part of the operation; a longer one goes to
//! the disk as it comes, and is never whole in memory.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cheops_core::model::{FileRef, MAX_INLINE_BODY_BYTES};
use cheops_services::body::{BodyError, OutgoingBody};
use http_body::Body;
use http_body_util::BodyExt;

use super::super::reserve::{NoRoom, Reserve};
use crate::ports::{BodyPin, BodyStore, BodyWriter};

/// How fast a body has to come: one that trickles holds room on the disk for nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// So many bytes,
    bytes: u64,
    /// within so long, not counting what the disk takes.
    within: Duration,
}

/// 1 KiB a second, looked at over a minute.
pub(super) const SLOWEST: Pace = Pace { bytes: 60 * 1024, within: Duration::from_secs(60) };

/// A body that goes to every site.
#[derive(Debug)]
pub(super) struct KeptBody {
    /// What the operation says of it.
    pub(super) file: FileRef,
    pub(super) place: BodyPlace,
}

/// Where a body is.
#[derive(Debug)]
pub(super) enum BodyPlace {
    /// Here, to be handed in with the operation.
    Inline(Arc<[u8]>),
    /// On the disk, for as long as this is held.
    File(BodyPin),
}

/// Why a body was not kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotKept {
    #[error("it broke off: {0}")]
    BrokenOff(BodyError),
    #[error(
        "the request's body came too slowly: less than {} bytes in {} s",
        .0.bytes,
        .0.within.as_secs()
    )]
    TooSlow(Pace),
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    #[error("the disk does not take it: {0}")]
    Disk(#[from] io::Error),
    #[error("{0}")]
    Store(BodyError),
}

/// What the one file of a request is called.
const NAME: &str = "body";

/// Keeps a body; `None` if it is empty. What does not fit is refused before it is read, if it says
/// how long it is, and else when it no longer does.
pub(super) async fn keep(
    bodies: &Arc<dyn BodyStore>,
    reserve: &Reserve,
    pace: Pace,
    mut body: OutgoingBody,
) -> Result<Option<KeptBody>, NotKept> {
    if body.is_end_stream() {
        return Ok(None);
    }
    let mut promise = reserve.promise(body.size_hint().exact())?;
    let (mut short, mut writer) = (Vec::new(), None);
    let (mut waited, mut came) = (Duration::ZERO, 0);
    loop {
        let began = Instant::now();
        let frame = tokio::time::timeout(pace.within.saturating_sub(waited), body.frame()).await;
        let Ok(frame) = frame else { return Err(NotKept::TooSlow(pace)) };
        let Some(frame) = frame else { break };
        waited += began.elapsed();
        let Ok(data) = frame.map_err(NotKept::BrokenOff)?.into_data() else { continue };
        let length = data.len() as u64;
        promise.take(length)?;
        came += length;
        if came >= pace.bytes {
            (waited, came) = (Duration::ZERO, 0);
        }
        if writer.is_none() && short.len() + data.len() <= MAX_INLINE_BODY_BYTES {
            short.extend_from_slice(&data);
            continue;
        }
        let (begun, bodies) = (std::mem::take(&mut short), bodies.clone());
        let going_on = writer.take();
        writer = Some(blocking(move || write(&*bodies, going_on, &[&begun, &data])).await?);
    }
    let Some(writer) = writer else {
        let place = BodyPlace::Inline(short.as_slice().into());
        return Ok((!short.is_empty()).then(|| KeptBody { file: FileRef::of(NAME, &short), place }));
    };
    let stored = blocking(move || writer.finish().map_err(NotKept::Store)).await?;
    let file = FileRef { name: NAME.into(), blob: stored.blob, size: stored.size };
    Ok(Some(KeptBody { file, place: BodyPlace::File(stored.pin) }))
}

/// Goes on with a file, or begins one.
fn write(
    bodies: &dyn BodyStore,
    writer: Option<Box<dyn BodyWriter>>,
    pieces: &[&[u8]],
) -> Result<Box<dyn BodyWriter>, NotKept> {
    let mut writer = writer.map_or_else(|| bodies.create(), Ok).map_err(NotKept::Store)?;
    pieces.iter().try_for_each(|piece| writer.write_all(piece))?;
    Ok(writer)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, NotKept> + Send + 'static,
) -> Result<T, NotKept> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.map_err(|_ended| io::Error::other("the agent is stopping"))?
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use bytes::Bytes;
    use cheops_core::model::SiteId;
    use cheops_store::{BlobWriter, Blobs, Claim, StoreOptions};
    use futures_util::{StreamExt, stream};

    use super::*;
    use crate::ports::StoredBody;
    use cheops_services::body::Arriving;

    const MIB: u64 = 1024 * 1024;

    struct Kit {
        blobs: Arc<dyn Blobs>,
        bodies: Arc<dyn BodyStore>,
        dir: tempfile::TempDir,
    }

    /// A real one: what is begun and not finished is looked for on the disk.
    struct KitStore(Arc<dyn Blobs>);

    impl BodyStore for KitStore {
        fn create(&self) -> Result<Box<dyn BodyWriter>, BodyError> {
            Ok(Box::new(KitWriter(self.0.create()?)))
        }
    }

    struct KitWriter(Box<dyn BlobWriter>);

    impl Write for KitWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    impl BodyWriter for KitWriter {
        fn finish(self: Box<Self>) -> Result<StoredBody, BodyError> {
            let stored = self.0.finish()?;
            Ok(StoredBody { blob: stored.id, size: stored.size, pin: Arc::new(stored.pin) })
        }
    }

    fn kit() -> Kit {
        let dir = tempfile::tempdir().unwrap();
        let (claim, site) = (Claim::on(dir.path()).unwrap(), SiteId::new("paris").unwrap());
        let opened = claim.open(&site, || 1, StoreOptions::default()).unwrap();
        let bodies = Arc::new(KitStore(opened.blobs.clone()));
        Kit { blobs: opened.blobs, bodies, dir }
    }

    impl Kit {
        /// What is left on the disk of what was begun.
        fn drafts(&self) -> usize {
            std::fs::read_dir(self.dir.path().join("blobs/tmp")).unwrap().count()
        }
    }

    /// A body of that many mebibytes that does not say how long it is.
    fn streamed(mebibytes: usize) -> OutgoingBody {
        let piece = || Ok::<_, io::Error>(Bytes::from(vec![7; MIB as usize]));
        let pieces = stream::iter((0..mebibytes).map(move |_| piece()));
        OutgoingBody::once(Arriving::FromPeer(axum::body::Body::from_stream(pieces)))
    }

    #[tokio::test]
    async fn a_body_is_a_file_only_if_it_is_too_long_for_its_operation() {
        let kit = kit();
        let reserve = Reserve::new(|| u64::MAX, 0);
        let pieces = |lengths: &[usize]| {
            let pieces: Vec<_> =
                lengths.iter().map(|n| Ok::<_, io::Error>(Bytes::from(vec![7; *n]))).collect();
            OutgoingBody::once(Arriving::FromPeer(axum::body::Body::from_stream(stream::iter(
                pieces,
            ))))
        };
        let longest = MAX_INLINE_BODY_BYTES;
        assert!(keep(&kit.bodies, &reserve, SLOWEST, pieces(&[0, 0])).await.unwrap().is_none());
        for (lengths, is_file) in [
            (&[longest][..], false),
            (&[1, 0, longest - 1], false),
            (&[longest, 1], true),
            (&[1, longest, 1], true),
            (&[longest + 1], true),
        ] {
            let kept =
                keep(&kit.bodies, &reserve, SLOWEST, pieces(lengths)).await.unwrap().unwrap();
            let content = vec![7; lengths.iter().sum()];
            assert_eq!(kept.file, FileRef::of("body", &content), "{lengths:?}");
            assert_eq!(kit.blobs.contains(&kept.file.blob), is_file, "{lengths:?}");
            match kept.place {
                BodyPlace::Inline(inline) => assert_eq!(*inline, content),
                BodyPlace::File(_) => assert!(is_file, "{lengths:?}"),
            }
            assert_eq!(kit.drafts(), 0, "{lengths:?}");
        }
    }

    #[tokio::test]
    async fn a_body_that_would_eat_the_reserve_is_refused_before_and_while_it_comes() {
        let kit = kit();
        let plenty = Reserve::new(|| u64::MAX, 0);
        let kept = keep(&kit.bodies, &plenty, SLOWEST, streamed(8)).await.unwrap().unwrap();
        assert_eq!(kept.file.size, 8 * MIB);
        drop(kept);

        let says_how_long = OutgoingBody::whole(vec![7; 8 * MIB as usize].into());
        for body in [says_how_long, streamed(8)] {
            // What is written takes room, as on a disk.
            let left = AtomicU64::new(4 * MIB);
            let little = Reserve::new(move || left.fetch_sub(MIB, Ordering::Relaxed) - MIB, 0);
            let refused = keep(&kit.bodies, &little, SLOWEST, body).await.unwrap_err();
            assert!(matches!(refused, NotKept::NoRoom(_)), "{refused}");
            assert_eq!(kit.drafts(), 0, "nothing of it stays");
        }
    }

    #[tokio::test]
    async fn a_body_that_trickles_is_not_waited_for() {
        let kit = kit();
        let reserve = Reserve::new(|| u64::MAX, 0);
        let pace = Pace { bytes: 100, within: Duration::from_millis(300) };
        // It moves on all the time, and never brings enough.
        let trickle = stream::repeat(()).then(|()| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok::<_, io::Error>(Bytes::from_static(b"x"))
        });
        let trickle =
            OutgoingBody::once(Arriving::FromPeer(axum::body::Body::from_stream(trickle)));
        let refused = keep(&kit.bodies, &reserve, pace, trickle).await.unwrap_err();
        assert!(matches!(refused, NotKept::TooSlow(_)), "{refused}");
        assert_eq!(kit.drafts(), 0, "nothing of it stays");
    }
}
