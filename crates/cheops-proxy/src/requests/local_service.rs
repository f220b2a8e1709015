//! The service of this site, as its proxy sees it: the request as it came, the answer as it comes.

use std::sync::{Arc, Once};

use cheops_core::causes;
use cheops_core::model::SiteId;
use cheops_scope::ServiceName;
use cheops_services::Fate;
use cheops_services::body::OutgoingBody;
use cheops_services::headers;
use cheops_services::timer_pool::TimerPool;
use cheops_services::{AnswerBody, Endpoint, HeldConnection, Unanswered};
use http::header::{CONTENT_LENGTH, COOKIE, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::upgrade::OnUpgrade;

use super::admission::Admission;
use super::headers::{ERROR, SITE};
use super::refusal::ProxyRefusal;
use super::{Failed, ProxiedRequest, upgrade};
use crate::config::{CrossConfig, PathPattern, Pointer, ServiceConfig};
use crate::id_directory::Naming;

/// How long a service may take to let somebody in.
const LETTING_IN: std::time::Duration = std::time::Duration::from_secs(5);

/// One service.
#[derive(Clone)]
pub(super) struct LocalService {
    pub(super) config_name: ServiceName,
    pub(super) naming: Naming,
    pub(super) client_chosen_id: Option<Pointer>,
    pub(super) collections: Vec<PathPattern>,
    warned_of_ids_below: Arc<Once>,
    pub(super) cross: CrossConfig,
    pub(super) admission: Admission,
    /// Whether other sites may use it.
    pub(super) is_offered: bool,
    /// Whether ids that clients chose count whoever brings them.
    pub(super) trusts: bool,
    site: SiteId,
    site_header: HeaderValue,
    /// By connections of its own.
    pub(super) endpoint: Endpoint,
    /// By those on which operations are sent.
    for_operations: Endpoint,
    /// For the heads of requests, and for answers.
    pub(super) heads: TimerPool,
    pub(super) answers: TimerPool,
}

impl LocalService {
    /// Says that something was made below a replica, at each site by its own service. Nobody knows
    /// that another site calls it otherwise, unless the config says that it may.
    pub(super) fn made_below(&self, path: &str) {
        self.warned_of_ids_below.call_once(|| {
            tracing::warn!(
                service = %self.config_name,
                path,
                "something was made below a replicated resource; if the service draws its id, name \
                 the path in `collections`, or changes by that id reach something else at other sites"
            );
        });
    }

    pub(super) fn new(site: &SiteId, config: &ServiceConfig, endpoint: Endpoint) -> Self {
        let site_header = HeaderValue::try_from(site.as_str());
        Self {
            config_name: config.name.clone(),
            naming: Naming::new(&config.id),
            client_chosen_id: config.replication.client_chosen_id.clone(),
            collections: config.replication.collections.clone(),
            warned_of_ids_below: Arc::new(Once::new()),
            cross: config.cross.clone(),
            admission: Admission::new(config),
            is_offered: config.offer,
            trusts: config.trust_correlation,
            site: site.clone(),
            site_header: site_header.unwrap_or(HeaderValue::from_static("?")),
            for_operations: endpoint.clone(),
            endpoint,
            heads: TimerPool::default(),
            answers: TimerPool::default(),
        }
    }

    /// The same service, with connections and timers of its own.
    pub(super) fn apart(&self) -> Self {
        let (heads, answers) = (TimerPool::default(), TimerPool::default());
        Self { endpoint: self.endpoint.apart(), heads, answers, ..self.clone() }
    }

    pub(super) fn name(&self) -> &str {
        self.config_name.as_str()
    }

    /// The connection on which the next operation is sent to the service, once it is let go: so
    /// that it is known whether the service can be reached before an operation is taken in.
    pub(super) async fn reached(&self) -> Result<HeldConnection, Failed> {
        let late = || Unanswered::NoConnection("it does not answer".into());
        let holding = tokio::time::timeout(LETTING_IN, self.for_operations.hold()).await;
        holding.unwrap_or_else(|_late| Err(late())).map_err(|error| self.failed(&error))
    }

    /// What answers of this site are marked with.
    pub(super) fn site_header(&self) -> HeaderValue {
        self.site_header.clone()
    }

    /// The request as the service gets it, and the client's side of what it may go over to.
    pub(super) fn request(
        &self,
        ProxiedRequest { mut head, upgrade, .. }: ProxiedRequest,
        body: OutgoingBody,
    ) -> Result<(Request<OutgoingBody>, Option<OnUpgrade>), Failed> {
        self.lead_to(&mut head)?;
        if !body.is_end_stream() {
            say_that_it_has_a_body(&mut head, &body);
        }
        let client_side = upgrade.map(|(protocol, on_upgrade)| {
            headers::upgrade_to(&mut head.headers, protocol);
            on_upgrade
        });
        Ok((Request::from_parts(head, body), client_side))
    }

    /// Leads a request from this proxy to the service.
    pub(super) fn lead_to(&self, head: &mut Parts) -> Result<(), Failed> {
        self.endpoint.lead_to(head).map_err(|error| Failed {
            fate: Fate::NeverArrived,
            refused: ProxyRefusal::bad_target(&error.to_string()),
        })
    }

    /// The answer as the service gave it, but for what belongs to its connection.
    pub(super) fn answer(
        &self,
        answered: Result<Response<AnswerBody>, Unanswered>,
        client_side: Option<OnUpgrade>,
    ) -> Result<Response<AnswerBody>, Failed> {
        let mut response = answered.map_err(|error| self.failed(&error))?;
        *response.version_mut() = Version::HTTP_11;
        let service_side = hyper::upgrade::on(&mut response);
        let protocol = headers::strip(response.headers_mut());
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let (Some(client_side), Some(protocol)) = (client_side, protocol) else {
                let why = "it went over to a protocol that nobody asked for";
                let refused = ProxyRefusal::broken_off(self.name(), &self.site, why);
                return Err(Failed { fate: Fate::Unknown, refused });
            };
            headers::upgrade_to(response.headers_mut(), protocol);
            tokio::spawn(upgrade::join(client_side, service_side));
        }
        self.mark(response.headers_mut());
        Ok(response)
    }

    /// Says who answers.
    pub(super) fn mark(&self, answer: &mut HeaderMap) {
        self.endpoint.via().sign(answer);
        // Only this proxy says what kept a request from its service.
        answer.remove(ERROR);
        answer.insert(SITE, self.site_header.clone());
    }

    pub(super) fn failed(&self, error: &Unanswered) -> Failed {
        let (why, fate) = (causes(error), Fate::from(error));
        let refused = match error {
            Unanswered::NoConnection(_) => {
                ProxyRefusal::unreachable_service(self.name(), &self.site, &why)
            }
            Unanswered::BrokenOff(_) => ProxyRefusal::broken_off(self.name(), &self.site, &why),
        };
        Failed { fate, refused }
    }
}

