//! What a command reads, and where what it prints goes.

use std::io;
use std::string::FromUtf8Error;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cheops_core::causes;
use cheops_core::model::{Fingerprint, Output};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;

use super::capture::{self, Capture};
use super::content::Keeping;
use super::shell::CommandEnding;

/// A list of smaller steps may be longer than what is kept of an output.
const LIST_BYTES: usize = 1024 * 1024;

/// What a command reads.
pub(super) enum Input {
    Nothing,
    Bytes(Bytes),
    Pieces(mpsc::Receiver<io::Result<Bytes>>),
}

/// What is made of what a command prints.
pub(super) enum Prints {
    /// Its output, with its errors among it in their order.
    Output,
    /// A list to be read by a program: errors must not be among it.
    List,
    /// A document of at most so many bytes, all of it or nothing.
    Document(usize),
    /// A program's answer of at most so many bytes, all of it or nothing.
    Answer(usize),
    /// A state of at most so many bytes, all of it or nothing: as it stands in JSON, a text, or
    /// `{"base64": …}` if it is none.
    JsonText(usize),
    /// A state to be kept; its errors are its output.
    State(Keeping),
    /// A state of which the fingerprint is wanted, if it is no longer than this; and which is to be kept as
    /// well, if there is a way.
    Fingerprint(u64, Option<Keeping>),
}

/// Where what is printed apart goes.
pub(super) enum Sink {
    Nowhere,
    List(Capture),
    /// And what is said of one that is too long.
    Document(Capture, &'static str),
    JsonText(Capture),
    State(Keeping),
    Fingerprint(Box<Fingerprinting>),
}

/// A state that is read for its fingerprint.
pub(super) struct Fingerprinting {
    hasher: blake3::Hasher,
    room: u64,
    size: u64,
    keeping: Option<Keeping>,
}

impl Fingerprinting {
    async fn take(&mut self, piece: &[u8]) -> Result<(), String> {
        let length = piece.len() as u64;
        self.room = self.room.checked_sub(length).ok_or("the state is larger than the limit")?;
        self.size += length;
        self.hasher.update(piece);
        if let Some(mut keeping) = self.keeping.take() {
            match keeping.take(piece).await {
                Ok(()) => self.keeping = Some(keeping),
                Err(why) => not_kept(&why),
            }
        }
        Ok(())
    }

    /// The fingerprint; and the size, if the state is kept.
    async fn end(self) -> Output {
        let found = Fingerprint(*self.hasher.finalize().as_bytes());
        let kept = match self.keeping {
            Some(keeping) => {
                keeping.finish().await.map_err(|error| not_kept(&causes(&error))).is_ok()
            }
            None => false,
        };
        Output::whole(if kept { format!("{found} {}", self.size) } else { found.to_string() })
    }
}

/// What was read counts all the same.
fn not_kept(why: &str) {
    tracing::warn!(why, "a state cannot be kept in the place of history, which stays long");
}

impl Sink {
    pub(super) fn new(prints: Prints) -> Self {
        match prints {
            Prints::Output => Self::Nowhere,
            Prints::List => Self::List(Capture::new(LIST_BYTES)),
            Prints::Document(limit) => {
                Self::Document(Capture::new(limit), "it is longer than what can be merged")
            }
            Prints::Answer(limit) => {
                Self::Document(Capture::new(limit), "it answered with more than is read (64 KiB)")
            }
            Prints::JsonText(limit) => Self::JsonText(Capture::new(limit)),
            Prints::State(keeping) => Self::State(keeping),
            Prints::Fingerprint(room, keeping) => {
                let hasher = blake3::Hasher::new();
                Self::Fingerprint(Box::new(Fingerprinting { hasher, room, size: 0, keeping }))
            }
        }
    }

    pub(super) async fn take_in(&mut self, from: Option<&pipe::Receiver>) -> Result<(), String> {
        match (self, from) {
            (Self::List(list) | Self::Document(list, _) | Self::JsonText(list), Some(from)) => {
                list.drain(from).await;
                Ok(())
            }
            (Self::State(keeping), Some(from)) => {
                let mut chunk = capture::chunk();
                loop {
                    match capture::next(from, &mut chunk).await {
                        Ok(0) => return Ok(()),
                        Ok(read) => keeping.take(&chunk[..read]).await?,
                        Err(error) => return Err(causes(&error)),
                    }
                }
            }
            (Self::Fingerprint(state), Some(from)) => {
                let mut chunk = capture::chunk();
                loop {
                    match capture::next(from, &mut chunk).await {
                        Ok(0) => return Ok(()),
                        Ok(read) => state.take(&chunk[..read]).await?,
                        Err(error) => return Err(causes(&error)),
                    }
                }
            }
            _ => Ok(()),
        }
    }

