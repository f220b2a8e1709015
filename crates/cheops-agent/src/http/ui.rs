//! The web UI: files that were built in, or a page that says how to build it.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};

use super::refusal;

/// One file of the UI.
#[derive(Debug)]
struct UiFile {
    path: &'static str,
    plain: &'static [u8],
    br: Option<&'static [u8]>,
    gz: Option<&'static [u8]>,
}

const FILES: &[UiFile] = include!(concat!(env!("OUT_DIR"), "/ui.rs"));

/// Nothing comes from elsewhere, and nobody else's page may hold ours.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' data:; connect-src 'self'; font-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Names under here change with what they name.
const HASHED: &str = "/assets/";
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const ASK_FIRST: &str = "no-cache";

const NOT_BUILT: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>Cheops</title>
<h1>The agent runs. Its web UI was not built in.</h1>
<p>To have it here: <code>make build</code> in the source folder (it needs Node and npm), then start
the agent anew.</p>
<p>Everything else works for who was let in, by <code>cheops open</code>: <a href=\"/api/v1/sites\">sites</a>,
<a href=\"/api/v1/resources\">resources</a>, <a href=\"/metrics\">metrics</a>, and all that
<a href=\"/openapi.json\">the API</a> has.</p>
";

/// What is at no other address: a file of the UI, or nothing.
pub(super) async fn page(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let path = if uri.path() == "/" { "/index.html" } else { uri.path() };
    let file = FILES.iter().find(|file| file.path == path);
    match file.filter(|_| matches!(method, Method::GET | Method::HEAD)) {
        Some(file) => file.answer(&headers),
        None if uri.path() == "/" => not_built(),
        None => refusal::no_such_page(uri).await.into_response(),
    }
}

/// Whether it is a file of the page: the same for all who look.
pub(super) fn is_of_page(path: &str) -> bool {
    path == "/" || FILES.iter().any(|file| file.path == path)
}

fn not_built() -> Response {
    let kind = [(CONTENT_TYPE, content_type("/index.html")), (CACHE_CONTROL, "no-store")];
    (SAFE, kind, NOT_BUILT).into_response()
}

const SAFE: [(HeaderName, &str); 3] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
];

impl UiFile {
    fn answer(&self, asked: &HeaderMap) -> Response {
        let (coding, bytes) = self.packed_for(asked);
        let is_hashed = self.path.starts_with(HASHED);
        let cache = if is_hashed { FOR_EVER } else { ASK_FIRST };
        let mark = format!("\"{}\"", &blake3::hash(bytes).to_hex()[..16]);
        let known = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let is_known = known.flat_map(|value| value.split(',')).any(|one| one.trim() == mark);
        let mut response = match is_known {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => ([(CONTENT_TYPE, content_type(self.path))], Body::from(bytes)).into_response(),
        };
        let headers = response.headers_mut();
        headers.extend(SAFE.map(|(name, value)| (name, HeaderValue::from_static(value))));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        headers.extend(HeaderValue::from_str(&mark).ok().map(|mark| (ETAG, mark)));
        headers.extend(coding.map(|it| (CONTENT_ENCODING, HeaderValue::from_static(it))));
        response
    }

    fn packed_for(&self, asked: &HeaderMap) -> (Option<&'static str>, &'static [u8]) {
        let packed = [("br", self.br), ("gzip", self.gz)].into_iter();
        let mut fitting = packed.filter_map(|(coding, bytes)| Some((coding, bytes?)));
        match fitting.find(|(coding, _)| takes(asked, coding)) {
            Some((coding, bytes)) => (Some(coding), bytes),
            None => (None, self.plain),
        }
    }
}

/// Whether whoever asks can read that.
fn takes(asked: &HeaderMap, coding: &str) -> bool {
    let values = asked.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let is_it = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(coding));
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        is_it && weight.is_none_or(|weight| weight.parse().is_ok_and(|weight: f32| weight > 0.0))
    })
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: UiFile =
        UiFile { path: "/assets/main-1a2b.js", plain: b"plain", br: Some(b"br"), gz: Some(b"gz") };
    const INDEX: UiFile = UiFile { path: "/index.html", plain: b"<html>", br: None, gz: None };

    fn asking(name: HeaderName, value: &str) -> HeaderMap {
        [(name, value.parse().unwrap())].into_iter().collect()
    }

    fn header(response: &Response, name: HeaderName) -> &str {
        response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[test]
    fn who_can_read_packed_files_gets_the_smallest() {
        for (accepts, coding, bytes) in [
            ("gzip, deflate, br", Some("br"), b"br".as_slice()),
            ("gzip", Some("gzip"), b"gz"),
            ("br;q=0, GZIP;q=0.5", Some("gzip"), b"gz"),
            ("identity", None, b"plain"),
            ("*", None, b"plain"),
        ] {
            let asked = asking(ACCEPT_ENCODING, accepts);
            assert_eq!(SCRIPT.packed_for(&asked), (coding, bytes), "{accepts}");
        }
        assert_eq!(INDEX.packed_for(&asking(ACCEPT_ENCODING, "br")), (None, b"<html>".as_slice()));
    }

    #[test]
    fn what_is_named_by_its_content_is_kept_for_ever_and_the_rest_is_asked_for() {
        let script = SCRIPT.answer(&HeaderMap::new());
        assert_eq!(header(&script, CACHE_CONTROL), "public, max-age=31536000, immutable");
        assert_eq!(header(&script, CONTENT_TYPE), "text/javascript; charset=utf-8");
        assert_eq!(header(&INDEX.answer(&HeaderMap::new()), CACHE_CONTROL), "no-cache");
    }

    #[test]
    fn who_has_it_already_is_told_so() {
        let first = INDEX.answer(&HeaderMap::new());
        let mark = header(&first, ETAG).to_owned();
        let again = INDEX.answer(&asking(IF_NONE_MATCH, &mark));
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(header(&again, CONTENT_SECURITY_POLICY), POLICY);
        let other = INDEX.answer(&asking(IF_NONE_MATCH, "\"another\""));
        assert_eq!(other.status(), StatusCode::OK);
    }
}
