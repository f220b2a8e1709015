//! The text of a document, from a file or from standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use cheops_core::config::MAX_DOCUMENT_BYTES;

use crate::failure::Failure;

/// A text, and what to call it.
#[derive(Debug)]
pub(super) struct NamedText {
    pub(super) name: String,
    pub(super) text: String,
}

/// Reads a file, or standard input for `-`: never more than a document may have.
pub(super) fn read(path: &Path) -> Result<NamedText, Failure> {
    let (name, bytes) = if path == Path::new("-") {
        ("standard input".to_owned(), limited(io::stdin().lock()))
    } else {
        (path.display().to_string(), File::open(path).and_then(limited))
    };
    let bytes = bytes.map_err(|error| unreadable(&name, error))?;
    if bytes.len() > MAX_DOCUMENT_BYTES {
        return Err(too_long(&name));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::caller(format!("`{name}` is not text"))
            .because(error)
            .hint("a matrix is JSON or YAML, in UTF-8")
    })?;
    Ok(NamedText { name, text })
}

/// One byte more than allowed tells that there is too much.
fn limited(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_DOCUMENT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(name: &str, error: io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "`-` reads from standard input",
        io::ErrorKind::IsADirectory => "give a file, in JSON or YAML",
        _ => "give a file that can be read, or `-` for standard input",
    };
    Failure::caller(format!("cannot read `{name}`")).because(error).hint(hint)
}

fn too_long(name: &str) -> Failure {
    Failure::caller(format!("`{name}` is longer than {MAX_DOCUMENT_BYTES} bytes"))
        .hint("a matrix of every pair of 64 types fits into that; is it the right file?")
}
