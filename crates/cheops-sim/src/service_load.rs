//! What users do to services: images that each site's service names itself, albums with photos that
//! need them, and things whose ids the clients choose.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cheops_core::config::{self, Config};
use cheops_core::engine::{Submission, Ticket, WaitFor};
use cheops_core::model::{
    Act, BlobId, FileRef, Header, IdMap, MetaId, OperationType, Payload, ResourceId, ServiceRef,
    SiteId,
};

use crate::rng::Rng;

/// The name of the service.
pub(crate) const SERVICE: &str = "gallery";
/// The header that says what is in a body which is a file: its content is nowhere in a simulation.
pub(crate) const BODY: &str = "x-body";

/// What users know at a site: what its agent says is there.
pub type KnownIdMaps = BTreeMap<ResourceId, Arc<IdMap>>;

/// A kind of service, by what its users do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// The service chooses ids; large files below its things.
    Images,
    /// The same, and things below things.
    Albums,
    /// Clients choose ids.
    Keys,
}

/// Users of a service.
#[derive(Debug)]
pub struct ServiceLoad {
    /// Where its things live, as indexes into the world's sites.
    pub home: Vec<usize>,
    usage: Usage,
    sites: BTreeSet<SiteId>,
    config: Arc<Config>,
    number: usize,
    made: u64,
    things: u64,
}

/// More would take longer than it tells.
const MOST_THINGS: u64 = 14;

impl ServiceLoad {
    /// Users of a service on those sites.
    pub fn new(number: usize, usage: Usage, home: Vec<usize>) -> Self {
        let sites = home.iter().map(|site| crate::network::site_name(*site)).collect();
        let config = config::profile("http").map(|http| http.config.clone()).unwrap_or_default();
        Self { home, usage, sites, config: Arc::new(config), number, made: 0, things: 0 }
    }

    /// Where its things live.
    pub fn sites(&self) -> &BTreeSet<SiteId> {
        &self.sites
    }

    /// Something that a user might ask for at a site where these are known; with the things that
    /// it is below of, or speaks of.
    pub fn operation(&mut self, known: &KnownIdMaps, rng: &mut Rng) -> Submission {
        self.made += 1;
        let prefix = format!("{}{}", self.prefix(), self.number);
        let ours: Vec<_> = known.iter().filter(|(id, _)| id.as_str().contains(&prefix)).collect();
        let may_make = self.things < MOST_THINGS;
        if ours.is_empty() || (may_make && rng.chance(450)) {
            return self.creation(&ours, rng);
        }
        let (id, id_map) = *rng.pick(&ours);
        self.change(id, id_map, rng)
    }

    /// A thing in that collection, under an id that each site's service draws.
    pub fn thing(&self, name: &str, collection: &str, needs: Option<ResourceId>) -> Submission {
        let (names, body) = ((name, collection), format!("value={name}"));
        let mut made = self.request("POST", collection, name, names, "post", Act::Creates, body);
        made.needs.extend(needs);
        made
    }

