//! Where to try a request, in which order, and when to try the next one.

use cheops_core::model::SiteId;
use cheops_scope::Target;
use http::{Method, StatusCode};

/// What this proxy does not do with a single request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Collaboration {
    /// `&`.
    Replication,
    /// `%`.
    Cross,
}

/// The sites of a target, first to last.
pub(super) fn sites(target: &Target) -> Result<Vec<SiteId>, Collaboration> {
    match target {
        Target::Site(site) => Ok(SiteId::new(site.as_str()).into_iter().collect()),
        Target::All(_) => Err(Collaboration::Replication),
        Target::Cross(_) => Err(Collaboration::Cross),
        Target::FirstOf(parts) => {
            let sites: Result<Vec<_>, _> = parts.iter().map(sites).collect();
            Ok(sites?.concat())
        }
    }
}

/// The sites that something spans, in the order written; `None` if a part of it is more than a
/// site.
pub(super) fn spanned(parts: &[Target]) -> Option<Vec<SiteId>> {
    let site = |part: &Target| match part {
        Target::Site(site) => SiteId::new(site.as_str()).ok(),
        _ => None,
    };
    parts.iter().map(site).collect()
}

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// A service answered.
    Answered(StatusCode),
    /// No service has seen any of it.
    NeverArrived,
    /// It may have arrived, and no answer came.
    Unknown,
}

impl Fate {
    /// Whether the next site may be asked. What a service may have taken in is not sent again, if
    /// doing it twice is not the same as doing it once.
    pub(super) fn allows_another(self, method: &Method) -> bool {
        match self {
            Self::NeverArrived => true,
            Self::Unknown => method.is_idempotent(),
            Self::Answered(status) => {
                let gives_up = matches!(
                    status,
                    StatusCode::BAD_GATEWAY
                        | StatusCode::SERVICE_UNAVAILABLE
                        | StatusCode::GATEWAY_TIMEOUT
                );
                gives_up && method.is_idempotent()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cheops_scope::{Known, SiteName, resolve_location};

    fn target(text: &str) -> Target {
        let sites = ["a", "b", "c"].map(|name| SiteName::new(name).unwrap());
        resolve_location(text, &Known::new([], sites)).unwrap()
    }

    #[test]
    fn sites_are_tried_in_the_order_written() {
        let names = |text| {
            let sites = sites(&target(text))?;
            Ok(sites.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names("b"), Ok("b".to_owned()));
        assert_eq!(names("c ; a ; c ; b"), Ok("c a b".to_owned()));
        assert_eq!(names("a & b"), Err(Collaboration::Replication));
        assert_eq!(names("a ; b % c"), Err(Collaboration::Cross));
    }

    #[test]
    fn what_spans_sites_has_a_part_at_each() {
        let names = |text| {
            let Target::Cross(parts) = target(text) else { panic!("{text}") };
            let sites = spanned(&parts)?;
            Some(sites.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names("b % a % c"), Some("b a c".to_owned()));
        assert_eq!(names("a % (b ; c)"), None);
        assert_eq!(names("a % b & c"), None);
    }

    #[test]
    fn nothing_is_done_twice_that_once_would_not_do() {
        let unavailable = Fate::Answered(StatusCode::SERVICE_UNAVAILABLE);
        let cases = [
            (Fate::NeverArrived, Method::POST, true),
            (Fate::NeverArrived, Method::GET, true),
            (Fate::Unknown, Method::POST, false),
            (Fate::Unknown, Method::PATCH, false),
            (Fate::Unknown, Method::DELETE, true),
            (unavailable, Method::GET, true),
            (unavailable, Method::PUT, true),
            (unavailable, Method::POST, false),
            (Fate::Answered(StatusCode::INTERNAL_SERVER_ERROR), Method::GET, false),
            (Fate::Answered(StatusCode::NOT_FOUND), Method::GET, false),
        ];
        for (fate, method, expected) in cases {
            assert_eq!(fate.allows_another(&method), expected, "{fate:?} {method}");
        }
    }
}
