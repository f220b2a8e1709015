//! What comes with a request: forms with files. Files go to the disk as they arrive and are never
//! whole in memory; of texts, names and what stands between parts there is only so much.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use axum::extract::multipart::{Field, Multipart, MultipartError};
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_LENGTH;
use cheops_core::model::{BlobId, FileRef, MAX_FILES, MAX_NAME_BYTES};
use cheops_mesh::FilePin;
use cheops_proxy::{Promise, Reserve};
use cheops_store::{BlobWriter, Blobs};

use super::metered::{LONGEST_HEAD, Meter, metered};
use super::refusal::HttpRefusal;
use crate::config::{meant, shortened};

/// How long one text field may be.
const LONGEST_FIELD: usize = 1024 * 1024;
/// How long all of them may be together.
const ALL_TEXTS: usize = 2 * LONGEST_FIELD;
/// Files, and a few texts.
const MOST_PARTS: usize = MAX_FILES + 16;

/// Where files of requests go, and how much of them there is room for.
#[derive(Clone, Copy)]
pub(super) struct UploadRoom<'a> {
    pub(super) blobs: &'a dyn Blobs,
    pub(super) reserve: &'a Reserve,
}

/// The room for the files of one request. It is asked for with the first of them: a request without
/// any needs none.
struct PromisedRoom<'a> {
    room: UploadRoom<'a>,
    /// Of the whole request, as it says.
    length: Option<u64>,
    promise: Option<Promise>,
}

impl PromisedRoom<'_> {
    fn begin_file(&mut self) -> Result<Box<dyn BlobWriter>, HttpRefusal> {
        if self.promise.is_none() {
            self.promise = Some(self.room.reserve.promise(self.length)?);
        }
        Ok(self.room.blobs.create()?)
    }

    fn take(&mut self, bytes: usize) -> Result<(), HttpRefusal> {
        match &mut self.promise {
            Some(promise) => Ok(promise.take(bytes as u64)?),
            None => Ok(()),
        }
    }
}

/// A form, taken in whole.
#[derive(Debug, Default)]
pub(super) struct ReceivedForm {
    fields: BTreeMap<String, String>,
    text_bytes: usize,
    pub(super) files: Vec<FileRef>,
    /// Keep the files here until the operation that needs them is durable.
    pub(super) pins: Vec<FilePin>,
}

impl ReceivedForm {
    /// Takes in a form. These parts are text, whatever they say of themselves; of the others,
    /// those with a file name are files.
    pub(super) async fn read(
        request: Request,
        room: UploadRoom<'_>,
        texts: &[&str],
    ) -> Result<Self, HttpRefusal> {
        let length = request.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let mut room = PromisedRoom { room, length, promise: None };
        let (request, meter) = metered(request);
        let form = Multipart::from_request(request, &()).await;
        let form = form.map_err(|error| {
            let needed: Vec<_> = texts.iter().map(|text| format!("`{text}`")).collect();
            HttpRefusal::bad("bad form", error.body_text())
                .hint(format!("send multipart/form-data; its texts are {}", needed.join(", ")))
        })?;
        let read = Self::take_parts(form, &meter, &mut room, texts).await;
        if let Some(how) = meter.trickled() {
            return Err(HttpRefusal::too_slow(how));
        }
        if meter.is_over() {
            let detail = format!("more than {LONGEST_HEAD} bytes without the content of a part");
            return Err(HttpRefusal::too_large(detail));
        }
        read
    }

    async fn take_parts(
        mut form: Multipart,
        meter: &Meter,
        room: &mut PromisedRoom<'_>,
        texts: &[&str],
    ) -> Result<Self, HttpRefusal> {
        let mut read = Self::default();
        let mut parts = 0;
        while let Some(field) = form.next_field().await.map_err(|error| broken(&error))? {
            meter.went_on();
            parts += 1;
            if parts > MOST_PARTS {
                return Err(HttpRefusal::too_large(format!("more than {MOST_PARTS} parts")));
            }
            for name in [field.name(), field.file_name()].into_iter().flatten() {
                if name.len() > MAX_NAME_BYTES {
                    let detail = format!("a name is longer than {MAX_NAME_BYTES} bytes");
                    return Err(HttpRefusal::too_large(detail));
                }
            }
            let name = field.name().unwrap_or_default().to_owned();
            if !texts.contains(&name.as_str()) && field.file_name().is_some() {
                read.take_file(name, field, room, meter).await?;
            } else {
                read.take_text(name, field, meter).await?;
            }
        }
        Ok(read)
    }

