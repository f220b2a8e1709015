//! Whom a service's proxy serves: the hosts it is asked for by, the pages that may ask. And what
//! nobody but agents may say.

use std::sync::Arc;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::refusal::ProxyRefusal;
use super::scope::CHEOPS_SCOPE;
use crate::config::{HostRule, ServiceConfig};

/// What headers begin with that agents put on.
const OURS: &str = "x-cheops-";

/// Takes off what only agents say, so that nobody else is taken for one; all but the scope, which
/// is for anybody to say.
pub(super) fn take_off_ours(headers: &mut HeaderMap) {
    let is_ours = |name: &&HeaderName| name.as_str().starts_with(OURS) && **name != CHEOPS_SCOPE;
    // On the way of every request, and hardly ever anything: nothing is made for it.
    while let Some(name) = headers.keys().find(is_ours).cloned() {
        headers.remove(name);
    }
}

/// Which requests of clients a service's proxy takes.
#[derive(Debug, Clone, Default)]
pub(super) struct Admission {
    /// Any, if there are none.
    hosts: Arc<[HostRule]>,
    /// Any, if there are none.
    origins: Arc<[String]>,
}

impl Admission {
    pub(super) fn new(config: &ServiceConfig) -> Self {
        Self { hosts: config.hosts.clone().into(), origins: config.origins.clone().into() }
    }

    /// Refuses what is not for this service, or comes from a page of somebody else.
    pub(super) fn check(&self, service: &str, headers: &HeaderMap) -> Result<(), ProxyRefusal> {
        if !self.hosts.is_empty() {
            let host = headers.get(HOST).map(HeaderValue::to_str).unwrap_or(Ok(""));
            let host = host.unwrap_or_default();
            if !self.hosts.iter().any(|rule| rule.is_met_by(host)) {
                return Err(ProxyRefusal::wrong_host(service, host));
            }
        }
        if !self.origins.is_empty() {
            // Whoever is no page says nothing here.
            for origin in headers.get_all(ORIGIN) {
                let origin = origin.to_str().unwrap_or("?");
                if !self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin)) {
                    return Err(ProxyRefusal::wrong_origin(service, origin));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::headers::tests::headers;
    use super::*;

    #[test]
    fn what_only_agents_say_is_taken_off_however_often_and_the_scope_stays() {
        let mut sent = headers(&[
            ("x-cheops-error", "unreachable"),
            ("x-cheops-site", "paris"),
            ("x-cheops-site", "lyon"),
            ("x-cheops-whatever", "1"),
            ("x-cheops-scope", "image: lyon"),
            ("x-cheop", "1"),
        ]);
        take_off_ours(&mut sent);
        assert_eq!(sent, headers(&[("x-cheops-scope", "image: lyon"), ("x-cheop", "1")]));
    }

    #[test]
    fn only_hosts_and_origins_that_are_listed_are_served() {
        let hosts = ["image.example", "[::1]:80"].map(|host| host.parse().unwrap());
        let origins = vec!["https://ui.example".to_owned()];
        let admission = Admission { hosts: hosts.to_vec().into(), origins: origins.into() };
        type Lines = [(&'static str, &'static str)];
        let cases: &[(&Lines, u16)] = &[
            (&[("host", "image.example")], 200),
            (&[("host", "IMAGE.example:19292")], 200),
            (&[("host", "[::1]:80")], 200),
            (&[("host", "[::1]:81")], 421),
            (&[("host", "evil.example")], 421),
            (&[("host", "image.example.evil")], 421),
            (&[], 421),
            (&[("host", "image.example"), ("origin", "https://UI.example")], 200),
            (&[("host", "image.example"), ("origin", "http://ui.example")], 403),
            (&[("host", "image.example"), ("origin", "null")], 403),
            (
                &[
                    ("host", "image.example"),
                    ("origin", "https://ui.example"),
                    ("origin", "https://evil.example"),
                ],
                403,
            ),
        ];
        for (lines, expected) in cases {
            let checked = admission.check("image", &headers(lines));
            let status = checked.map_or_else(|refused| refused.status().as_u16(), |()| 200);
            assert_eq!(status, *expected, "{lines:?}");
        }
        let evil = headers(&[("host", "evil.example"), ("origin", "https://evil.example")]);
        assert!(Admission::default().check("image", &evil).is_ok(), "any, where none is listed");
    }
}
