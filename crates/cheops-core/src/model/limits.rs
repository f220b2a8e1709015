//! How much of everything one entry may hold, whoever wrote it.
//!
//! What a user hands in and what another site sends meet the same limits: a site that was taken
//! over, or that runs another program, can make others hold no more than their own users could.
//! All of it is far beyond what is of use, so that no honest entry is ever refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    Declaration, Entry, EntryBody, FileRef, Header, IdMap, MAX_EDIT_BYTES, Operation,
    OperationType, Outcome, Payload,
};
use super::{Reply, Status};
use crate::config::{Config, ConfigErrors};

/// The longest command of an operation, in bytes. What a shell takes is less; that is told by the
/// site which runs it.
pub const MAX_COMMAND_BYTES: usize = 2 * 1024 * 1024;
/// How many files may come with an operation.
pub const MAX_FILES: usize = 256;
/// The longest name of a file, service or method, in bytes.
pub const MAX_NAME_BYTES: usize = 1024;
/// The longest path with its query, in bytes.
pub const MAX_PATH_BYTES: usize = 64 * 1024;
/// How many headers a request may have, or an answer that is kept.
pub const MAX_HEADERS: usize = 1024;
/// How long the names and values of its headers may be together, in bytes.
pub const MAX_HEADER_BYTES: usize = 1024 * 1024;
/// On how many sites a resource may live.
pub const MAX_SITES: usize = 1024;
/// On how many heads an operation may be made: sites may have had several incarnations.
pub const MAX_PARENTS: usize = 4 * MAX_SITES;
/// The longest output of a reply, in bytes: what a site may be told to keep, and as much again for
/// what it has to say itself.
pub const MAX_OUTPUT_BYTES: usize = 8 * 1024 * 1024;
/// In how many smaller steps an operation may be run.
pub const MAX_STEPS: u32 = 10_000;

/// How many resources an operation may need.
const MAX_NEEDS: usize = 1024;
/// The longest name of who asked, in bytes.
const MAX_PRINCIPAL_BYTES: usize = 1024;
/// How much a later version may say beside an entry.
const MAX_EXTENSIONS: usize = 64;
/// With as much room for what is said beside an edit.
const MAX_EXTENSION_BYTES: usize = MAX_EDIT_BYTES + 64 * 1024;

/// What no user could have handed in, and no site have written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverLimit {
    /// More of something than there may be.
    #[error("{what}: {found}; at most {limit} are allowed")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// How much there is.
        found: usize,
        /// How much there may be.
        limit: usize,
    },
    /// A type that is not for users.
    #[error("types like `{0}` are kept for Cheops' own operations")]
    ReservedType(OperationType),
    /// A resource that would live nowhere.
    #[error("it names no site")]
    NoSites,
    /// More steps done than there were.
    #[error("{done} of {of} steps cannot be done")]
    Steps {
        /// Said to be done.
        done: u32,
        /// Said to be there.
        of: u32,
    },
    /// A config that no document could say.
    #[error(transparent)]
    Config(#[from] Arc<ConfigErrors>),
}

impl Entry {
    /// Whether it holds no more than any user's could, and nothing that makes no sense by itself.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check_limits(&self) -> Result<(), OverLimit> {
        at_most("what a later version says beside it", self.extra.len(), MAX_EXTENSIONS)?;
        let said = |it: &super::Extension| it.name.len() + it.value.len();
        let bytes = self.extra.iter().map(said).sum();
        at_most("bytes of what a later version says beside it", bytes, MAX_EXTENSION_BYTES)?;
        match &self.body {
            EntryBody::Operation(operation) => operation.check_limits(),
            EntryBody::Reply(reply) => reply.check_limits(),
        }
    }
}

