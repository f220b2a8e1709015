//! What a request that changes something becomes: an operation of some type, on some resource.

use cheops_core::model::{Act, IdError, MetaId, RequestKind, ResourceId, ServiceRef};
use http::Method;

use super::super::refusal::ProxyRefusal;
use crate::id_directory::Below;

/// A change to a resource of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReplicaChange {
    pub(super) resource: ResourceId,
    /// By which the type of the operation is known.
    pub(super) kind: RequestKind,
    pub(super) replica: ServiceRef,
}

/// Who chooses what a new resource is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NameChooser {
    /// The service of each site; users call it by this one.
    Services(String),
    /// This agent, and the request says it to all sites.
    Agent(String),
    /// The client did, in the request.
    Client(String),
}

/// A request to make something in the collection of that path.
pub(super) fn creation(
    service: &str,
    path: &str,
    name: &NameChooser,
) -> Result<ReplicaChange, ProxyRefusal> {
    let collection = bare(path);
    match name {
        // An id that nobody else draws needs no more to be told from others.
        NameChooser::Services(id) => change(id, collection, id, RequestKind::Post, Act::Creates),
        NameChooser::Agent(id) => change(id, collection, id, RequestKind::Create, Act::CreatesAs),
        NameChooser::Client(id) => {
            let resource = ServiceRef::placed(service, collection, id);
            change(&resource, collection, id, RequestKind::Create, Act::CreatesAs)
        }
    }
}

/// A `PUT` of something that is not known yet, and is called what the path says.
pub(super) fn of_unknown(service: &str, path: &str) -> Result<ReplicaChange, ProxyRefusal> {
    let path = bare(path);
    let (collection, last) = path.rsplit_once('/').unwrap_or(("", path));
    let name = percent_encoding::percent_decode_str(last).decode_utf8_lossy();
    change(
        &ServiceRef::placed(service, collection, &name),
        collection,
        &name,
        RequestKind::Put,
        Act::CreatesAs,
    )
}

/// What a request does to a resource that is known.
pub(super) fn kind_of(method: &Method, below: Below) -> (RequestKind, Act) {
    match (method, below) {
        (&Method::PUT, Below::Itself) => (RequestKind::Put, Act::Changes),
        (&Method::PATCH, Below::Itself) => (RequestKind::Patch, Act::Changes),
        (&Method::DELETE, Below::Itself) => (RequestKind::Delete, Act::Deletes),
        (&Method::PUT | &Method::PATCH | &Method::DELETE, Below::Part) => {
            (RequestKind::Part, Act::Changes)
        }
        _ => (RequestKind::Post, Act::Changes),
    }
}

/// Whether a patch in steps only sets members to values: run again, it comes to the same.
pub(super) fn only_sets(patch: &[u8]) -> bool {
    let Ok(serde_json::Value::Array(steps)) = serde_json::from_slice(patch) else { return false };
    steps.iter().all(|step| {
        let path = step["path"].as_str().unwrap_or_default();
        let last = path.rsplit('/').next().unwrap_or_default();
        let is_member = last != "-" && last.parse::<u64>().is_err();
        matches!(step["op"].as_str(), Some("replace" | "add")) && is_member
    })
}

fn change(
    resource: &str,
    collection: &str,
    meta_id: &str,
    kind: RequestKind,
    act: Act,
) -> Result<ReplicaChange, ProxyRefusal> {
    let wrong = |error: IdError| ProxyRefusal::bad_target(&error.to_string());
    Ok(ReplicaChange {
        resource: ResourceId::new(resource).map_err(wrong)?,
        kind,
        replica: ServiceRef {
            meta_id: MetaId::new(meta_id).map_err(wrong)?,
            collection: collection.to_owned(),
            act,
        },
    })
}