    async fn take_text(
        &mut self,
        name: String,
        mut field: Field<'_>,
        meter: &Meter,
    ) -> Result<(), HttpRefusal> {
        let mut bytes = Vec::new();
        while let Some(chunk) = field.chunk().await.map_err(|error| broken(&error))? {
            meter.went_on();
            self.text_bytes += chunk.len();
            if self.text_bytes > ALL_TEXTS {
                let detail = format!("its texts are longer than {ALL_TEXTS} bytes together");
                return Err(HttpRefusal::too_large(detail));
            }
            if bytes.len() + chunk.len() > LONGEST_FIELD {
                let detail = format!("`{name}` is longer than {LONGEST_FIELD} bytes");
                return Err(HttpRefusal::too_large(detail));
            }
            bytes.extend_from_slice(&chunk);
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| HttpRefusal::bad("bad form", format!("`{name}` is not UTF-8 text")))?;
        match self.fields.insert(name.clone(), text) {
            None => Ok(()),
            Some(_) => Err(HttpRefusal::bad("bad form", format!("`{name}` is given twice"))),
        }
    }

    async fn take_file(
        &mut self,
        name: String,
        mut field: Field<'_>,
        room: &mut PromisedRoom<'_>,
        meter: &Meter,
    ) -> Result<(), HttpRefusal> {
        // The original's clients give every file the same field name; the file's own tells more.
        let own = field.file_name().map(str::to_owned).filter(|own| !own.is_empty());
        let name = own.unwrap_or(name);
        if self.files.iter().any(|file| file.name == name) {
            let detail = format!("two files are called `{name}`");
            return Err(HttpRefusal::bad("bad form", detail));
        }
        let mut writer = room.begin_file()?;
        while let Some(chunk) = field.chunk().await.map_err(|error| broken(&error))? {
            meter.went_on();
            room.take(chunk.len())?;
            writer = blocking(move || append(writer, &chunk)).await?;
        }
        let stored = blocking(move || writer.finish().map_err(HttpRefusal::from)).await?;
        self.files.push(FileRef { name, blob: stored.id, size: stored.size });
        self.pins.push(Arc::new(stored.pin));
        Ok(())
    }

    /// A text that must be there.
    pub(super) fn take(&mut self, name: &str) -> Result<String, HttpRefusal> {
        self.take_optional(name).ok_or_else(|| {
            HttpRefusal::bad("bad form", format!("`{name}` is missing"))
                .hint("send multipart/form-data, one part per field")
        })
    }

    /// Refuses texts that were not asked for: a name with a slip in it would be dropped, and with it
    /// what it says.
    pub(super) fn end(&self, texts: &[&str]) -> Result<(), HttpRefusal> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(name) => {
                let detail = format!("unknown part `{}`; {}", shortened(name), meant(name, texts));
                Err(HttpRefusal::bad("bad form", detail))
            }
        }
    }

    /// A text that may be missing or empty.
    pub(super) fn take_optional(&mut self, name: &str) -> Option<String> {
        self.fields.remove(name).filter(|text| !text.trim().is_empty())
    }
}

/// Stores a text as the content of a file.
pub(super) async fn store_text(
    blobs: &dyn Blobs,
    name: &str,
    text: String,
) -> Result<(FileRef, FilePin), HttpRefusal> {
    let writer = blobs.create()?;
    let stored =
        blocking(move || append(writer, text.as_bytes())?.finish().map_err(HttpRefusal::from));
    let stored = stored.await?;
    Ok((FileRef { name: name.into(), blob: stored.id, size: stored.size }, Arc::new(stored.pin)))
}

/// A short content that was just stored.
pub(super) async fn read_short(
    blobs: Arc<dyn Blobs>,
    id: BlobId,
) -> Result<Option<Vec<u8>>, HttpRefusal> {
    blocking(move || Ok(blobs.short(&id)?)).await
}

fn append(
    mut writer: Box<dyn BlobWriter>,
    bytes: &[u8],
) -> Result<Box<dyn BlobWriter>, HttpRefusal> {
    match writer.write_all(bytes) {
        Ok(()) => Ok(writer),
        Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            Err(crate::driver::NotDurable::Stuck(error.to_string()).into())
        }
        Err(error) => Err(HttpRefusal::broken_disk(&error)),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HttpRefusal> + Send + 'static,
) -> Result<T, HttpRefusal> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|_| Err(crate::driver::Stopped.into()))
}

fn broken(error: &MultipartError) -> HttpRefusal {
    HttpRefusal::bad("bad form", error.body_text())
}
