//! Ids put in the place of others in whole messages: meta-ids in what goes to users, local ids in
//! what goes to the service. Only JSON is looked into.

use http::header::{CONTENT_LOCATION, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;

use super::Replicas;
use super::directory::Directory;
use super::naming::{Naming, id_text, is_link, rename_link};

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Towards {
    /// To the service of this site: it knows its own ids.
    Service,
    /// To a user or another service: they know meta-ids.
    User,
}

impl Replicas {
    /// A path with its query as the other side knows it; `None` if it is the same.
    pub(crate) fn rename_path(&self, service: &str, path: &str, way: Towards) -> Option<String> {
        self.with(service, |directory| in_link(directory, path, way)).flatten()
    }

    /// The headers that say where a resource is.
    pub(crate) fn rename_headers(&self, service: &str, headers: &mut HeaderMap, way: Towards) {
        for name in [LOCATION, CONTENT_LOCATION] {
            let link = headers.get(&name).and_then(|value| value.to_str().ok());
            let renamed = link.and_then(|link| self.rename_path(service, link, way));
            if let Some(value) = renamed.and_then(|link| HeaderValue::try_from(link).ok()) {
                headers.insert(name, value);
            }
        }
    }

    /// A body in JSON, of a message about that path; `None` if it is the same, or no JSON.
    pub(crate) fn rename_body(
        &self,
        service: &str,
        naming: &Naming,
        path: &str,
        body: &[u8],
        way: Towards,
    ) -> Option<Vec<u8>> {
        let mut value: Value = serde_json::from_slice(body).ok()?;
        let renamed = |directory: &Directory| in_body(directory, naming, path, &mut value, way);
        if !self.with(service, renamed)? {
            return None;
        }
        let mut renamed = serde_json::to_vec(&value).ok()?;
        // Whoever ends with a line break does so for people.
        if body.last() == Some(&b'\n') {
            renamed.push(b'\n');
        }
        Some(renamed)
    }
}

/// Whether a body is JSON, by what its headers say, and can be looked into. Not what is made of
/// many pieces of JSON, as `application/x-ndjson`: it may never end.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let kind = text(CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    (kind == "application/json" || kind.ends_with("+json"))
        && !headers.contains_key(http::header::CONTENT_ENCODING)
}

fn in_link(directory: &Directory, link: &str, way: Towards) -> Option<String> {
    rename_link(link, |place, name| directory.new_name(name, place, way))
}

/// Whether anything was renamed.
fn in_body(
    directory: &Directory,
    naming: &Naming,
    path: &str,
    body: &mut Value,
    way: Towards,
) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let mut found = false;
    let mut rename = |resource: &mut Value| {
        for place in naming.places(resource) {
            let Some(id) = resource.pointer_mut(&place) else { continue };
            let name = id_text(id).and_then(|name| id_name(directory, &name, path, way));
            if let Some(name) = name {
                *id = name.into();
                found = true;
            }
        }
    };
    rename(body);
    items(body).into_iter().for_each(rename);
    found | in_texts(directory, body, way)
}

/// The new name of an id in a message about a path: the resource is in the collection of that
/// path, or is what the path speaks of.
fn id_name(directory: &Directory, name: &str, path: &str, way: Towards) -> Option<String> {
    let mut place = path.trim_end_matches('/');
    loop {
        if let Some(renamed) = directory.new_name(name, Some(place), way) {
            return Some(renamed.to_owned());
        }
        place = place.rsplit_once('/')?.0;
    }
}

/// The items of a list, bare or as in `{"images": […]}`.
fn items(body: &mut Value) -> Vec<&mut Value> {
    match body {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(members) => {
            members.values_mut().filter_map(Value::as_array_mut).flatten().collect()
        }
        _ => Vec::new(),
    }
}

