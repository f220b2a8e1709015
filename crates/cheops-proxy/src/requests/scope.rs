//! Which scope a request runs under: what its headers say, and what was remembered of the request
//! on whose behalf it is made.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::ids::Name;

mod trace;

/// The scope, spelt out.
const SCOPE: HeaderName = HeaderName::from_static("x-scope");
pub(super) const CHEOPS_SCOPE: HeaderName = HeaderName::from_static("x-cheops-scope");
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

    /// Gives a scoped request every mark by which a service may speak of it: this name, which was
    /// given to it here, and the scope itself, where it is not there already. Ids that others chose are replaced, unless they are
    /// to be kept: whoever repeats one must get nothing by it. What was replaced is given back in
    /// the answer.
    pub(super) fn set(
        &self,
        headers: &mut HeaderMap,
        written: Option<&WrittenScope>,
        name: Name,
        others: Others,
    ) -> Vec<Replaced> {
        let given = GivenId::new(name);
        let mut replaced = Vec::new();
        // Nova takes an id of exactly this form, and only if it is alone.
        let stays = |value: &HeaderValue| {
            is_openstack(value.as_bytes())
                && others.stay(name_of("openstack", text_of(value)), name)
        };
        if !only(headers, &OPENSTACK).is_some_and(stays) {
            replaced.extend(given.replace(headers, OPENSTACK, GivenId::OPENSTACK));
        }
        for plain in std::iter::once(&REQUEST_ID).chain(&self.own) {
            let kind = if *plain == REQUEST_ID { "request" } else { plain.as_str() };
            let stays = |value: &HeaderValue| others.stay(name_of(kind, text_of(value)), name);
            let stay = match only(headers, plain) {
                Some(value) => stays(value),
                // Two of them name nobody, and are nobody's to take if they are trusted.
                None => others == Others::Stay && headers.contains_key(plain),
            };
            if !stay {
                replaced.extend(given.replace(headers, plain.clone(), GivenId::REQUEST_ID));
            }
        }
        trace::set(headers, &given, name, others);
        if let Some(written) = written {
            written.set(headers);
        }
        replaced
    }
}

/// What becomes of ids that others chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    Stay,
    Go,
}

impl Others {
    /// Where they are trusted, they stay.
    pub(super) fn of(trusts: bool) -> Self {
        if trusts { Self::Stay } else { Self::Go }
    }

    /// Whether this one stays where that one is to be.
    fn stay(self, this: Name, name: Name) -> bool {
        self == Self::Stay || this == name
    }
}

/// An id that somebody else chose, and what was put in its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    header: HeaderName,
    theirs: HeaderValue,
    ours: HeaderValue,
}

impl Replaced {
    /// Gives it back in an answer that speaks of the request.
    pub(super) fn give_back(self, answer: &mut HeaderMap) {
        if only(answer, &self.header) == Some(&self.ours) {
            answer.insert(self.header, self.theirs);
        }
    }
}

/// The value of a header that is there once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let (first, more) = (values.next(), values.next());
    first.filter(|_| more.is_none())
}

