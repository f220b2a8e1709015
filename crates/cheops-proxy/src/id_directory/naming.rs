//! Where a service's answers say which id a new resource has, and one id put in another's place:
//! in bodies, links and paths. Only JSON is ever looked into.

use std::borrow::Cow;

use http::header::{CONTENT_LOCATION, LOCATION};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

use crate::config::Pointer;

/// What a path or a query may hold as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where ids usually are. Not `/name`: that is what a client chose, and it has to stay so.
const USUAL: [&str; 2] = ["/id", "/uuid"];

/// A text of that length is an id if it equals one; a shorter one may be so by chance.
const TELLING: usize = 8;

/// No id is longer.
const LONGEST: usize = 1024;

/// Where the ids of a service's resources are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Naming {
    /// Tried in this order; empty for where they usually are.
    id: Vec<Pointer>,
}

impl Naming {
    /// As the config says.
    pub fn new(id: &[Pointer]) -> Self {
        Self { id: id.to_vec() }
    }

    /// The id of the resource that a create made, as its answer says: in the body, or else at the
    /// end of `Location`.
    pub fn local_id(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: Option<&Value>,
    ) -> Option<String> {
        if !status.is_success() && status != StatusCode::SEE_OTHER {
            return None;
        }
        let in_body = body.and_then(|body| {
            let places = self.places(body);
            let mut found = places.iter().filter_map(|place| id_text(body.pointer(place)?));
            found.find(|id| !id.is_empty())
        });
        let id = in_body.map(Cow::into_owned).or_else(|| at_the_end_of_location(headers));
        id.filter(|id| !id.is_empty() && id.len() <= LONGEST)
    }

    /// Puts one id in another's place: where the ids of this service are, in links, and wherever
    /// a text is that id.
    pub(crate) fn rename(&self, body: &mut Value, renaming: Renaming<'_>) {
        for place in self.places(body) {
            let found = body.pointer_mut(&place);
            if let Some(id) = found.filter(|id| id_text(id).as_deref() == Some(renaming.from)) {
                *id = renaming.to.into();
            }
        }
        renaming.in_texts(body);
    }

    /// Where the id of this body may be. One that wraps the resource, as in `{"server": {…}}`, is
    /// looked into.
    pub(super) fn places(&self, body: &Value) -> Vec<String> {
        if !self.id.is_empty() {
            return self.id.iter().map(ToString::to_string).collect();
        }
        let mut places: Vec<String> = USUAL.map(str::to_owned).into();
        if let Some((name, Value::Object(_))) = only_member(body) {
            let name = name.replace('~', "~0").replace('/', "~1");
            places.extend(USUAL.map(|usual| format!("/{name}{usual}")));
        }
        places
    }
}

fn only_member(body: &Value) -> Option<(&String, &Value)> {
    let mut members = body.as_object()?.iter();
    members.next().filter(|_| members.next().is_none())
}

/// An id as it stands in paths; some services count theirs.
pub(crate) fn id_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) if !number.is_f64() => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

fn at_the_end_of_location(headers: &HeaderMap) -> Option<String> {
    let location = headers.get(LOCATION)?.to_str().ok()?;
    let (before, path, _, _) = parts_of(location)?;
    let last = match path.trim_end_matches('/').rsplit_once('/') {
        Some((_, last)) => last,
        // In this header, a link may start from the path that was asked for.
        None if before.is_empty() => path.trim_end_matches('/'),
        None => return None,
    };
    percent_decode_str(last).decode_utf8().ok().map(Cow::into_owned)
}

/// An id as a segment of a path.
pub(crate) fn encoded(id: &str) -> String {
    utf8_percent_encode(id, ENCODED).to_string()
}

/// One id in the place of another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Renaming<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
}

