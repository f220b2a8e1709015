//! Ids put in the place of others in whole messages: meta-ids in what goes to users, local ids in
//! what goes to the service. Only JSON is looked into.

use std::cell::RefCell;
use std::collections::BTreeSet;

use cheops_core::model::ResourceId;
use http::header::{CONTENT_LOCATION, CONTENT_TYPE, LINK, LOCATION};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;

use super::IdDirectory;
use super::naming::{Naming, id_text, is_link, rename_link};

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Towards {
    /// To the service of this site: it knows its own ids.
    Service,
    /// To a user or another service: they know meta-ids.
    User,
}

/// A longer body takes so long that nobody should have to wait for it: neither whoever else is
/// served by this thread, nor whoever has something to publish.
pub(crate) const LONG: usize = 256 * 1024;

/// What a name becomes at a place; `None` if it stays.
type NewName<'n> = dyn Fn(&str, Option<&str>) -> Option<String> + 'n;

impl IdDirectory {
    /// A path with its query as the other side knows it; `None` if it is the same.
    pub fn rename_path(&self, service: &str, path: &str, way: Towards) -> Option<String> {
        self.with(service, |directory| in_link(&directory.names(way), path)).flatten()
    }

    /// The headers that say where a resource is.
    pub fn rename_headers(&self, service: &str, headers: &mut HeaderMap, way: Towards) {
        for name in [LOCATION, CONTENT_LOCATION] {
            let link = headers.get(&name).and_then(|value| value.to_str().ok());
            let renamed = link.and_then(|link| self.rename_path(service, link, way));
            if let Some(value) = renamed.and_then(|link| HeaderValue::try_from(link).ok()) {
                headers.insert(name, value);
            }
        }
        let links = headers.iter_mut().filter(|(name, _)| **name == LINK);
        for (_, value) in links {
            let renamed = value
                .to_str()
                .ok()
                .and_then(|links| rename_each(links, |link| self.rename_path(service, link, way)));
            if let Some(renamed) = renamed.and_then(|links| HeaderValue::try_from(links).ok()) {
                *value = renamed;
            }
        }
    }

    /// A body in JSON, of a message about that path; `None` if it is the same, or no JSON.
    pub fn rename_body(
        &self,
        service: &str,
        naming: &Naming,
        path: &str,
        body: &[u8],
        way: Towards,
    ) -> Option<Vec<u8>> {
        let mut value: Value = serde_json::from_slice(body).ok()?;
        let is_renamed = if body.len() > LONG {
            let one = |name: &str, place: Option<&str>| {
                self.with(service, |directory| directory.names(way)(name, place)).flatten()
            };
            in_body(&one, naming, path, &mut value)
        } else {
            self.with(service, |directory| {
                in_body(&directory.names(way), naming, path, &mut value)
            })?
        };
        if !is_renamed {
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

/// An operation that names more others than this waits for the first of them only.
const MOST_NAMED: usize = 64;

/// What a message names.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// IdDirectory that this site knows.
    pub(crate) known: BTreeSet<ResourceId>,
    /// What may be such, by its form, and is not known here.
    pub(crate) unheard: BTreeSet<ResourceId>,
}

impl Named {
    pub(crate) fn extend(&mut self, other: Self) {
        self.known.extend(other.known);
        self.unheard.extend(other.unheard);
    }
}

impl IdDirectory {
    /// The replicas that a path names by what users call them.
    pub(crate) fn named_in_path(&self, service: &str, path: &str) -> Named {
        let found = RefCell::default();
        in_link(&self.noting(service, &found), path);
        found.into_inner()
    }

    /// The same for a body in JSON, of a message about that path.
    pub(crate) fn named_in_body(
        &self,
        service: &str,
        naming: &Naming,
        path: &str,
        body: &[u8],
    ) -> Named {
        let found = RefCell::default();
        if let Ok(mut value) = serde_json::from_slice(body) {
            in_body(&self.noting(service, &found), naming, path, &mut value);
        }
        found.into_inner()
    }

    /// Notes what is named, and leaves it as it is.
    fn noting<'a>(
        &'a self,
        service: &'a str,
        found: &'a RefCell<Named>,
    ) -> impl Fn(&str, Option<&str>) -> Option<String> + 'a {
        move |name, place| {
            let Named { known, unheard } = &mut *found.borrow_mut();
            if let Some(resource) = self.called(service, name, place) {
                if known.len() < MOST_NAMED {
                    known.insert(resource);
                }
            } else if unheard.len() < MOST_NAMED && may_be_drawn(name) && !self.knows(name) {
                unheard.extend(ResourceId::new(name).ok());
            }
            None
        }
    }
}

