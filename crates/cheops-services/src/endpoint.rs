//! One service of this site: where it is, and how a request to it looks.

use http::header::HOST;
use http::request::Parts;
use http::uri::{Authority, InvalidUri, PathAndQuery};
use http::{HeaderMap, HeaderValue, Request, Response, Uri, Version};

use super::body::OutgoingBody;
use super::connector::Connector;
use super::headers::Pseudonym;
use super::pool::{AnswerBody, HeldConnection, Pool, Unanswered};

/// One service. Clones share its connections.
#[derive(Clone)]
pub struct Endpoint {
    upstream: Uri,
    /// What its own paths begin with, without a slash at the end.
    prefix: String,
    /// For requests that name no host.
    host: HeaderValue,
    via: Pseudonym,
    pool: Pool,
}

impl Endpoint {
    pub(super) fn new(site: &str, name: &str, upstream: Uri, connector: Connector) -> Self {
        let host = HeaderValue::try_from(upstream.authority().map_or("", host_of));
        Self {
            prefix: upstream.path().trim_end_matches('/').to_owned(),
            host: host.unwrap_or(HeaderValue::from_static("")),
            via: Pseudonym::new(site, name),
            pool: Pool::new(connector, upstream.clone()),
            upstream,
        }
    }

    /// The same service, with connections of its own.
    pub fn apart(&self) -> Self {
        Self { pool: self.pool.apart(), ..self.clone() }
    }

    /// Where it is, as configured.
    pub fn upstream(&self) -> &Uri {
        &self.upstream
    }

    /// What is said in `Via` of all that passes between this site and the service.
    pub fn via(&self) -> &Pseudonym {
        &self.via
    }

    /// A path at the service: its own, then the one that is asked for.
    pub fn join(&self, path: &str) -> Result<Uri, InvalidUri> {
        let slash = if path.starts_with('/') { "" } else { "/" };
        let joined = PathAndQuery::try_from(format!("{}{slash}{path}", self.prefix));
        joined.map(Uri::from)
    }

    /// Leads a request that somebody else made to the service.
    pub fn lead_to(&self, head: &mut Parts) -> Result<(), InvalidUri> {
        // Mostly the path is what it is to be already.
        if !self.prefix.is_empty() || head.uri.authority().is_some() {
            head.uri = self.join(head.uri.path_and_query().map_or("/", PathAndQuery::as_str))?;
        }
        head.version = Version::HTTP_11;
        self.address(&mut head.headers);
        self.via.sign(&mut head.headers);
        Ok(())
    }

    /// Names the host where nobody did.
    fn address(&self, headers: &mut HeaderMap) {
        headers.entry(HOST).or_insert_with(|| self.host.clone());
    }

    /// Makes a request to a path of this service its own. It says that it comes from here, once,
    /// though it may have been here before, when it became an operation.
    pub fn sign(&self, headers: &mut HeaderMap) {
        self.address(headers);
        if !self.via.is_in(headers) {
            self.via.sign(headers);
        }
    }

    /// Sends a request that was made ready, and waits for the head of the answer.
    pub async fn ask(
        &self,
        request: Request<OutgoingBody>,
    ) -> Result<Response<AnswerBody>, Unanswered> {
        self.pool.ask(request).await
    }

    /// Sees to it that there is a connection, which is there for the next request once it is let go.
    pub async fn hold(&self) -> Result<HeldConnection, Unanswered> {
        self.pool.hold().await
    }
}

/// An authority without what a client would say of itself.
fn host_of(authority: &Authority) -> &str {
    authority.as_str().rsplit('@').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::Services;
    use super::*;

    fn endpoint(upstream: &str) -> Endpoint {
        let upstream = ("app".to_owned(), upstream.parse().unwrap());
        Services::new("here", [upstream]).unwrap().find("app").unwrap().clone()
    }

    #[test]
    fn a_path_goes_after_the_services_own() {
        let cases = [
            ("http://h:1", "/a?b=c", Some("/a?b=c")),
            ("http://h:1/", "a", Some("/a")),
            ("http://h:1/p/", "/a", Some("/p/a")),
            ("http://h:1/p", "/", Some("/p/")),
            ("http://h:1", "/a b", None),
        ];
        for (upstream, path, expected) in cases {
            let found = endpoint(upstream).join(path).ok().map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{upstream} {path}");
            let Ok(uri) = Uri::try_from(path) else { continue };
            // A request that passes comes to the same path.
            let mut head = Request::get(uri).body(()).unwrap().into_parts().0;
            endpoint(upstream).lead_to(&mut head).unwrap();
            if path.starts_with('/') {
                assert_eq!(Some(head.uri.to_string().as_str()), expected, "{upstream} {path}");
            }
        }
    }

    #[test]
    fn whatever_goes_to_a_service_says_once_where_it_comes_from_and_for_whom_it_is() {
        let endpoint = endpoint("http://user@h:1");
        let mut headers = HeaderMap::new();
        for _ in 0..2 {
            endpoint.sign(&mut headers);
        }
        let lines: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        assert_eq!(lines, ["host=\"h:1\"", "via=\"1.1 cheops-here-app\""]);
    }
}