impl Renaming<'_> {
    /// In a path with its query: whole segments, and values.
    pub(crate) fn in_path(&self, path: &PathAndQuery) -> Option<PathAndQuery> {
        PathAndQuery::try_from(self.in_link(path.as_str())?).ok()
    }

    /// In the headers that say where a resource is.
    pub(crate) fn in_headers(&self, headers: &mut HeaderMap) {
        for name in [LOCATION, CONTENT_LOCATION] {
            let link = headers.get(&name).and_then(|value| value.to_str().ok());
            let renamed = link.and_then(|link| self.in_link(link));
            if let Some(value) = renamed.and_then(|link| HeaderValue::try_from(link).ok()) {
                headers.insert(name, value);
            }
        }
    }

    /// In every text of a body.
    fn in_texts(&self, value: &mut Value) {
        match value {
            Value::String(text) if text == self.from && text.len() >= TELLING => {
                self.to.clone_into(text);
            }
            Value::String(text) if is_link(text) => {
                if let Some(renamed) = self.in_link(text) {
                    *text = renamed;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.in_texts(item)),
            Value::Object(members) => members.values_mut().for_each(|item| self.in_texts(item)),
            _ => {}
        }
    }

    /// In a link; `None` if it does not speak of that id.
    fn in_link(&self, link: &str) -> Option<String> {
        rename_link(link, |_, id| (id == self.from).then_some(self.to))
    }
}

/// Puts other ids into a link: `None` if none of it was an id. What is asked for each segment is
/// the path before it, with its other ids, and the segment; for the values of its query, which have
/// no place, the value alone.
pub(crate) fn rename_link<N: AsRef<str>>(
    link: &str,
    new_name: impl Fn(Option<&str>, &str) -> Option<N>,
) -> Option<String> {
    let (before, path, query, fragment) = parts_of(link)?;
    let mut renamed = String::with_capacity(link.len() + 32);
    renamed.push_str(before);
    let mut found = false;
    let mut name = |place: Option<&str>, text: &str| {
        let decoded = match text.contains('%') {
            true => percent_decode_str(text).decode_utf8().unwrap_or(Cow::Borrowed(text)),
            false => Cow::Borrowed(text),
        };
        let name = new_name(place, &decoded)?;
        found = true;
        Some(encoded(name.as_ref()))
    };
    for (n, segment) in path.split('/').enumerate() {
        let name = name(renamed.get(before.len()..), segment);
        if n > 0 {
            renamed.push('/');
        }
        renamed.push_str(name.as_deref().unwrap_or(segment));
    }
    for (n, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        renamed.push(if n == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((key, value)) => {
                renamed.push_str(key);
                renamed.push('=');
                renamed.push_str(name(None, value).as_deref().unwrap_or(value));
            }
            None => renamed.push_str(pair),
        }
    }
    renamed.push_str(fragment);
    found.then_some(renamed)
}