fn in_texts(directory: &Directory, value: &mut Value, way: Towards) -> bool {
    match value {
        Value::String(text) => {
            let renamed = if is_link(text) {
                in_link(directory, text, way)
            } else {
                directory.new_name(text, None, way).map(str::to_owned)
            };
            renamed.map(|renamed| *text = renamed).is_some()
        }
        Value::Array(items) => {
            items.iter_mut().fold(false, |found, item| found | in_texts(directory, item, way))
        }
        Value::Object(members) => members
            .values_mut()
            .fold(false, |found, member| found | in_texts(directory, member, way)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cheops_core::model::SiteId;
    use serde_json::json;

    use super::super::directory::tests::{META, known};
    use super::*;

    const LONG: &str = "5a3f0000-aaaa-4bbb-8ccc-0000000000ee";
    const OTHER: &str = "0f8e1a52-7c51-4bbb-8ccc-0000000000ff";

    fn replicas() -> Replicas {
        let replicas = Replicas::new(SiteId::new("paris").unwrap());
        for (meta, local) in [(META, "7"), (LONG, OTHER)] {
            let known = known("/v1/images", meta, Some(local));
            replicas.publish(&known.resource, Some(Arc::clone(&known.replicant)));
        }
        replicas
    }

    fn renamed(path: &str, body: &Value, way: Towards) -> Value {
        let bytes = serde_json::to_vec(body).unwrap();
        let naming = Naming::default();
        let renamed = replicas().rename_body("image", &naming, path, &bytes, way);
        renamed.map_or(body.clone(), |bytes| serde_json::from_slice(&bytes).unwrap())
    }

    #[test]
    fn users_see_meta_ids_in_resources_lists_and_links() {
        let cases = [
            (
                "/v1/images/7",
                json!({"id": 7, "size": 7, "self": "/v1/images/7"}),
                json!({"id": META, "size": 7, "self": format!("/v1/images/{META}")}),
            ),
            (
                "/v1/images",
                json!({"images": [{"id": "7", "of": OTHER}, {"id": "8"}], "next": "/v1/tags/7"}),
                json!({"images": [{"id": META, "of": LONG}, {"id": "8"}], "next": "/v1/tags/7"}),
            ),
            ("/v1/images/7", json!({"id": 7, "tags": ["7"]}), json!({"id": META, "tags": ["7"]})),
            ("/v1/images", json!([{"id": 7}, 7]), json!([{"id": META}, 7])),
            ("/v1/tags", json!([{"id": 7}]), json!([{"id": 7}])),
            ("/v1/images", json!({"image": {"id": 7}}), json!({"image": {"id": META}})),
            ("/any", json!({"image": OTHER}), json!({"image": LONG})),
        ];
        for (path, body, expected) in cases {
            assert_eq!(renamed(path, &body, Towards::User), expected, "{path} {body}");
        }
    }

    #[test]
    fn what_is_renamed_keeps_its_numbers_to_the_last_digit() {
        let numbers = r#"[123456789012345678901234567890,0.1234567890123456789012345,1.50,1e400]"#;
        let body = format!(r#"{{"id":7,"numbers":{numbers}}}"#);
        let (naming, way) = (Naming::default(), Towards::User);
        let renamed =
            replicas().rename_body("image", &naming, "/v1/images/7", body.as_bytes(), way);
        let renamed = String::from_utf8(renamed.unwrap()).unwrap();
        // The exponent's sign may be spelt out.
        let renamed = renamed.replace("e+", "e");
        assert_eq!(renamed, format!(r#"{{"id":"{META}","numbers":{numbers}}}"#));
    }

    #[test]
    fn the_service_sees_its_own_ids() {
        let body = json!({"id": META, "like": [LONG], "name": "n"});
        let expected = json!({"id": "7", "like": [OTHER], "name": "n"});
        assert_eq!(renamed(&format!("/v1/images/{META}"), &body, Towards::Service), expected);
        let path = format!("/v1/images/{META}/file?like={LONG}");
        let there = replicas().rename_path("image", &path, Towards::Service).unwrap();
        assert_eq!(there, format!("/v1/images/7/file?like={OTHER}"));
        let back = replicas().rename_path("image", &there, Towards::User);
        assert_eq!(back.as_deref(), Some(path.as_str()));
        assert_eq!(replicas().rename_path("compute", &path, Towards::Service), None);
    }

    #[test]
    fn only_json_that_is_not_packed_is_looked_into() {
        let headers = |kind: &str, coding: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            if let Some(coding) = coding {
                headers.insert(http::header::CONTENT_ENCODING, coding.parse().unwrap());
            }
            headers
        };
        assert!(is_json(&headers("Application/JSON; charset=utf-8", None)));
        assert!(is_json(&headers("application/problem+json", None)));
        assert!(!is_json(&headers("application/json", Some("gzip"))));
        assert!(!is_json(&headers("application/octet-stream", None)));
        assert!(!is_json(&headers("application/x-ndjson", None)));
        assert!(!is_json(&HeaderMap::new()));
    }
}