impl Operation {
    /// The same of one operation.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check_limits(&self) -> Result<(), OverLimit> {
        at_most("parents", self.parents.len(), MAX_PARENTS)?;
        at_most("needed resources", self.needs.len(), MAX_NEEDS)?;
        let asker = self.asked_by.as_ref().map_or(0, |asker| asker.principal.len());
        at_most("bytes in the name of who asked", asker, MAX_PRINCIPAL_BYTES)?;
        if self.kind.is_reserved() && !self.kind.is_deletion() {
            return Err(OverLimit::ReservedType(self.kind.clone()));
        }
        self.payload.check_limits()?;
        self.declares.as_ref().map_or(Ok(()), |declared| declared.check_limits())
    }
}

impl Declaration {
    /// The same of what is said of a resource.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check_limits(&self) -> Result<(), OverLimit> {
        if self.sites.is_empty() {
            return Err(OverLimit::NoSites);
        }
        at_most("sites", self.sites.len(), MAX_SITES)?;
        self.config.as_ref().map_or(Ok(()), |config| check_config(config))
    }
}

impl IdMap {
    /// The same of what sites call a resource.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check_limits(&self) -> Result<(), OverLimit> {
        at_most("bytes of the service's name", self.service.len(), MAX_NAME_BYTES)?;
        at_most("bytes of the collection", self.collection.len(), MAX_PATH_BYTES)?;
        let local_ids = self.local_ids.as_ref().map_or(0, BTreeMap::len);
        // One for each incarnation of a site, of which there are no more than may be heads.
        at_most("local ids", local_ids, MAX_PARENTS)
    }
}

fn check_config(config: &Config) -> Result<(), OverLimit> {
    config.check().map_err(|errors| OverLimit::Config(Arc::new(errors)))
}

impl Payload {
    /// The same of what is to be done.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check_limits(&self) -> Result<(), OverLimit> {
        match self {
            Self::Shell { command, files } => {
                at_most("bytes of the command", command.len(), MAX_COMMAND_BYTES)?;
                at_most("files", files.len(), MAX_FILES)?;
                files.iter().try_for_each(check_file)
            }
            Self::Http { service, method, path, headers, body, service_ref } => {
                at_most("bytes of the service's name", service.len(), MAX_NAME_BYTES)?;
                at_most("bytes of the method", method.len(), MAX_NAME_BYTES)?;
                at_most("bytes of the path", path.len(), MAX_PATH_BYTES)?;
                let collection =
                    service_ref.as_ref().map_or(0, |service_ref| service_ref.collection.len());
                at_most("bytes of the collection", collection, MAX_PATH_BYTES)?;
                check_headers(headers)?;
                body.iter().try_for_each(check_file)
            }
        }
    }
}

impl Reply {
    /// The same of what a site says.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check_limits(&self) -> Result<(), OverLimit> {
        if let Status::Partial { done, of } = self.status
            && (done > of || of > MAX_STEPS)
        {
            return Err(OverLimit::Steps { done, of });
        }
        let Some(outcome) = &self.outcome else { return Ok(()) };
        at_most("bytes of output", outcome.text().len(), MAX_OUTPUT_BYTES)?;
        match outcome {
            Outcome::Answered { headers, .. } => check_headers(headers),
            _ => Ok(()),
        }
    }
}

fn check_file(file: &FileRef) -> Result<(), OverLimit> {
    at_most("bytes of a file's name", file.name.len(), MAX_NAME_BYTES)
}

fn check_headers(headers: &[Header]) -> Result<(), OverLimit> {
    at_most("headers", headers.len(), MAX_HEADERS)?;
    let bytes = headers.iter().map(|header| header.name.len() + header.value.len()).sum();
    at_most("bytes of headers", bytes, MAX_HEADER_BYTES)
}

