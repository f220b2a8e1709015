//! Which scope a request runs under: what its headers say, and what was remembered of the request
//! on whose behalf it is made.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::ids::Name;

/// The scope, spelt out.
const SCOPE: HeaderName = HeaderName::from_static("x-scope");
const CHEOPS_SCOPE: HeaderName = HeaderName::from_static("x-cheops-scope");
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");
/// The scope among what travels with a trace.
const MEMBER: &str = "cheops-scope";

const OPENSTACK: HeaderName = HeaderName::from_static("x-openstack-request-id");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const B3: HeaderName = HeaderName::from_static("b3");
const B3_TRACE: HeaderName = HeaderName::from_static("x-b3-traceid");

/// What baggage may not hold as it is.
const IN_BAGGAGE: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b',').add(b';').add(b'\\').add(b'%').add(b'=');

/// Two scopes where there can be one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request carries two scopes, `{0}` and `{1}`")]
pub(super) struct TwoScopes(String, String);

/// The scope that the request itself carries.
pub(super) fn carried(headers: &HeaderMap) -> Result<Option<Cow<'_, str>>, TwoScopes> {
    let mut found: Option<Cow<'_, str>> = None;
    let spelt = headers.get_all(SCOPE).iter().chain(headers.get_all(CHEOPS_SCOPE));
    for value in spelt {
        let scope = String::from_utf8_lossy(value.as_bytes());
        match &found {
            Some(first) if first.trim() != scope.trim() => {
                return Err(TwoScopes(first.to_string(), scope.into_owned()));
            }
            _ => found = Some(scope),
        }
    }
    Ok(found.or_else(|| in_baggage(headers)))
}

fn in_baggage(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let lists = headers.get_all(BAGGAGE).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).find_map(|member| {
        let (name, value) = member.split_once('=')?;
        let value = value.split(';').next().unwrap_or_default().trim();
        let is_ours = name.trim() == MEMBER && !value.is_empty();
        is_ours.then(|| Cow::Owned(percent_decode_str(value).decode_utf8_lossy().into_owned()))
    })
}

/// The headers in which services name the request they work on.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    /// Those of this application, beside the usual ones.
    own: Vec<HeaderName>,
}

impl Marks {
    pub(super) fn new(own: &[HeaderName]) -> Self {
        let mut own = own.to_vec();
        own.retain(|name| ![OPENSTACK, REQUEST_ID, TRACEPARENT, B3, B3_TRACE].contains(name));
        Self { own }
    }