/// Whether an agent may have drawn a name, by its form. Services draw such ones too.
fn may_be_drawn(name: &str) -> bool {
    let is_of_form = |drawn: uuid::Uuid| {
        drawn.get_version_num() == 4 && drawn.hyphenated().to_string().as_str() == name
    };
    // Most names are told from one by their length alone.
    name.len() == uuid::fmt::Hyphenated::LENGTH && uuid::Uuid::try_parse(name).is_ok_and(is_of_form)
}

/// Whether a body is JSON, by what its headers say, and can be looked into. Not what is made of
/// many pieces of JSON, as `application/x-ndjson`: it may never end.
pub fn is_json(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let kind = text(CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    (kind == "application/json" || kind.ends_with("+json"))
        && !headers.contains_key(http::header::CONTENT_ENCODING)
}

/// What stands between `<` and `>` in a `Link` header; `None` if it is the same.
fn rename_each(links: &str, rename: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut renamed = String::with_capacity(links.len() + 32);
    let (mut rest, mut found) = (links, false);
    while let Some((before, link, after)) = rest
        .split_once('<')
        .and_then(|(before, rest)| rest.split_once('>').map(|(link, after)| (before, link, after)))
    {
        let other = rename(link);
        found |= other.is_some();
        renamed.push_str(&format!("{before}<{}>", other.as_deref().unwrap_or(link)));
        rest = after;
    }
    renamed.push_str(rest);
    found.then_some(renamed)
}

pub(super) fn in_link(new_name: &NewName<'_>, link: &str) -> Option<String> {
    rename_link(link, |place, name| new_name(name, place))
}

/// Whether anything was renamed.
fn in_body(new_name: &NewName<'_>, naming: &Naming, path: &str, body: &mut Value) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    // What is below a replica is known by what users call that.
    let known = in_link(new_name, path);
    let path = known.as_deref().unwrap_or(path);
    let mut found = false;
    let mut rename = |resource: &mut Value| {
        for place in naming.places(resource) {
            let Some(id) = resource.pointer_mut(&place) else { continue };
            let name = id_text(id).and_then(|name| id_name(new_name, &name, path));
            if let Some(name) = name {
                *id = name.into();
                found = true;
            }
        }
    };
    rename(body);
    items(body).into_iter().for_each(rename);
    found | in_texts(new_name, body)
}

/// The new name of an id in a message about a path: the resource is in the collection of that
/// path, or is what the path speaks of.
fn id_name(new_name: &NewName<'_>, name: &str, path: &str) -> Option<String> {
    let mut place = path.trim_end_matches('/');
    loop {
        if let Some(renamed) = new_name(name, Some(place)) {
            return Some(renamed);
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

fn in_texts(new_name: &NewName<'_>, value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let renamed =
                if is_link(text) { in_link(new_name, text) } else { new_name(text, None) };
            renamed.map(|renamed| *text = renamed).is_some()
        }
        Value::Array(items) => {
            items.iter_mut().fold(false, |found, item| found | in_texts(new_name, item))
        }
        Value::Object(members) => {
            members.values_mut().fold(false, |found, member| found | in_texts(new_name, member))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cheops_core::model::SiteId;
    use serde_json::json;

    use super::super::Names;
    use super::super::directory::tests::{META, known};
    use super::*;

    const LONG_ID: &str = "5a3f0000-aaaa-4bbb-8ccc-0000000000ee";
    const PHOTO: &str = "5a3f0000-aaaa-4bbb-8ccc-0000000000dd";
    const OTHER: &str = "0f8e1a52-7c51-4bbb-8ccc-0000000000ff";

    fn replicas() -> IdDirectory {
        let replicas = IdDirectory::new(SiteId::new("paris").unwrap());
        for (meta, local) in [(META, "7"), (LONG_ID, OTHER)] {
            let known = known("/v1/images", meta, Some(local));
            replicas.publish(&known.resource, Some(Arc::clone(&known.replicant)));
        }
        replicas
    }

    #[test]
    fn what_a_request_names_is_found_in_its_path_and_its_body_by_what_users_call_it() {
        let replicas = replicas();
        let in_path = |path: &str| replicas.named_in_path("image", path).known.len();
        assert_eq!(in_path(&format!("/v1/images/{META}/photos?of={LONG_ID}")), 2);
        assert_eq!(
            in_path("/v1/images/7/photos"),
            0,
            "what the service calls it is another matter"
        );
        let in_body = |service: &str, body: &Value| {
            let bytes = serde_json::to_vec(body).unwrap();
            replicas.named_in_body(service, &Naming::default(), "/v1/servers", &bytes).known.len()
        };
        let body = json!({"name": "web", "image": META, "of": [format!("/v1/images/{LONG_ID}")]});
        assert_eq!(in_body("image", &body), 2);
        assert_eq!(in_body("compute", &body), 2, "of another service as well");
        assert_eq!(in_body("image", &json!({"image": "7", "name": "META"})), 0);
    }

    #[test]
    fn what_may_be_a_replica_that_nobody_spoke_of_yet_is_told_by_its_form() {
        const NEW: &str = "5a3f0000-aaaa-4bbb-8ccc-0000000000cc";
        let unheard = |replicas: &IdDirectory, path: &str| -> Vec<String> {
            let named = replicas.named_in_path("image", path);
            named.unheard.iter().map(ToString::to_string).collect()
        };
        let none = IdDirectory::new(SiteId::new("paris").unwrap());
        for replicas in [replicas(), none] {
            assert_eq!(unheard(&replicas, &format!("/v1/images/{NEW}/photos")), [NEW]);
            for other in ["7", "photos", "00000000-0000-0000-0000-000000000000"] {
                assert!(unheard(&replicas, &format!("/v1/images/{other}")).is_empty(), "{other}");
            }
            let shouted = NEW.to_uppercase();
            assert!(unheard(&replicas, &format!("/v1/images/{shouted}")).is_empty());
            let body = json!({"name": "web", "image": NEW}).to_string();
            let named = replicas.named_in_body("image", &Naming::default(), "/", body.as_bytes());
            assert_eq!((named.known.len(), named.unheard.len()), (0, 1));
        }
        let known = replicas();
        assert!(unheard(&known, &format!("/v1/images/{META}?of={OTHER}")).is_empty());
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
                json!({"images": [{"id": META, "of": LONG_ID}, {"id": "8"}], "next": "/v1/tags/7"}),
            ),
            ("/v1/images/7", json!({"id": 7, "tags": ["7"]}), json!({"id": META, "tags": ["7"]})),
            ("/v1/images", json!([{"id": 7}, 7]), json!([{"id": META}, 7])),
            ("/v1/tags", json!([{"id": 7}]), json!([{"id": 7}])),
            ("/v1/images", json!({"image": {"id": 7}}), json!({"image": {"id": META}})),
            ("/any", json!({"image": OTHER}), json!({"image": LONG_ID})),
        ];
        for (path, body, expected) in cases {
            assert_eq!(renamed(path, &body, Towards::User), expected, "{path} {body}");
        }
    }

    /// A replica of its own, below another.
    fn with_a_photo() -> IdDirectory {
        let replicas = replicas();
        let photo = known(&format!("/v1/images/{META}/photos"), PHOTO, Some("3"));
        replicas.publish(&photo.resource, Some(Arc::clone(&photo.replicant)));
        replicas
    }

    #[test]
    fn below_a_replica_another_is_known_by_what_the_service_calls_both() {
        let replicas = with_a_photo();
        let (theirs, ours) = ("/v1/images/7/photos", format!("/v1/images/{META}/photos"));
        for path in [theirs, ours.as_str()] {
            let found = replicas.find("image", &format!("{path}/3"), Names::All).unwrap();
            assert_eq!((found.known.meta_id(), found.depth), (PHOTO, 4), "{path}");
            let body = json!({"photos": [{"id": 3, "self": format!("{theirs}/3")}]}).to_string();
            let way = Towards::User;
            let renamed =
                replicas.rename_body("image", &Naming::default(), path, body.as_bytes(), way);
            let renamed: Value = serde_json::from_slice(&renamed.unwrap()).unwrap();
            let expected = json!({"photos": [{"id": PHOTO, "self": format!("{ours}/{PHOTO}")}]});
            assert_eq!(renamed, expected, "{path}");
        }
        let there = replicas.rename_path("image", &format!("{ours}/{PHOTO}"), Towards::Service);
        assert_eq!(there.as_deref(), Some("/v1/images/7/photos/3"));
    }

    #[test]
    fn a_long_body_is_renamed_like_a_short_one() {
        let many = |n: usize| vec![json!({"id": 7, "of": OTHER, "self": "/v1/images/7"}); n];
        let renamed_one = json!({"id": META, "of": LONG_ID, "self": format!("/v1/images/{META}")});
        for n in [1, 10_000] {
            let (body, expected) = (json!({"images": many(n)}), vec![renamed_one.clone(); n]);
            assert_eq!(body.to_string().len() > LONG, n > 1);
            assert_eq!(renamed("/v1/images", &body, Towards::User)["images"], json!(expected));
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
        let body = json!({"id": META, "like": [LONG_ID], "name": "n"});
        let expected = json!({"id": "7", "like": [OTHER], "name": "n"});
        assert_eq!(renamed(&format!("/v1/images/{META}"), &body, Towards::Service), expected);
        let path = format!("/v1/images/{META}/file?like={LONG_ID}");
        let there = replicas().rename_path("image", &path, Towards::Service).unwrap();
        assert_eq!(there, format!("/v1/images/7/file?like={OTHER}"));
        let back = replicas().rename_path("image", &there, Towards::User);
        assert_eq!(back.as_deref(), Some(path.as_str()));
        assert_eq!(replicas().rename_path("compute", &path, Towards::Service), None);
    }

    #[test]
    fn users_see_meta_ids_in_the_headers_that_say_where_something_is() {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, HeaderValue::from_static("/v1/images/7"));
        let links = "</v1/images/7>; rel=\"self\", <http://h/v1/images/7/file>, </v1/images/8>";
        headers.append(LINK, HeaderValue::from_static("</v1/tags/7>; rel=\"up\", <"));
        headers.append(LINK, HeaderValue::from_static(links));
        replicas().rename_headers("image", &mut headers, Towards::User);
        assert_eq!(headers[LOCATION], format!("/v1/images/{META}"));
        let links: Vec<_> = headers.get_all(LINK).iter().collect();
        let renamed = format!(
            "</v1/images/{META}>; rel=\"self\", <http://h/v1/images/{META}/file>, </v1/images/8>"
        );
        assert_eq!(links, ["</v1/tags/7>; rel=\"up\", <", renamed.as_str()]);
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
