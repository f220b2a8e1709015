//! Forms with files: read from disk as they are sent, never whole in memory.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

/// How much of a file is held at once.
const PIECE_BYTES: usize = 64 * 1024;

/// What a request carries.
pub(super) type Carried = UnsyncBoxBody<Bytes, io::Error>;

/// A file to send along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The placeholder that stands for it.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

/// Bytes that are there already.
pub(super) fn whole(bytes: impl Into<Bytes>) -> Carried {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// How much was sent, so that slow can be told from stuck.
#[derive(Debug, Clone, Default)]
pub(super) struct SentBytes(Arc<AtomicU64>);

impl SentBytes {
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A `multipart/form-data` body in the making.
pub(super) struct MultipartForm {
    boundary: String,
    pieces: VecDeque<FormPiece>,
}

enum FormPiece {
    Text(Bytes),
    File(PathBuf),
    Open(File),
}

impl MultipartForm {
    pub(super) fn new() -> Self {
        // Nobody who wrote the files could know it: the keys are random.
        let random = || RandomState::new().build_hasher().finish();
        let boundary = format!("cheops-{:016x}{:016x}", random(), random());
        Self { boundary, pieces: VecDeque::new() }
    }

    /// The `Content-Type` of the request.
    pub(super) fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={}", self.boundary)
    }

    pub(super) fn field(&mut self, name: &str, media_type: Option<&str>, value: &str) {
        let media_type = media_type.map(|kind| format!("Content-Type: {kind}\r\n"));
        let (boundary, name) = (&self.boundary, quoted(name));
        self.text(format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n{}\r\n{value}\r\n",
            media_type.unwrap_or_default()
        ));
    }

    pub(super) fn file(&mut self, upload: &Upload) {
        let (boundary, name) = (&self.boundary, quoted(&upload.name));
        self.text(format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; \
             filename=\"{name}\"\r\nContent-Type: application/octet-stream\r\n\r\n"
        ));
        self.pieces.push_back(FormPiece::File(upload.path.clone()));
        self.text("\r\n".to_owned());
    }

    fn text(&mut self, text: String) {
        self.pieces.push_back(FormPiece::Text(text.into()));
    }

    /// The body, and how much of it was sent.
    pub(super) fn finish(mut self) -> (Carried, SentBytes) {
        let end = format!("--{}--\r\n", self.boundary);
        self.text(end);
        let sent = SentBytes::default();
        let start = (self.pieces, sent.clone());
        let frames = stream::unfold(start, |(mut pieces, sent)| async move {
            let piece = next_piece(&mut pieces).await.transpose()?;
            if let Ok(bytes) = &piece {
                sent.add(bytes.len());
            }
            Some((piece.map(Frame::data), (pieces, sent)))
        });
        (StreamBody::new(frames).boxed_unsync(), sent)
    }
}

async fn next_piece(pieces: &mut VecDeque<FormPiece>) -> io::Result<Option<Bytes>> {
    while let Some(piece) = pieces.pop_front() {
        let mut file = match piece {
            FormPiece::Text(bytes) => return Ok(Some(bytes)),
            FormPiece::File(path) => File::open(&path).await?,
            FormPiece::Open(file) => file,
        };
        let mut bytes = BytesMut::with_capacity(PIECE_BYTES);
        if file.read_buf(&mut bytes).await? > 0 {
            pieces.push_front(FormPiece::Open(file));
            return Ok(Some(bytes.freeze()));
        }
    }
    Ok(None)
}

/// As browsers put names into forms.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_form_carries_fields_and_files_as_they_are() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let content = vec![b'x'; PIECE_BYTES * 2 + 1];
        std::io::Write::write_all(&mut file, &content).unwrap();
        let mut form = MultipartForm::new();
        form.boundary = "B".to_owned();
        form.field("operation", Some("application/json"), "{}");
        form.field("plain", None, "a\"b");
        form.file(&Upload { name: "f\"1".to_owned(), path: file.path().to_owned() });
        assert_eq!(form.content_type(), "multipart/form-data; boundary=B");
        let (body, sent) = form.finish();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let content = String::from_utf8(content).unwrap();
        expect_test::expect![[r#"
            --B
            Content-Disposition: form-data; name="operation"
            Content-Type: application/json

            {}
            --B
            Content-Disposition: form-data; name="plain"

            a"b
            --B
            Content-Disposition: form-data; name="f%221"; filename="f%221"
            Content-Type: application/octet-stream

            CONTENT
            --B--
        "#]]
        .assert_eq(&text.replace(&content, "CONTENT").replace("\r\n", "\n"));
        assert_eq!(sent.bytes(), text.len() as u64);
    }

    #[tokio::test]
    async fn a_file_that_is_gone_breaks_the_upload() {
        let mut form = MultipartForm::new();
        form.file(&Upload { name: "f".to_owned(), path: "/nowhere/at/all".into() });
        assert!(form.finish().0.collect().await.is_err());
    }

    #[test]
    fn no_two_forms_share_a_boundary() {
        assert_ne!(MultipartForm::new().boundary, MultipartForm::new().boundary);
    }
}