    fn prefix(&self) -> &'static str {
        match self.usage {
            Usage::Images => "image",
            Usage::Albums => "album",
            Usage::Keys => "key",
        }
    }

    fn creation(&mut self, ours: &[(&ResourceId, &Arc<IdMap>)], rng: &mut Rng) -> Submission {
        self.things += 1;
        let mut body = self.body(rng);
        let albums: Vec<_> =
            ours.iter().filter(|(_, known)| known.collection == "/albums").collect();
        if self.usage == Usage::Keys {
            // Few names, so that two sites make the same.
            let name = format!("{}{}-{}", self.prefix(), self.number, rng.below(4));
            let resource = format!("{SERVICE}/keys/{name}");
            return if rng.chance(500) {
                body.push_str(&format!(";id={name}"));
                self.request(
                    "POST",
                    "/keys",
                    &resource,
                    (&name, "/keys"),
                    "create",
                    Act::CreatesAs,
                    body,
                )
            } else {
                let path = format!("/keys/{name}");
                self.request("PUT", &path, &resource, (&name, "/keys"), "put", Act::CreatesAs, body)
            };
        }
        let name = format!("{}{}-{}", self.prefix(), self.number, self.made);
        let (collection, needs) = match (self.usage, albums.as_slice()) {
            (Usage::Albums, [_, ..]) if rng.chance(700) => {
                let (album, known) = **rng.pick(&albums);
                (format!("/albums/{}/photos", known.meta_id), Some(album.clone()))
            }
            (Usage::Albums, _) => ("/albums".to_owned(), None),
            _ => ("/images".to_owned(), None),
        };
        let mut submission = self.request(
            "POST",
            &collection,
            &name,
            (&name, &collection),
            "post",
            Act::Creates,
            body,
        );
        submission.needs.extend(needs);
        submission
    }

    fn change(&mut self, id: &ResourceId, known: &IdMap, rng: &mut Rng) -> Submission {
        let path = format!("{}/{}", known.collection, known.meta_id);
        let names = (known.meta_id.as_str(), known.collection.as_str());
        let body = self.body(rng);
        let mut submission = match rng.below(20) {
            0..6 => self.request("PUT", &path, id.as_str(), names, "put", Act::Changes, body),
            6..11 => {
                let body = format!("{body};field=f{}", rng.below(3));
                self.request("PATCH", &path, id.as_str(), names, "patch", Act::Changes, body)
            }
            11..15 => {
                let path = format!("{path}/file");
                let said = Header { name: BODY.to_owned(), value: body.clone() };
                let mut upload =
                    self.request("PUT", &path, id.as_str(), names, "part", Act::Changes, body);
                upload.inline_body = None;
                if let Payload::Http { headers, body, .. } = &mut upload.payload {
                    headers.push(said);
                    let content = self.made.to_be_bytes();
                    let blob = BlobId(*blake3::hash(&content).as_bytes());
                    // So large that it is not kept for ever.
                    *body = Some(FileRef { name: "body".into(), blob, size: 1 << 20 });
                }
                upload
            }
            15 => self.request("POST", &path, id.as_str(), names, "post", Act::Changes, body),
            16 | 17 => self.request(
                "DELETE",
                &path,
                id.as_str(),
                names,
                "delete",
                Act::Deletes,
                String::new(),
            ),
            _ => self.request("PUT", &path, id.as_str(), names, "put", Act::Changes, body),
        };
        submission.sites = None;
        submission.config = None;
        submission
    }

    /// What a request says; now and then something that a service refuses, here or everywhere.
    fn body(&self, rng: &mut Rng) -> String {
        let mut body = format!("value=v{}", self.made);
        if rng.chance(30) {
            body.push_str(";refuse=all");
        } else if rng.chance(30) {
            body.push_str(&format!(";refuse={}", crate::network::site_name(*rng.pick(&self.home))));
        }
        body
    }

    #[allow(clippy::expect_used, reason = "all names are built from letters and digits")]
    #[allow(clippy::too_many_arguments, reason = "the parts of one request")]
    fn request(
        &self,
        method: &str,
        path: &str,
        resource: &str,
        (meta_id, collection): (&str, &str),
        kind: &str,
        act: Act,
        body: String,
    ) -> Submission {
        let meta_id = MetaId::new(meta_id).expect("a valid id");
        let service_ref = ServiceRef { meta_id, collection: collection.to_owned(), act };
        let content = Some(body).filter(|body| !body.is_empty());
        Submission {
            ticket: Ticket(0),
            resource: ResourceId::new(resource).expect("a valid id"),
            sites: Some(self.sites.clone()),
            config: Some(self.config.clone()),
            kind: OperationType::new(kind).expect("a valid type"),
            payload: Payload::Http {
                service: SERVICE.to_owned(),
                method: method.to_owned(),
                path: path.to_owned(),
                headers: Vec::new(),
                body: content.as_ref().map(|content| FileRef::of("body", content.as_bytes())),
                service_ref: Some(Box::new(service_ref)),
            },
            inline_body: content.map(|content| content.into_bytes().into()),
            force: false,
            wait: WaitFor::Local,
            timeout_ms: 5_000,
            needs: BTreeSet::new(),
            asked_by: None,
        }
    }
}