fn at_most(what: &'static str, found: usize, limit: usize) -> Result<(), OverLimit> {
    if found > limit { Err(OverLimit::TooMuch { what, found, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{
        Act, Author, BlobId, EntryId, Incarnation, MetaId, OperationId, Output, Replaces,
        ResourceId, ServiceRef, SiteId, Stamp,
    };
    use super::*;
    use crate::config::{Concurrent, Hook, HookAction, HookEvent, HookRun, Resolution, Rule};

    fn id(n: u64) -> EntryId {
        let author = Author { site: SiteId::new("paris").unwrap(), incarnation: Incarnation(1) };
        EntryId { author, n }
    }

    fn operation() -> Operation {
        Operation {
            id: OperationId(id(9)),
            resource: ResourceId::new("x").unwrap(),
            stamp: Stamp::default(),
            claimed: Stamp::default(),
            parents: vec![OperationId(id(1))],
            kind: OperationType::new("set").unwrap(),
            payload: Payload::shell("true"),
            replaces: Replaces::Nothing,
            declares: Some(Arc::new(Declaration {
                sites: [SiteId::new("paris").unwrap()].into(),
                config: Some(Arc::new(Config::default())),
            })),
            needs: Default::default(),
            asked_by: None,
        }
    }

    fn file(name: &str) -> FileRef {
        FileRef { name: name.to_owned(), blob: BlobId([0; 32]), size: 1 }
    }

    fn http() -> (String, Vec<Header>, String) {
        ("/v1".to_owned(), Vec::new(), "/v1".to_owned())
    }

    fn request((path, headers, collection): (String, Vec<Header>, String)) -> Payload {
        let service_ref =
            ServiceRef { meta_id: MetaId::new("m").unwrap(), collection, act: Act::CreatesAs };
        Payload::Http {
            service: "image".to_owned(),
            method: "PUT".to_owned(),
            path,
            headers,
            body: Some(file("body")),
            service_ref: Some(Box::new(service_ref)),
        }
    }

    fn header(bytes: usize) -> Header {
        Header { name: "x".to_owned(), value: "y".repeat(bytes) }
    }

    fn declaring(config: Config) -> Operation {
        let sites: BTreeSet<_> = [SiteId::new("paris").unwrap()].into();
        let config = Some(Arc::new(config));
        Operation { declares: Some(Arc::new(Declaration { sites, config })), ..operation() }
    }

    /// What is said against an operation, if anything is.
    fn said(operation: &Operation) -> String {
        operation.check_limits().err().map(|over| over.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_any_user_may_hand_in_any_site_may_send() {
        for allowed in [
            operation(),
            Operation { kind: OperationType::deletion(), ..operation() },
            Operation { payload: Payload::shell("x".repeat(MAX_COMMAND_BYTES)), ..operation() },
            Operation { payload: request(http()), ..operation() },
            Operation { declares: None, parents: Vec::new(), ..operation() },
        ] {
            assert_eq!(said(&allowed), "");
        }
        for profile in crate::config::profiles() {
            assert_eq!(said(&declaring(profile.config.clone())), "", "{}", profile.name);
        }
    }

    #[test]
    fn an_operation_that_no_user_could_hand_in_is_refused_from_a_site_as_well() {
        let long = || "x".repeat(MAX_PATH_BYTES + 1);
        let site = |n: usize| SiteId::new(&format!("site{n}")).unwrap();
        let sites = |n: usize| {
            let declared = Declaration { sites: (0..n).map(site).collect(), config: None };
            Operation { declares: Some(Arc::new(declared)), ..operation() }
        };
        let paying = |payload| Operation { payload, ..operation() };
        let files = |files| Payload::Shell { command: "true".to_owned(), files };
        let cases = [
            (paying(Payload::shell("x".repeat(MAX_COMMAND_BYTES + 1))), "bytes of the command"),
            (paying(files(vec![file("f"); MAX_FILES + 1])), "files: 257; at most 256"),
            (paying(files(vec![file(&long())])), "a file's name"),
            (paying(request((long(), Vec::new(), String::new()))), "bytes of the path"),
            (paying(request(("/".into(), Vec::new(), long()))), "bytes of the collection"),
            (paying(request(("/".into(), vec![header(1); 1025], String::new()))), "headers: 1025"),
            (
                paying(request(("/".into(), vec![header(MAX_HEADER_BYTES)], String::new()))),
                "bytes of headers",
            ),
            (
                Operation { parents: vec![OperationId(id(1)); MAX_PARENTS + 1], ..operation() },
                "parents",
            ),
            (
                Operation { kind: OperationType::new("cheops.mine").unwrap(), ..operation() },
                "`cheops.mine` are kept",
            ),
            (sites(0), "names no site"),
            (sites(MAX_SITES + 1), "sites: 1025"),
        ];
        for (operation, why) in cases {
            assert!(said(&operation).contains(why), "{why}: {}", said(&operation));
        }
    }

    #[test]
    fn a_config_that_no_document_could_say_is_refused_from_a_site_as_well() {
        let kind = |name: &str| OperationType::new(name).unwrap();
        let rule = |rule| Resolution { rule, concurrent: Concurrent::ReplaceWins };
        let hook = |action| Hook {
            on: HookEvent::Failed,
            action,
            run: HookRun::EachSite,
            types: BTreeSet::new(),
        };
        let matrix = |pairs: &[(&str, &str, Rule)]| Config {
            matrix: pairs
                .iter()
                .map(|(a, b, said)| ((kind(a), kind(b)), rule(said.clone())))
                .collect(),
            ..Config::default()
        };
        let hooks = |hooks| Config { hooks, ..Config::default() };
        let command = |text: &str| hook(HookAction::Command(text.to_owned()));
        let many = (0..65).map(|n| (kind(&format!("t{n}")), Default::default())).collect();
        let cases = [
            (
                matrix(&[("a", "b", Rule::KeepOrder), ("b", "a", Rule::KeepOrder)]),
                "to agree with the other",
            ),
            (matrix(&[("a", "a", Rule::KeepOrder)]), "`a`"),
            (matrix(&[("cheops.delete", "a", Rule::TakeBoth)]), "`cheops.delete` is kept"),
            (matrix(&[("a", "b", Rule::Logic("no way".into()))]), "unknown result"),
            (Config { types: many, ..Config::default() }, "65 types"),
            (hooks(vec![command("true"); 33]), "33 hooks"),
            (hooks(vec![command("")]), "empty"),
            (hooks(vec![command(&"x".repeat(65_537))]), "65537 bytes"),
            (hooks(vec![command(&"x".repeat(40_000)); 32]), "1280000 bytes together"),
            (hooks(vec![hook(HookAction::Url("file:///etc/passwd".into()))]), "must begin with"),
        ];
        for (config, why) in cases {
            let said = said(&declaring(config));
            assert!(said.contains(why), "{why}: {said}");
        }
    }

    #[test]
    fn a_reply_holds_no_more_than_a_site_may_be_told_to_keep() {
        let reply = |status, outcome| Reply {
            id: id(9),
            stamp: Stamp::default(),
            operation: OperationId(id(1)),
            status,
            outcome,
        };
        let answered = |headers| Outcome::Answered {
            status: 200,
            headers,
            output: Output::default(),
            done: true,
            local_id: None,
        };
        let cases = [
            (Status::Ok, Some(Outcome::success("x".repeat(MAX_OUTPUT_BYTES))), ""),
            (Status::Partial { done: 1, of: 2 }, None, ""),
            (Status::Ok, Some(Outcome::success("x".repeat(MAX_OUTPUT_BYTES + 1))), "of output"),
            (
                Status::Ko,
                Some(Outcome::NotStarted { reason: "x".repeat(MAX_OUTPUT_BYTES + 1) }),
                "of output",
            ),
            (Status::Ok, Some(answered(vec![header(1); MAX_HEADERS + 1])), "headers"),
            (Status::Partial { done: 3, of: 2 }, None, "3 of 2 steps"),
            (Status::Partial { done: 0, of: MAX_STEPS + 1 }, None, "steps"),
        ];
        for (status, outcome, why) in cases {
            let reply = reply(status, outcome);
            let resource = ResourceId::new("x").unwrap();
            let entry =
                Entry::new(&resource, Default::default(), EntryBody::Reply(reply), Vec::new());
            match entry.check_limits() {
                Ok(()) => assert_eq!(why, "", "nothing was said"),
                Err(over) => assert!(!why.is_empty() && over.to_string().contains(why), "{over}"),
            }
        }
    }
}