/// Whether a text in a body is a link, and not something else with a slash in it.
pub(super) fn is_link(text: &str) -> bool {
    (text.starts_with('/') || text.contains("://"))
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Scheme and host, path, query and fragment.
fn parts_of(link: &str) -> Option<(&str, &str, Option<&str>, &str)> {
    let (link, fragment) = link.split_at(link.find('#').unwrap_or(link.len()));
    let (link, query) = match link.split_once('?') {
        Some((link, query)) => (link, Some(query)),
        None => (link, None),
    };
    let host = match link.find("//") {
        Some(0) => Some(2),
        Some(at) if link[..at].ends_with(':') => Some(at + 2),
        _ => None,
    };
    let path = host.map_or(0, |host| link[host..].find('/').map_or(link.len(), |at| host + at));
    Some((link.get(..path)?, link.get(path..)?, query, fragment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    const LONG: &str = "0f8e1a52-7c51";

    fn naming(pointers: &[&str]) -> Naming {
        Naming { id: pointers.iter().map(|pointer| pointer.parse().unwrap()).collect() }
    }

    #[test]
    fn the_id_of_a_new_resource_is_found_where_it_usually_is() {
        let cases = [
            (json!({"id": "a1", "uuid": "u", "name": "n"}), "", Some("a1")),
            (json!({"uuid": "u"}), "/things/other", Some("u")),
            (json!({"server": {"id": 7, "links": []}}), "", Some("7")),
            (json!({"server": {"id": "a"}, "more": 1}), "", None),
            (json!({"a/b~": {"id": "x"}}), "", Some("x")),
            (json!({"name": "n"}), "http://h:80/v2/things/b%20c/?x=/y#/z", Some("b c")),
            (json!({"id": null}), "/things/9", Some("9")),
            (json!({"id": ""}), "/things/9", Some("9")),
            (json!({"id": 1.5}), "", None),
            (json!([1]), "thing", Some("thing")),
            (json!({}), "http://h", None),
            (json!({}), "/", None),
            (json!({"id": "x".repeat(2000)}), "", None),
        ];
        for (body, location, expected) in cases {
            let headers = match location {
                "" => HeaderMap::new(),
                location => headers(&[("location", location)]),
            };
            let found = Naming::default().local_id(StatusCode::CREATED, &headers, Some(&body));
            assert_eq!(found.as_deref(), expected, "{body} {location}");
        }
        let refused = Naming::default().local_id(
            StatusCode::CONFLICT,
            &HeaderMap::new(),
            Some(&json!({"id": "x"})),
        );
        assert_eq!(refused, None, "nothing was made");
    }

    #[test]
    fn the_config_says_where_ids_are() {
        let body = json!({"id": "request", "metadata": {"name": "web"}});
        let naming = naming(&["/nowhere", "/metadata/name"]);
        let found = naming.local_id(StatusCode::OK, &HeaderMap::new(), Some(&body));
        assert_eq!(found.as_deref(), Some("web"));
    }

    #[test]
    fn an_id_is_replaced_where_ids_are_in_links_and_where_a_text_is_it() {
        let mut body = json!({
            "id": LONG, "parent": {"id": LONG}, "others": [LONG, "x"], "name": format!("of {LONG}"),
            "self": format!("/v2/images/{LONG}"), "file": format!("https://h/v2/{LONG}/file?of={LONG}#f"),
            "text": format!("/see {LONG}"), "longer": format!("/v2/{LONG}0"), "n": 1, "none": null,
        });
        Naming::default().rename(&mut body, Renaming { from: LONG, to: "meta" });
        assert_eq!(
            body,
            json!({
                "id": "meta", "parent": {"id": "meta"}, "others": ["meta", "x"],
                "name": format!("of {LONG}"), "self": "/v2/images/meta",
                "file": "https://h/v2/meta/file?of=meta#f", "text": format!("/see {LONG}"),
                "longer": format!("/v2/{LONG}0"), "n": 1, "none": null,
            })
        );
    }

    #[test]
    fn a_short_id_is_replaced_only_where_it_can_be_nothing_else() {
        let mut body = json!({"thing": {"id": 7, "size": 7, "zone": "7", "self": "/things/7"}});
        Naming::default().rename(&mut body, Renaming { from: "7", to: "meta" });
        let expected =
            json!({"thing": {"id": "meta", "size": 7, "zone": "7", "self": "/things/meta"}});
        assert_eq!(body, expected);
    }

    #[test]
    fn paths_and_headers_speak_of_an_id_by_whole_segments_and_values() {
        let cases = [
            ("/v2/images/m/file", Some("/v2/images/a%2Fb/file")),
            ("/v2/images/%6D", Some("/v2/images/a%2Fb")),
            ("/m?image=m&m&x=mm", Some("/a%2Fb?image=a%2Fb&m&x=mm")),
            ("/v2/images/mm?m", None),
            ("/", None),
        ];
        let renaming = Renaming { from: "m", to: "a/b" };
        for (path, expected) in cases {
            let renamed = renaming.in_path(&PathAndQuery::try_from(path).unwrap());
            assert_eq!(renamed.as_ref().map(PathAndQuery::as_str), expected, "{path}");
        }
        let mut sent = headers(&[("location", "http://m:1/m"), ("content-location", "//m/x/m")]);
        Renaming { from: "m", to: "n" }.in_headers(&mut sent);
        assert_eq!(sent["location"], "http://m:1/n", "a host is no id");
        assert_eq!(sent["content-location"], "//m/x/n");
    }

    proptest::proptest! {
        #[test]
        fn there_and_back_again_is_where_it_was(path in "(/[a-z%0-9]{0,3}){1,4}(\\?[a-z=&]{0,6})?") {
            let there = Renaming { from: "a", to: "longer-than-any" };
            let back = Renaming { from: "longer-than-any", to: "a" };
            if let Some(renamed) = there.in_link(&path) {
                proptest::prop_assert_eq!(back.in_link(&renamed), Some(path.replace("%61", "a")));
            }
        }

        #[test]
        fn no_link_is_too_odd(link in ".{0,30}", id in ".{1,5}") {
            let _any = Renaming { from: &id, to: "x" }.in_link(&link);
            let mut headers = HeaderMap::new();
            if let Ok(value) = HeaderValue::try_from(link) {
                headers.insert(LOCATION, value);
            }
            let _any = at_the_end_of_location(&headers);
        }
    }
}