    /// The names that these headers give a request.
    pub(super) fn names(&self, headers: &HeaderMap) -> Vec<Name> {
        let one = |name: &HeaderName, kind: &str| {
            let mut values = headers.get_all(name).iter();
            let (value, more) = (values.next()?, values.next());
            // Two of them name nobody.
            let value = value.to_str().ok().filter(|value| more.is_none() && is_name(value))?;
            Some(name_of(kind, value))
        };
        let trace = |id: Option<&str>| id.filter(|id| is_trace(id)).map(|id| name_of("trace", id));
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let parent = text(&TRACEPARENT).and_then(|value| value.split('-').nth(1));
        let b3 = text(&B3).and_then(|value| value.split('-').next());
        let usual = [
            one(&OPENSTACK, "openstack"),
            trace(parent),
            one(&REQUEST_ID, "request"),
            trace(b3),
            trace(text(&B3_TRACE)),
        ];
        let own = self.own.iter().map(|name| one(name, name.as_str()));
        let mut names = Vec::new();
        for name in usual.into_iter().chain(own).flatten() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Gives a scoped request every mark by which a service may speak of it, and the scope itself:
    /// the name that was drawn for it, where it has none. The other names that it has then.
    pub(super) fn set(&self, headers: &mut HeaderMap, written: &Written, name: Name) -> Vec<Name> {
        let drawn = Drawn::new(name);
        // Nova takes an id of exactly this form, and only if it is alone.
        let mut openstack = headers.get_all(OPENSTACK).iter();
        let (first, more) = (openstack.next(), openstack.next());
        let is_named = more.is_none() && first.is_some_and(|one| is_openstack(one.as_bytes()));
        if !is_named {
            drawn.set(headers, OPENSTACK, Drawn::OPENSTACK);
        }
        let mut has_others = is_named || headers.contains_key(B3_TRACE);
        for plain in std::iter::once(&REQUEST_ID).chain(&self.own) {
            match headers.contains_key(plain) {
                true => has_others = true,
                false => drawn.set(headers, plain.clone(), Drawn::REQUEST_ID),
            }
        }
        match headers.contains_key(TRACEPARENT) || headers.contains_key(B3) {
            true => has_others = true,
            false => drawn.set(headers, TRACEPARENT, Drawn::TRACEPARENT),
        }
        written.set(headers);
        if !has_others {
            return Vec::new();
        }
        let mut names = self.names(headers);
        names.retain(|one| *one != name);
        names
    }
}

/// An id that nobody else draws is the same name in every header. What a client made up is one
/// only among others of its kind.
fn name_of(kind: &str, value: &str) -> Name {
    let id = uuid::Uuid::try_parse_ascii(value.strip_prefix("req-").unwrap_or(value).as_bytes());
    if let Ok(id) = id {
        return id.as_u128();
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(kind.as_bytes()).update(b":").update(value.as_bytes());
    let mut name = [0; 16];
    hasher.finalize_xof().fill(&mut name);
    Name::from_le_bytes(name)
}

fn is_name(value: &str) -> bool {
    (8..=128).contains(&value.len())
}

fn is_trace(id: &str) -> bool {
    matches!(id.len(), 16 | 32)
        && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        && id.bytes().any(|byte| byte != b'0')
}

/// A scope as it travels: written once, for all requests that carry it.
#[derive(Debug, Clone)]
pub(super) struct Written {
    scope: Option<HeaderValue>,
    baggage: Option<HeaderValue>,
}

impl Written {
    pub(super) fn new(scope: &str) -> Self {
        let member = format!("{MEMBER}={}", utf8_percent_encode(scope, IN_BAGGAGE));
        Self {
            scope: HeaderValue::try_from(scope).ok(),
            baggage: HeaderValue::try_from(member).ok(),
        }
    }

    /// Makes it the only scope there.
    fn set(&self, headers: &mut HeaderMap) {
        headers.remove(CHEOPS_SCOPE);
        if let Some(scope) = &self.scope {
            headers.insert(SCOPE, scope.clone());
        }
        if in_baggage(headers).is_some() {
            remove_from_baggage(headers);
        }
        if let Some(member) = &self.baggage {
            headers.append(BAGGAGE, member.clone());
        }
    }
}

/// An id that was drawn for a request, in every form in which a service may speak of it. They are
/// parts of one text.
struct Drawn {
    text: Bytes,
}

impl Drawn {
    const OPENSTACK: Range<usize> = 0..40;
    const REQUEST_ID: Range<usize> = 4..40;
    const TRACEPARENT: Range<usize> = 40..95;

    fn new(name: Name) -> Self {
        let id = uuid::Uuid::from_u128(name);
        let mut text = Vec::with_capacity(Self::TRACEPARENT.end);
        text.extend_from_slice(b"req-");
        text.extend_from_slice(id.hyphenated().encode_lower(&mut [0; 36]).as_bytes());
        let mut trace = [0; 32];
        id.simple().encode_lower(&mut trace);
        for part in [b"00-", &trace[..], b"-", &trace[16..], b"-01"] {
            text.extend_from_slice(part);
        }
        Self { text: text.into() }
    }

    fn set(&self, headers: &mut HeaderMap, name: HeaderName, part: Range<usize>) {
        if let Ok(value) = HeaderValue::from_maybe_shared(self.text.slice(part)) {
            headers.insert(name, value);
        }
    }
}

/// A scope that came with it may be another than the one that counts.
fn remove_from_baggage(headers: &mut HeaderMap) {
    let is_ours =
        |member: &&str| member.split('=').next().is_some_and(|name| name.trim() == MEMBER);
    let lists = headers.get_all(BAGGAGE).iter().filter_map(|value| value.to_str().ok());
    let others = lists.flat_map(|list| list.split(',')).filter(|member| !is_ours(member));
    let others = others.collect::<Vec<_>>().join(",");
    headers.remove(BAGGAGE);
    if !others.is_empty() {
        set(headers, BAGGAGE, others);
    }
}

/// `req-` and a UUID in lower case.
fn is_openstack(value: &[u8]) -> bool {
    let uuid = value.strip_prefix(b"req-");
    uuid.is_some_and(|uuid| {
        !uuid.iter().any(u8::is_ascii_uppercase)
            && uuid.len() == 36
            && uuid::Uuid::try_parse_ascii(uuid).is_ok()
    })
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::headers::tests::headers;
    use super::*;

    const DRAWN: Name = 0x0a1b_2c3d_4e5f_4607_8819_2a3b_4c5d_6e7f;

    #[test]
    fn a_scope_is_found_where_it_is_spelt_out_then_in_the_baggage() {
        type Lines = [(&'static str, &'static str)];
        let cases: &[(&Lines, Option<&str>)] = &[
            (&[], None),
            (&[("x-scope", "{image: lyon}")], Some("{image: lyon}")),
            (&[("x-cheops-scope", "image: lyon")], Some("image: lyon")),
            (&[("baggage", "a=b, cheops-scope=%7Bimage%3A%20lyon%7D;p=1")], Some("{image: lyon}")),
            (
                &[("baggage", "cheops-scope=image:lyon"), ("x-scope", "image: paris")],
                Some("image: paris"),
            ),
            (&[("x-scope", "image: lyon"), ("x-cheops-scope", "image: lyon")], Some("image: lyon")),
            (&[("baggage", "cheops-scope=")], None),
        ];
        for (lines, expected) in cases {
            assert_eq!(carried(&headers(lines)).unwrap().as_deref(), *expected, "{lines:?}");
        }
        let two = headers(&[("x-scope", "image: lyon"), ("x-scope", "image: paris")]);
        assert!(carried(&two).is_err());
    }

    #[test]
    fn a_scoped_request_can_be_spoken_of_in_every_way() {
        let mut sent = HeaderMap::new();
        let had =
            Marks::default().set(&mut sent, &Written::new("{compute: paris, image: lyon}"), DRAWN);
        assert_eq!(had, []);
        let names = [DRAWN];
        assert_eq!(Marks::default().names(&sent), names, "all of them are one");
        for one in [&OPENSTACK, &REQUEST_ID, &TRACEPARENT] {
            let alone = headers(&[(one.as_str(), sent[one].to_str().unwrap())]);
            assert_eq!(Marks::default().names(&alone), names, "{one}");
        }
        let openstack = sent[&OPENSTACK].to_str().unwrap();
        assert!(is_openstack(openstack.as_bytes()), "{openstack}");
        sent.remove(SCOPE);
        assert_eq!(carried(&sent).unwrap().unwrap(), "{compute: paris, image: lyon}");
    }

    #[test]
    fn ids_that_a_client_chose_are_kept_and_one_that_nova_would_not_take_is_replaced() {
        let own = "req-0a1b2c3d-0000-4000-8000-00000000000a";
        let mut sent = headers(&[("x-openstack-request-id", own), ("x-request-id", "mine-mine")]);
        let names = Marks::default().set(&mut sent, &Written::new("image: lyon"), DRAWN);
        let mut all = Marks::default().names(&sent);
        all.retain(|name| *name != DRAWN);
        assert_eq!(names, all, "the client's");
        assert_eq!(names.len(), 2);
        assert_eq!(sent[&OPENSTACK], own);
        assert_eq!(sent[&REQUEST_ID], "mine-mine");
        let upper = own.to_uppercase().replace("REQ", "req");
        for bad in [vec![upper.as_str()], vec![own, own], vec!["mine"]] {
            let lines: Vec<_> = bad.iter().map(|id| ("x-openstack-request-id", *id)).collect();
            let mut sent = headers(&lines);
            Marks::default().set(&mut sent, &Written::new("image: lyon"), DRAWN);
            assert_eq!(sent.get_all(&OPENSTACK).iter().count(), 1);
            assert!(is_openstack(sent[&OPENSTACK].as_bytes()), "{bad:?}");
            assert_ne!(sent[&OPENSTACK], own);
        }
    }

    #[test]
    fn the_scope_that_counts_is_the_only_one_that_travels_on() {
        let mut sent = headers(&[("baggage", "a=b,cheops-scope=image:paris"), ("baggage", "c=d")]);
        Marks::default().set(&mut sent, &Written::new("image: lyon"), DRAWN);
        sent.remove(SCOPE);
        assert_eq!(carried(&sent).unwrap().unwrap(), "image: lyon");
        let members: Vec<_> = sent.get_all(BAGGAGE).iter().collect();
        assert_eq!(members, ["a=b,c=d", "cheops-scope=image:%20lyon"]);
    }

    #[test]
    fn a_name_is_of_its_kind_and_alone() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let parent = format!("00-{trace}-00f067aa0ba902b7-01");
        let of = |lines: &[(&str, &str)]| Marks::default().names(&headers(lines));
        assert_eq!(of(&[("traceparent", &parent)]), of(&[("b3", &format!("{trace}-1-1"))]));
        let made_up = [("x-request-id", "made-up-id")];
        assert_eq!(of(&made_up).len(), 1);
        assert_ne!(of(&made_up), of(&[("x-openstack-request-id", "made-up-id")]));
        let nothing: [&[(&str, &str)]; 4] = [
            &[("traceparent", "00-00000000000000000000000000000000-00f067aa0ba902b7-01")],
            &[("traceparent", "junk")],
            &[("x-request-id", "first-id"), ("x-request-id", "second-id")],
            &[("x-request-id", "1")],
        ];
        for lines in nothing {
            assert!(Marks::default().names(&headers(lines)).is_empty(), "{lines:?}");
        }
    }

    #[test]
    fn an_application_may_have_headers_of_its_own_for_ids() {
        let own = Marks::new(&["x-correlation-id", "x-request-id"].map(HeaderName::from_static));
        let mut sent = HeaderMap::new();
        assert_eq!(own.set(&mut sent, &Written::new("image: lyon"), DRAWN), []);
        let passed_on = [("x-correlation-id", sent["x-correlation-id"].to_str().unwrap())];
        assert_eq!(own.names(&headers(&passed_on)), [DRAWN]);
        assert_eq!(Marks::default().names(&headers(&passed_on)), []);

        let chosen = [("x-correlation-id", "order-4711")];
        let mut sent = headers(&chosen);
        let names = own.set(&mut sent, &Written::new("image: lyon"), DRAWN);
        assert_eq!(names, own.names(&headers(&chosen)));
        assert_eq!(sent["x-correlation-id"], "order-4711");
    }
}
