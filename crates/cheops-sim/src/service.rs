//! A simulated service with a REST interface, one instance per site. It knows nothing of Cheops, and
//! draws its ids by counting, so that a wrong id hits another object. Beside each object it keeps
//! books on who made it and what was done to it, for the oracle.

use std::collections::BTreeMap;

use cheops_core::model::{OperationId, ResourceId, SiteId};

/// What one instance holds.
#[derive(Debug, Clone, Default)]
pub struct SimService {
    /// By path.
    objects: BTreeMap<String, Object>,
    /// The last id drawn, by collection.
    drawn: BTreeMap<String, u64>,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The resource whose operation made it.
    pub made_by: ResourceId,
    /// What it holds.
    pub fields: BTreeMap<String, String>,
    /// What was done to it.
    pub effects: Vec<OperationId>,
}

/// A request, with the ids of the instance that it is sent to.
#[derive(Debug)]
pub struct ServiceRequest<'a> {
    /// `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: &'a str,
    /// Where to.
    pub path: String,
    /// `name=value` and the like.
    pub body: BTreeMap<String, String>,
    /// Whose operation it is, for the oracle.
    pub by: &'a ResourceId,
    /// Which.
    pub operation: &'a OperationId,
}

/// What a service says.
#[derive(Debug, PartialEq, Eq)]
pub struct ServiceAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The id that it drew.
    pub id: Option<String>,
}

/// An object was hit that belongs to another resource.
#[derive(Debug)]
pub struct Stranger {
    /// Where.
    pub path: String,
    /// Whose it is.
    pub of: ResourceId,
}

/// The only thing below an object that is no object of its own.
const PART: &str = "file";

impl SimService {
    /// The object at a path.
    pub fn object(&self, path: &str) -> Option<&Object> {
        self.objects.get(path)
    }

    /// Those that a resource made.
    pub fn made_by<'a>(&'a self, resource: &'a ResourceId) -> impl Iterator<Item = &'a Object> {
        self.objects.values().filter(move |object| object.made_by == *resource)
    }

    /// Removes by hand what a resource made, with what is below; whose things went with it.
    pub fn remove_by_hand(&mut self, resource: &ResourceId) -> Vec<ResourceId> {
        let is_its = |(_, object): &(&String, &Object)| object.made_by == *resource;
        let paths: Vec<String> =
            self.objects.iter().filter(is_its).map(|(p, _)| p.clone()).collect();
        paths.iter().flat_map(|path| self.remove(path)).collect()
    }

    fn remove(&mut self, path: &str) -> Vec<ResourceId> {
        let below = format!("{path}/");
        let gone = |at: &String| at == path || at.starts_with(&below);
        let removed = self.objects.extract_if(.., |at, _| gone(at));
        removed.map(|(_, object)| object.made_by).collect()
    }

    /// Carries a request out.
    pub fn handle(
        &mut self,
        site: &SiteId,
        request: &ServiceRequest<'_>,
    ) -> Result<ServiceAnswer, Stranger> {
        let said = |status| Ok(ServiceAnswer { status, id: None });
        if request.body.get("refuse").is_some_and(|at| at == "all" || at == site.as_str()) {
            return said(422);
        }
        let (path, part) = match request.path.rsplit_once('/') {
            Some((path, PART)) => (path, true),
            _ => (request.path.as_str(), false),
        };
        // `/albums/3/photos` is a collection, `/albums/3` an object.
        if request.method == "POST" && path.split('/').count() % 2 == 0 {
            return Ok(self.make(path, request));
        }
        let unknown_is_made = request.method == "PUT" && !part && path.starts_with("/keys/");
        match self.objects.get_mut(path) {
            None if unknown_is_made => {
                self.insert(path.to_owned(), request);
                return said(201);
            }
            None => return said(404),
            Some(object) if object.made_by != *request.by => {
                return Err(Stranger { path: path.to_owned(), of: object.made_by.clone() });
            }
            Some(object) => {
                let value = request.body.get("value").cloned().unwrap_or_default();
                match request.method {
                    "PUT" if part => drop(object.fields.insert(PART.to_owned(), value)),
                    "PUT" => {
                        object.fields.retain(|name, _| name == PART);
                        object.fields.insert("value".to_owned(), value);
                    }
                    "PATCH" => {
                        let name = request.body.get("field").cloned().unwrap_or_default();
                        object.fields.insert(name, value);
                    }
                    "POST" => object.fields.entry("log".to_owned()).or_default().push_str(&value),
                    _ => drop(self.remove(path)),
                }
            }
        }
        if let Some(object) = self.objects.get_mut(path) {
            object.effects.push(request.operation.clone());
        }
        said(200)
    }

    fn make(&mut self, collection: &str, request: &ServiceRequest<'_>) -> ServiceAnswer {
        let parent = collection.rsplit_once('/').map_or("", |(parent, _)| parent);
        if !parent.is_empty() && !self.objects.contains_key(parent) {
            return ServiceAnswer { status: 404, id: None };
        }
        if let Some(id) = request.body.get("id") {
            let path = format!("{collection}/{id}");
            if self.objects.contains_key(&path) {
                return ServiceAnswer { status: 409, id: None };
            }
            self.insert(path, request);
            return ServiceAnswer { status: 201, id: None };
        }
        let drawn = self.drawn.entry(collection.to_owned()).or_default();
        *drawn += 1;
        let id = drawn.to_string();
        self.insert(format!("{collection}/{id}"), request);
        ServiceAnswer { status: 201, id: Some(id) }
    }

    fn insert(&mut self, path: String, request: &ServiceRequest<'_>) {
        let value = request.body.get("value").cloned().unwrap_or_default();
        let object = Object {
            made_by: request.by.clone(),
            fields: [("value".to_owned(), value)].into(),
            effects: vec![request.operation.clone()],
        };
        self.objects.insert(path, object);
    }
}