fn bare(path: &str) -> &str {
    path.split('?').next().unwrap_or_default().trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "5a3f0000-aaaa-4bbb-8ccc-000000000001";

    #[test]
    fn what_is_made_is_known_by_the_id_that_nobody_else_has() {
        let by_services = NameChooser::Services(UUID.to_owned());
        let change = creation("image", "/v1/images/?x=1", &by_services).unwrap();
        assert_eq!((change.kind, change.replica.act), (RequestKind::Post, Act::Creates));
        assert_eq!(change.resource.as_str(), UUID);
        assert_eq!(change.replica.collection, "/v1/images");
        let by_agent = NameChooser::Agent(UUID.to_owned());
        let change = creation("image", "/v1/images", &by_agent).unwrap();
        assert_eq!((change.kind, change.replica.act), (RequestKind::Create, Act::CreatesAs));
        assert_eq!(change.resource.as_str(), UUID);
    }

    #[test]
    fn what_a_client_names_is_known_by_where_it_is_too() {
        let by_client = |name: &str| {
            let name = NameChooser::Client(name.to_owned());
            creation("image", "/v1/images", &name).unwrap()
        };
        let web = by_client("web");
        assert_eq!((web.kind, web.replica.act), (RequestKind::Create, Act::CreatesAs));
        assert_eq!(web.resource.as_str(), "image/v1/images/web");
        let named = by_client(UUID);
        assert_eq!(named.resource.as_str(), format!("image/v1/images/{UUID}"));
        assert_eq!(named.replica.meta_id.as_str(), UUID);
        let quotas = |service, path: &str| of_unknown(service, path).unwrap().resource;
        let of_compute = quotas("compute", &format!("/quotas/{UUID}"));
        assert_ne!(of_compute, quotas("network", &format!("/quotas/{UUID}")));
        assert_ne!(of_compute, quotas("compute", &format!("/limits/{UUID}")));
        assert_ne!(quotas("compute", "/a/b/c"), quotas("compute", "/a/b%2Fc"));
    }

    #[test]
    fn a_path_that_nobody_knows_names_the_resource() {
        let put = of_unknown("kv", "/keys/a%20b?ttl=1").unwrap();
        assert_eq!((put.kind, put.replica.act), (RequestKind::Put, Act::CreatesAs));
        assert_eq!(put.resource.as_str(), "kv/keys/a b");
        let root = of_unknown("kv", "/x").unwrap();
        assert_eq!((root.resource.as_str(), root.replica.collection.as_str()), ("kv/x", ""));
        assert!(of_unknown("kv", "/").is_err());
    }

    #[test]
    fn a_patch_in_steps_can_be_repeated_if_it_only_sets_members() {
        let cases = [
            (r#"[{"op": "replace", "path": "/name", "value": 1}]"#, true),
            (r#"[{"op": "add", "path": "/os/version", "value": 1}]"#, true),
            (r#"[{"op": "add", "path": "/tags/-", "value": 1}]"#, false),
            (r#"[{"op": "replace", "path": "/tags/0", "value": 1}]"#, false),
            (
                r#"[{"op": "replace", "path": "/a", "value": 1}, {"op": "remove", "path": "/b"}]"#,
                false,
            ),
            (r#"{"name": 1}"#, false),
            ("", false),
        ];
        for (patch, expected) in cases {
            assert_eq!(only_sets(patch.as_bytes()), expected, "{patch}");
        }
    }

    #[test]
    fn what_is_below_a_resource_is_a_part_of_it() {
        let cases = [
            (Method::PUT, Below::Itself, RequestKind::Put),
            (Method::PATCH, Below::Itself, RequestKind::Patch),
            (Method::DELETE, Below::Itself, RequestKind::Delete),
            (Method::POST, Below::Itself, RequestKind::Post),
            (Method::PUT, Below::Part, RequestKind::Part),
            (Method::DELETE, Below::Part, RequestKind::Part),
            (Method::POST, Below::Part, RequestKind::Post),
        ];
        for (method, below, expected) in cases {
            let (kind, _) = kind_of(&method, below);
            assert_eq!(kind, expected, "{method} {below:?}");
        }
    }
}