/// Bodies of unknown length are rare with these methods, and left out if nobody says so.
fn say_that_it_has_a_body(head: &mut Parts, body: &OutgoingBody) {
    let is_rare = matches!(head.method, Method::GET | Method::HEAD);
    let is_unknown = || body.size_hint().exact().is_none();
    if is_rare && is_unknown() && !head.headers.contains_key(CONTENT_LENGTH) {
        head.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
}

/// Who sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    Client,
    /// Another site's agent, which passes on what its client may have said by an older HTTP.
    Agent,
}

/// Brings what the versions of HTTP say in different ways into one form, and refuses what is not
/// meant for a service.
pub(super) fn normalise(head: &mut Parts, sender: Sender) -> Result<(), ProxyRefusal> {
    if head.method == Method::CONNECT {
        return Err(ProxyRefusal::bad_target(
            "`CONNECT` asks for a tunnel; this is a service's proxy",
        ));
    }
    if !head.uri.path().starts_with('/') {
        return Err(ProxyRefusal::bad_target("its target is no path"));
    }
    let mut hosts = head.headers.get_all(HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return Err(ProxyRefusal::bad_target("it has two `Host` headers"));
    }
    if head.version == Version::HTTP_11 && host.is_none() && sender == Sender::Client {
        return Err(ProxyRefusal::bad_target("it has no `Host` header"));
    }
    // HTTP/1.1 is looked at as it comes in; of HTTP/2 nobody but us would notice.
    if head.headers.get_all(CONTENT_LENGTH).iter().nth(1).is_some() {
        return Err(ProxyRefusal::bad_target("it has two `Content-Length` headers"));
    }
    // HTTP/2 has it in the target; and a target with a host counts more than the header.
    if let Some(authority) = head.uri.authority() {
        let host = HeaderValue::try_from(authority.as_str());
        let host = host.map_err(|error| ProxyRefusal::bad_target(&error.to_string()))?;
        head.headers.insert(HOST, host);
    }
    if head.version == Version::HTTP_2 {
        join_cookies(&mut head.headers);
    }
    Ok(())
}

/// HTTP/2 may send the parts of a cookie header apart; HTTP/1.1 has one.
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    let parts: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&parts.join(&b"; "[..])) {
        headers.insert(COOKIE, joined);
    }
}