    /// Makes an ending of it.
    pub(super) async fn end(self, code: i32, printed: Capture, held: bool) -> CommandEnding {
        let output = match self {
            Self::Nowhere => printed.into_output(),
            Self::List(mut list) => {
                if code != 0 {
                    let errors = printed.into_output().text;
                    tracing::warn!(
                        code,
                        errors,
                        "a program was asked for smaller steps and failed"
                    );
                }
                if held {
                    list.cut_off();
                }
                list.into_output()
            }
            Self::Document(..) | Self::JsonText(_) if code != 0 => printed.into_output(),
            Self::Document(..) | Self::JsonText(_) if held => {
                let reason = "another process still held its output when it had ended";
                return CommandEnding::Broken(reason.to_owned());
            }
            Self::Document(document, too_long) => match document.into_whole().map(text_of) {
                Some(Ok(text)) => Output::whole(text),
                Some(Err(_)) => return CommandEnding::Broken("it is not text (UTF-8)".to_owned()),
                None => return CommandEnding::Broken(too_long.to_owned()),
            },
            Self::JsonText(state) => match state.into_whole() {
                Some(bytes) => Output::whole(in_json(bytes)),
                None => {
                    let reason = "it is longer than what a program is given (2 MiB)";
                    return CommandEnding::Broken(reason.to_owned());
                }
            },
            Self::State(keeping) if code != 0 || held => {
                let _ = keeping.abandon().await;
                if held && code == 0 {
                    let reason = "another process still held its output when it had ended";
                    return CommandEnding::Broken(format!("the state was not kept: {reason}"));
                }
                printed.into_output()
            }
            Self::State(keeping) => match keeping.finish().await {
                Ok(()) => printed.into_output(),
                Err(error) => {
                    let why = causes(&error);
                    return CommandEnding::Broken(format!("the state was not kept: {why}"));
                }
            },
            Self::Fingerprint(_) if held && code == 0 => {
                let reason = "another process still held its output when it had ended";
                return CommandEnding::Broken(reason.to_owned());
            }
            Self::Fingerprint(_) if code != 0 => printed.into_output(),
            Self::Fingerprint(state) => state.end().await,
        };
        CommandEnding::Exited { code, output }
    }

    /// The disk knows better why it took no more.
    pub(super) async fn reason(self, reason: String) -> String {
        match self {
            Self::State(keeping) => {
                let why = keeping.abandon().await.map_or(reason, |error| causes(&error));
                format!("the state was not kept: {why}")
            }
            Self::Nowhere
            | Self::List(_)
            | Self::Document(..)
            | Self::JsonText(_)
            | Self::Fingerprint(_) => reason,
        }
    }
}

fn text_of(bytes: Vec<u8>) -> Result<String, Vec<u8>> {
    String::from_utf8(bytes).map_err(FromUtf8Error::into_bytes)
}

/// A state as it stands in JSON. One that is no text is no text at any site.
fn in_json(bytes: Vec<u8>) -> String {
    match text_of(bytes) {
        Ok(text) => Value::from(text).to_string(),
        Err(bytes) => serde_json::json!({ "base64": STANDARD.encode(bytes) }).to_string(),
    }
}

/// Gives a command what it reads. One that does not care to read it all is free to.
pub(super) async fn feed(stdin: Option<ChildStdin>, input: Input) -> Result<(), String> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    match input {
        Input::Nothing => {}
        Input::Bytes(bytes) => {
            let _ = stdin.write_all(&bytes).await;
        }
        Input::Pieces(mut pieces) => {
            while let Some(piece) = pieces.recv().await {
                let unread = |error| format!("its input could not be read: {}", causes(&error));
                let piece = piece.map_err(unread)?;
                if stdin.write_all(&piece).await.is_err() {
                    break;
                }
            }
        }
    }
    Ok(())
}