fn text_of(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or_default()
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
pub(super) struct WrittenScope {
    scope: Option<HeaderValue>,
    baggage: Option<HeaderValue>,
}

impl WrittenScope {
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

/// An id that was given to a request, in every form in which a service may speak of it. They are
/// parts of one text.
struct GivenId {
    text: Bytes,
}

impl GivenId {
    const OPENSTACK: Range<usize> = 0..40;
    const REQUEST_ID: Range<usize> = 4..40;
    const TRACEPARENT: Range<usize> = 40..95;
    const TRACE: Range<usize> = 43..75;
    const SPAN: Range<usize> = 76..92;

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

    fn part(&self, part: Range<usize>) -> &str {
        std::str::from_utf8(&self.text[part]).unwrap_or_default()
    }

    fn set(&self, headers: &mut HeaderMap, name: HeaderName, part: Range<usize>) {
        if let Ok(value) = HeaderValue::from_maybe_shared(self.text.slice(part)) {
            headers.insert(name, value);
        }
    }

    /// Sets it in the place of what is there, and says what that was.
    fn replace(
        &self,
        headers: &mut HeaderMap,
        name: HeaderName,
        part: Range<usize>,
    ) -> Option<Replaced> {
        let theirs = only(headers, &name).cloned();
        let ours = HeaderValue::from_maybe_shared(self.text.slice(part)).ok()?;
        headers.insert(name.clone(), ours.clone());
        Some(Replaced { header: name, theirs: theirs?, ours })
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
        let written = WrittenScope::new("{compute: paris, image: lyon}");
        let had = Marks::default().set(&mut sent, Some(&written), DRAWN, Others::Go);
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

    /// Gives the headers the marks of a request to image at lyon.
    fn set_in(sent: &mut HeaderMap, others: Others) -> Vec<Replaced> {
        Marks::default().set(sent, Some(&WrittenScope::new("{image: lyon}")), DRAWN, others)
    }

    #[test]
    fn ids_that_a_client_chose_are_replaced_and_given_back_in_the_answer() {
        let own = "req-0a1b2c3d-0000-4000-8000-00000000000a";
        let chosen = [("x-openstack-request-id", own), ("x-request-id", "mine-mine")];
        let mut sent = headers(&chosen);
        let replaced = set_in(&mut sent, Others::Go);
        assert_eq!(Marks::default().names(&sent), [DRAWN], "nothing of the client's is left");

        let mut answer = headers(&[("x-request-id", sent[&REQUEST_ID].to_str().unwrap())]);
        answer.insert(OPENSTACK, "req-of-the-service".parse().unwrap());
        replaced.into_iter().for_each(|one| one.give_back(&mut answer));
        assert_eq!(answer[&REQUEST_ID], "mine-mine");
        assert_eq!(answer[&OPENSTACK], "req-of-the-service", "it has one of its own");
    }

    #[test]
    fn ids_that_are_trusted_stay_but_for_those_that_nova_would_not_take() {
        let own = "req-0a1b2c3d-0000-4000-8000-00000000000a";
        let mut sent = headers(&[("x-openstack-request-id", own), ("x-request-id", "mine-mine")]);
        assert_eq!(set_in(&mut sent, Others::Stay), []);
        assert_eq!(
            (&sent[&OPENSTACK], &sent[&REQUEST_ID]),
            (&own.parse().unwrap(), &"mine-mine".parse().unwrap())
        );
        let upper = own.to_uppercase().replace("REQ", "req");
        for bad in [vec![upper.as_str()], vec![own, own], vec!["mine"]] {
            let lines: Vec<_> = bad.iter().map(|id| ("x-openstack-request-id", *id)).collect();
            let mut sent = headers(&lines);
            set_in(&mut sent, Others::Stay);
            assert_eq!(sent.get_all(&OPENSTACK).iter().count(), 1);
            assert!(is_openstack(sent[&OPENSTACK].as_bytes()), "{bad:?}");
            assert_ne!(sent[&OPENSTACK], own);
        }
    }

    #[test]
    fn an_id_that_was_given_here_stays_as_the_service_writes_it() {
        let mut sent = HeaderMap::new();
        set_in(&mut sent, Others::Go);
        let written = uuid::Uuid::from_u128(DRAWN).simple().to_string().to_uppercase();
        sent.insert(REQUEST_ID, written.parse().unwrap());
        let before = sent.clone();
        assert_eq!(set_in(&mut sent, Others::Go), []);
        assert_eq!(sent, before);
    }

    #[test]
    fn the_scope_that_counts_is_the_only_one_that_travels_on() {
        let mut sent = headers(&[("baggage", "a=b,cheops-scope=image:paris"), ("baggage", "c=d")]);
        set_in(&mut sent, Others::Go);
        sent.remove(SCOPE);
        assert_eq!(carried(&sent).unwrap().unwrap(), "{image: lyon}");
        let members: Vec<_> = sent.get_all(BAGGAGE).iter().collect();
        assert_eq!(members, ["a=b,c=d", "cheops-scope={image:%20lyon}"]);
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
        let written = WrittenScope::new("{image: lyon}");
        assert_eq!(own.set(&mut sent, Some(&written), DRAWN, Others::Go), []);
        let passed_on = [("x-correlation-id", sent["x-correlation-id"].to_str().unwrap())];
        assert_eq!(own.names(&headers(&passed_on)), [DRAWN]);
        assert_eq!(Marks::default().names(&headers(&passed_on)), []);

        let chosen = [("x-correlation-id", "order-4711")];
        let mut sent = headers(&chosen);
        let replaced = own.set(&mut sent, Some(&written), DRAWN, Others::Go);
        assert_eq!((own.names(&sent), replaced.len()), (vec![DRAWN], 1));
        let mut sent = headers(&chosen);
        own.set(&mut sent, Some(&written), DRAWN, Others::Stay);
        assert_eq!(sent["x-correlation-id"], "order-4711");
    }
}
