//! What comes with a request: forms with files. Files go to the disk as they arrive and are never
//! whole in memory.

use std::collections::BTreeMap;
use std::io::Write;

use axum::extract::multipart::{Field, Multipart, MultipartError};
use cheops_core::model::FileRef;
use cheops_store::{BlobWriter, Blobs, Pin};

use super::refusal::Refused;
use crate::config::{meant, shortened};

/// How long one text field may be.
const LONGEST_FIELD: usize = 1024 * 1024;
const MOST_PARTS: usize = 256;

/// A form, taken in whole.
#[derive(Debug, Default)]
pub(super) struct Form {
    fields: BTreeMap<String, String>,
    pub(super) files: Vec<FileRef>,
    /// Keep the files here until the operation that needs them is durable.
    pub(super) pins: Vec<Pin>,
}

impl Form {
    /// Takes in a form. These parts are text, whatever they say of themselves; of the others,
    /// those with a file name are files.
    pub(super) async fn read(
        mut form: Multipart,
        blobs: &Blobs,
        texts: &[&str],
    ) -> Result<Self, Refused> {
        let mut read = Self::default();
        let mut parts = 0;
        while let Some(field) = form.next_field().await.map_err(|error| broken(&error))? {
            parts += 1;
            if parts > MOST_PARTS {
                return Err(Refused::too_large(format!("more than {MOST_PARTS} parts")));
            }
            let name = field.name().unwrap_or_default().to_owned();
            if !texts.contains(&name.as_str()) && field.file_name().is_some() {
                read.take_file(name, field, blobs).await?;
            } else {
                read.take_text(name, field).await?;
            }
        }
        Ok(read)
    }

    async fn take_text(&mut self, name: String, mut field: Field<'_>) -> Result<(), Refused> {
        let mut bytes = Vec::new();
        while let Some(chunk) = field.chunk().await.map_err(|error| broken(&error))? {
            if bytes.len() + chunk.len() > LONGEST_FIELD {
                let detail = format!("`{name}` is longer than {LONGEST_FIELD} bytes");
                return Err(Refused::too_large(detail));
            }
            bytes.extend_from_slice(&chunk);
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| Refused::bad("bad form", format!("`{name}` is not UTF-8 text")))?;
        match self.fields.insert(name.clone(), text) {
            None => Ok(()),
            Some(_) => Err(Refused::bad("bad form", format!("`{name}` is given twice"))),
        }
    }

    async fn take_file(
        &mut self,
        name: String,
        mut field: Field<'_>,
        blobs: &Blobs,
    ) -> Result<(), Refused> {
        // The original's clients give every file the same field name; the file's own tells more.
        let own = field.file_name().map(str::to_owned).filter(|own| !own.is_empty());
        let name = own.unwrap_or(name);
        if self.files.iter().any(|file| file.name == name) {
            let detail = format!("two files are called `{name}`");
            return Err(Refused::bad("bad form", detail));
        }
        let mut writer = blobs.create()?;
        while let Some(chunk) = field.chunk().await.map_err(|error| broken(&error))? {
            writer = blocking(move || append(writer, &chunk)).await?;
        }
        let stored = blocking(move || writer.finish().map_err(Refused::from)).await?;
        self.files.push(FileRef { name, blob: stored.id, size: stored.size });
        self.pins.push(stored.pin);
        Ok(())
    }

    /// A text that must be there.
    pub(super) fn take(&mut self, name: &str) -> Result<String, Refused> {
        self.take_optional(name).ok_or_else(|| {
            Refused::bad("bad form", format!("`{name}` is missing"))
                .hint("send multipart/form-data, one part per field")
        })
    }

    /// Refuses texts that were not asked for: a name with a slip in it would be dropped, and with it
    /// what it says.
    pub(super) fn end(&self, texts: &[&str]) -> Result<(), Refused> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(name) => {
                let detail = format!("unknown part `{}`; {}", shortened(name), meant(name, texts));
                Err(Refused::bad("bad form", detail))
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
    blobs: &Blobs,
    name: &str,
    text: String,
) -> Result<(FileRef, Pin), Refused> {
    let writer = blobs.create()?;
    let stored = blocking(move || append(writer, text.as_bytes())?.finish().map_err(Refused::from));
    let stored = stored.await?;
    Ok((FileRef { name: name.into(), blob: stored.id, size: stored.size }, stored.pin))
}

fn append(mut writer: BlobWriter, bytes: &[u8]) -> Result<BlobWriter, Refused> {
    match writer.write_all(bytes) {
        Ok(()) => Ok(writer),
        Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            Err(crate::driver::NotDurable::Stuck(error.to_string()).into())
        }
        Err(error) => Err(Refused::broken_disk(&error)),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refused> + Send + 'static,
) -> Result<T, Refused> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|_| Err(crate::driver::Stopped.into()))
}

fn broken(error: &MultipartError) -> Refused {
    Refused::bad("bad form", error.body_text())
}
