//! Operations: one change each, immutable from the moment they are accepted.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{BlobId, OperationId, OperationType, ResourceId, ServiceRef, SiteId, Stamp};
use crate::config::Config;

/// One change to one resource, as its receiving site recorded it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Unique for ever; also names the receiving site.
    pub id: OperationId,
    /// What it changes.
    pub resource: ResourceId,
    /// Its place in the order: what is claimed, or later where its past demands it.
    pub stamp: Stamp,
    /// When, as the receiving site's hybrid clock claims.
    pub claimed: Stamp,
    /// The resource's heads it was made on: with their own parents, its causal past.
    pub parents: Vec<OperationId>,
    /// Its type, by which the matrix decides.
    pub kind: OperationType,
    /// What to do at each site.
    pub payload: Payload,
    /// Whether it took the place of the list it was made on.
    pub replaces: Replaces,
    /// Where the resource lives and how it resolves, where this operation says so anew.
    pub declares: Option<Arc<Declaration>>,
    /// Resources that must have taken effect at a site before this runs there.
    pub needs: BTreeSet<ResourceId>,
    /// Who asked for it, where that is known.
    pub asked_by: Option<Asker>,
}

/// Who asked for something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Asker {
    /// As that site knows them: a user of its machine, the holder of a token.
    pub principal: String,
    /// The site that was asked.
    pub site: SiteId,
}

/// A place in the total order of operations: by stamp, then by site, which extends causality.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The stamp decides first.
    pub stamp: Stamp,
    /// Equal stamps are told apart by the site's name (then incarnation and number).
    pub id: OperationId,
}

impl Operation {
    /// Its place in the total order.
    pub fn position(&self) -> Position {
        Position { stamp: self.stamp, id: self.id.clone() }
    }

    /// The files it needs at every site.
    pub fn files(&self) -> &[FileRef] {
        match &self.payload {
            Payload::Shell { files, .. } => files,
            Payload::Http { body, .. } => body.as_slice(),
        }
    }

    /// How it speaks of the resource, if that is one of a service.
    pub fn service_ref(&self) -> Option<(&str, &ServiceRef)> {
        match &self.payload {
            Payload::Http { service, service_ref, .. } => Some((service, service_ref.as_deref()?)),
            Payload::Shell { .. } => None,
        }
    }

    /// About how many bytes it takes when sent, without its files' content.
    pub(super) fn size(&self) -> usize {
        const PARENT: usize = 160;
        const RULE: usize = 300;
        let payload = match &self.payload {
            Payload::Shell { command, .. } => command.len(),
            Payload::Http { service, method, path, headers, service_ref, body: _ } => {
                let names = service_ref.as_ref().map_or(0, |service_ref| {
                    service_ref.meta_id.as_str().len() + service_ref.collection.len() + PARENT
                });
                let headers: usize = headers.iter().map(Header::size).sum();
                service.len() + method.len() + path.len() + headers + names
            }
        };
        let files: usize = self.files().iter().map(|file| 64 + file.name.len()).sum();
        let declares = self.declares.as_ref().map_or(0, |declared| {
            let commands = declared.config.as_ref().map_or(0, |config| config.size());
            declared.sites.len() * PARENT + RULE + commands
        });
        let needs: usize = self.needs.iter().map(|resource| 8 + resource.as_str().len()).sum();
        let asker = self.asked_by.as_ref().map_or(0, |asker| PARENT + asker.principal.len());
        payload + files + declares + needs + asker + self.parents.len() * PARENT
    }
}

/// Whether an operation replaces its causal past. The receiving site decides this once, by the
/// matrix entry against the last operation of the list as it saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Replaces {
    /// It adds to what was there.
    Nothing,
    /// It rules out its whole causal past.
    Past,
    /// The same, by the operator's word (`force`), and it clears the resource's errors.
    PastByForce,
}

impl Replaces {
    /// Whether the causal past is ruled out.
    pub fn past(self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// Where a resource lives and how its operations are resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// The sites that hold the resource.
    pub sites: BTreeSet<SiteId>,
    /// How conflicts are settled, where this is said anew; the last word in total order holds.
    pub config: Option<Arc<Config>>,
}

/// What to do at a site to carry out an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Payload {
    /// Run a shell command.
    Shell {
        /// The command line, with `{name}` standing for the path of a file sent along.
        command: String,
        /// Files sent along.
        files: Vec<FileRef>,
    },
    /// Send a request to a service of the site's own application instance.
    Http {
        /// Which service.
        service: String,
        /// `PUT`, `POST`, ...
        method: String,
        /// Path and query.
        path: String,
        /// Headers to send.
        headers: Vec<Header>,
        /// The body's content, where there is one.
        body: Option<FileRef>,
        /// How it speaks of the resource, if each site's service may have its own id for it.
        service_ref: Option<Box<ServiceRef>>,
    },
}

impl Payload {
    /// A shell command without files.
    pub fn shell(command: impl Into<String>) -> Self {
        Self::Shell { command: command.into(), files: Vec::new() }
    }

    /// One line that says what it does, for people.
    pub fn summary(&self) -> String {
        match self {
            Self::Shell { command, .. } => command.clone(),
            Self::Http { service, method, path, .. } => {
                format!("{method} {service}{}", shown_path(path))
            }
        }
    }
}

/// What is shown of a path and its query: whoever may look at operations need not be the one who
/// made them, and values of a query may be tokens. So their names are shown, and no values.
#[must_use]
pub fn shown_path(path: &str) -> Cow<'_, str> {
    const HIDDEN: &str = "…";
    let Some((path, query)) = path.split_once('?') else { return path.into() };
    let shown = query.split('&').map(|part| match part.split_once('=') {
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None if part.is_empty() => String::new(),
        // It may be a name as well as a value.
        None => HIDDEN.to_owned(),
    });
    format!("{path}?{}", shown.collect::<Vec<_>>().join("&")).into()
}

/// One HTTP header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Header {
    /// About how many bytes it takes when sent: never less.
    pub(super) fn size(&self) -> usize {
        const LENGTHS: usize = 8;
        LENGTHS + self.name.len() + self.value.len()
    }
}

/// A file that travels with an operation; its content is stored once, by hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// The placeholder's name.
    pub name: String,
    /// The content.
    pub blob: BlobId,
    /// Its size in bytes.
    pub size: u64,
}
