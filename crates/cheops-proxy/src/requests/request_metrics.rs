//! Requests in numbers: how many clients sent, which site answered, what came of them, and how long
//! it took until the answer began.
//!
//! Every number is by service, the site that answered (`served_by`, for `site` is what Prometheus may
//! call the agent it asks) and outcome, of each of which there are few and known ones:
//! nothing that a client or another site says becomes a label.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cheops_core::model::SiteId;
use http::{HeaderValue, Response, StatusCode};
use metrics::{Counter, Histogram};

use super::headers::{ERROR, SITE};
use super::refusal::{BROKEN_OFF, NOT_OFFERED, STILL_UNDER_WAY, TIME_LIMIT, UNREACHABLE};

/// The label of answers that were joined from several sites.
const SEVERAL: &str = "several";
/// The label of answers of which it is not known who gave them.
const NOBODY_KNOWN: &str = "unknown";

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestOutcome {
    Ok,
    ClientError,
    ServerError,
    Refused,
    Unreachable,
    NoAnswer,
}

impl RequestOutcome {
    const COUNT: usize = 6;

    fn of<B>(response: &Response<B>) -> Self {
        Self::told(response.status(), response.headers().get(ERROR))
    }

    /// By the status, or by the code of whichever agent answered in the place of a service.
    fn told(status: StatusCode, error: Option<&HeaderValue>) -> Self {
        match error {
            None if status.is_server_error() => Self::ServerError,
            None if status.is_client_error() => Self::ClientError,
            None => Self::Ok,
            Some(code) if code == UNREACHABLE || code == NOT_OFFERED => Self::Unreachable,
            Some(code) if [BROKEN_OFF, TIME_LIMIT, STILL_UNDER_WAY].iter().any(|c| code == c) => {
                Self::NoAnswer
            }
            Some(_) => Self::Refused,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ClientError => "client-error",
            Self::ServerError => "server-error",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::NoAnswer => "no-answer",
        }
    }
}

struct Series {
    requests: Counter,
    seconds: Histogram,
}

impl Series {
    fn new(service: &str, site: &str, outcome: RequestOutcome) -> Self {
        let labels = [
            ("service", service.to_owned()),
            ("served_by", site.to_owned()),
            ("outcome", outcome.word().to_owned()),
        ];
        Self {
            requests: metrics::counter!("cheops_proxy_requests_total", &labels),
            seconds: metrics::histogram!("cheops_proxy_request_seconds", &labels),
        }
    }
}

/// The numbers of one service's proxy, at one thread: nobody else waits for them.
pub(super) struct RequestMetrics {
    service: String,
    /// This one and those that the config names.
    sites: BTreeSet<String>,
    /// Each found once, since it counts with every request.
    by_site: Mutex<BTreeMap<String, [Option<Series>; RequestOutcome::COUNT]>>,
}

impl RequestMetrics {
    pub(super) fn new(service: &str, sites: impl IntoIterator<Item = SiteId>) -> Self {
        let sites = sites.into_iter().map(|site| site.to_string()).collect();
        Self { service: service.to_owned(), sites, by_site: Mutex::default() }
    }

    /// A request was answered so, after that time.
    pub(super) fn answered<B>(&self, response: &Response<B>, after: Duration) {
        let site = response.headers().get(SITE).and_then(|site| site.to_str().ok());
        let (site, outcome) = (self.label(site.unwrap_or_default()), RequestOutcome::of(response));
        let mut by_site = self.by_site.lock().unwrap_or_else(PoisonError::into_inner);
        let series = match by_site.get_mut(site) {
            Some(series) => series,
            None => by_site.entry(site.to_owned()).or_default(),
        };
        let series = series[outcome as usize]
            .get_or_insert_with(|| Series::new(&self.service, site, outcome));
        series.requests.increment(1);
        series.seconds.record(after);
    }

    /// What stands for whoever a header names.
    fn label<'a>(&self, named: &'a str) -> &'a str {
        if self.sites.contains(named) {
            named
        } else if named.contains(',') {
            SEVERAL
        } else {
            NOBODY_KNOWN
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_says_in_the_place_of_a_service_is_told_apart_from_what_services_say() {
        let cases = [
            (200, None, "ok"),
            (101, None, "ok"),
            (304, None, "ok"),
            (404, None, "client-error"),
            (503, None, "server-error"),
            (503, Some("unreachable"), "unreachable"),
            (403, Some("not-offered"), "unreachable"),
            (502, Some("broken-off"), "no-answer"),
            (504, Some("time-limit"), "no-answer"),
            (504, Some("still-under-way"), "no-answer"),
            (400, Some("bad-scope"), "refused"),
        ];
        for (status, code, expected) in cases {
            let status = StatusCode::from_u16(status).unwrap();
            let code = code.map(HeaderValue::from_static);
            assert_eq!(
                RequestOutcome::told(status, code.as_ref()).word(),
                expected,
                "{status} {code:?}"
            );
        }
    }

    #[test]
    fn only_sites_that_the_config_names_become_labels() {
        let sites = ["paris", "lyon"].map(|site| SiteId::new(site).unwrap());
        let numbers = RequestMetrics::new("image", sites);
        let labels =
            ["paris", "lyon", "paris, lyon", "made-up", ""].map(|name| numbers.label(name));
        assert_eq!(labels, ["paris", "lyon", "several", "unknown", "unknown"]);
    }
}
