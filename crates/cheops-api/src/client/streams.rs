//! Answers that go on: one JSON document a line, or server-sent events.

use std::marker::PhantomData;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

use super::error::{Cause, ClientError};
use super::lines::LineCutter;
use super::sse::{EventReader, ServerEvent};
use crate::types::{Change, NumberedChange, TimedChange};

/// A line can hold the output of a command, escaped.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// What arrives, with a limit on silence.
struct ArrivingStream {
    url: String,
    body: Incoming,
    silence: Duration,
}

impl ArrivingStream {
    async fn piece(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            let frame = tokio::time::timeout(self.silence, self.body.frame()).await;
            let frame = frame.map_err(|_elapsed| ClientError::TimedOut {
                url: self.url.clone(),
                limit: self.silence,
            })?;
            let Some(frame) = frame.transpose().map_err(|error| self.broke_off(error))? else {
                return Ok(None);
            };
            // Trailers say nothing to us.
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
    }

    fn broke_off(&self, cause: impl Into<Cause>) -> ClientError {
        ClientError::BrokeOff { url: self.url.clone(), source: cause.into() }
    }

    fn broken(&self, cause: impl Into<Cause>) -> ClientError {
        ClientError::Broken { url: self.url.clone(), source: cause.into() }
    }
}

/// Documents as they arrive, one a line.
pub struct Lines<T> {
    arriving: ArrivingStream,
    cutter: LineCutter,
    kind: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Lines<T> {
    pub(super) fn new(url: String, body: Incoming, silence: Duration) -> Self {
        let arriving = ArrivingStream { url, body, silence };
        Self { arriving, cutter: LineCutter::new(MAX_LINE_BYTES), kind: PhantomData }
    }

    /// The next one; none when all is said. Dropping this call loses nothing that arrived.
    pub async fn next(&mut self) -> Result<Option<T>, ClientError> {
        loop {
            let line = self.cutter.next_line().map_err(|error| self.arriving.broken(error))?;
            if let Some(line) = line {
                if !line.trim_ascii().is_empty() {
                    return self.read(&line).map(Some);
                }
                continue;
            }
            let Some(piece) = self.arriving.piece().await? else { break };
            self.cutter.push(&piece);
        }
        match self.cutter.rest() {
            Some(rest) => self.read(&rest).map(Some),
            None => Ok(None),
        }
    }

    fn read(&self, line: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(line).map_err(|error| self.arriving.broken(error))
    }
}

/// Changes as they happen.
pub struct Changes {
    arriving: ArrivingStream,
    cutter: LineCutter,
    reader: EventReader,
}

impl Changes {
    pub(super) fn new(url: String, body: Incoming, silence: Duration) -> Self {
        let arriving = ArrivingStream { url, body, silence };
        let (cutter, reader) = (LineCutter::new(MAX_LINE_BYTES), EventReader::new(MAX_LINE_BYTES));
        Self { arriving, cutter, reader }
    }

    /// The next one; none when the agent ends the feed. Events that this version does not know are
    /// passed over. Dropping this call loses nothing that arrived.
    pub async fn next(&mut self) -> Result<Option<NumberedChange>, ClientError> {
        loop {
            let line = self.cutter.next_line().map_err(|error| self.arriving.broken(error))?;
            let Some(line) = line else {
                let Some(piece) = self.arriving.piece().await? else { return Ok(None) };
                self.cutter.push(&piece);
                continue;
            };
            let line = str::from_utf8(&line).map_err(|error| self.arriving.broken(error))?;
            let event = self.reader.line(line).map_err(|error| self.arriving.broken(error))?;
            match event {
                Some(event) if Change::NAMES.contains(&event.name.as_str()) => {
                    return self.read(&event).map(Some);
                }
                _ => {}
            }
        }
    }

    fn read(&self, event: &ServerEvent) -> Result<NumberedChange, ClientError> {
        let id = event
            .id
            .parse()
            .map_err(|error: std::num::ParseIntError| self.arriving.broken(error))?;
        let change = serde_json::from_str(&event.data);
        let TimedChange { at, change, .. } = change.map_err(|error| self.arriving.broken(error))?;
        Ok(NumberedChange { id, at, change })
    }
}
