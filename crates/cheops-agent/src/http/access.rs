//! Who is let in: whoever comes by the socket, which the system guards, and whoever has the token or
//! a session.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cheops_api::{Token, paths};
use http::header::{AUTHORIZATION, COOKIE, HeaderName, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue};

use super::login::Login;
use super::principal::Principal;
use super::refusal::HttpRefusal;
use super::ui;
use crate::config::{ApiConfig, MetricsFor};

/// How a request came to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// By the socket; the system says whose process it is.
    BySocket {
        /// The user.
        uid: u32,
    },
    /// By the address.
    ByNetwork,
}

/// What is asked of those who come.
pub(crate) struct Access {
    /// How to know the token again; none, if nothing is asked for.
    token: Option<blake3::Hash>,
    pub(super) login: Option<Login>,
    /// Where the page is.
    pub(super) origin: String,
    token_file: PathBuf,
    metrics: MetricsFor,
}

impl Access {
    /// What is asked of those who come to that address. Without a token, nothing is.
    pub(crate) fn new(
        config: &ApiConfig,
        token: Option<&Token>,
        address: std::net::SocketAddr,
    ) -> Self {
        let is_tls = config.tls.is_some();
        Self {
            token: token.map(|token| blake3::hash(token.secret().as_bytes())),
            login: token.map(|token| Login::new(token, is_tls)),
            origin: super::login::origin(address, is_tls),
            token_file: config
                .token_file
                .canonicalize()
                .unwrap_or_else(|_| config.token_file.clone()),
            metrics: config.metrics,
        }
    }

    /// Who it is, if that is known.
    fn who(&self, came: Came, headers: &HeaderMap, now: SystemTime) -> Option<Principal> {
        if let Came::BySocket { uid } = came {
            return Some(Principal::user(uid));
        }
        let Some(token) = self.token else { return Some(Principal::anyone()) };
        // Hashes are compared in the same time whatever is in them.
        match headers.get(AUTHORIZATION).and_then(given) {
            Some(given) if blake3::hash(&given) == token => Some(Principal::token()),
            Some(_) => None,
            None => self.login.as_ref().and_then(|login| login.session_of(headers, now)),
        }
    }

    /// Whether anyone may see it: what it shows is the same for all.
    fn is_open(&self, path: &str) -> bool {
        let is_open = [paths::HEALTHZ, paths::READYZ, paths::LOGIN].contains(&path);
        let is_metrics = path == paths::METRICS && self.metrics == MetricsFor::Anyone;
        is_open || is_metrics || ui::is_of_page(path)
    }

    fn refused(&self, headers: &HeaderMap) -> Response {
        metrics::counter!("cheops_api_unauthorized_total").increment(1);
        let file = self.token_file.display();
        let what = match headers.contains_key(AUTHORIZATION) {
            true => "the token is not the one of this agent",
            false => "this API asks for its token",
        };
        let hint = format!(
            "it is in `{file}`: `Authorization: Bearer TOKEN`, or as the password of any user; \
             `cheops` finds it by itself or by CHEOPS_TOKEN_FILE, and `cheops open` lets a browser in"
        );
        let mut response = HttpRefusal::unauthorized(what).hint(hint).into_response();
        let answers = response.headers_mut();
        let ways = [r#"Bearer realm="cheops""#, r#"Basic realm="cheops""#];
        // A page says itself what to do; a browser would ask for a password before it can.
        let is_page = headers.contains_key(HeaderName::from_static("sec-fetch-mode"));
        for way in ways.into_iter().take(if is_page { 1 } else { 2 }) {
            answers.append(WWW_AUTHENTICATE, HeaderValue::from_static(way));
        }
        response
    }
}

/// What a client shows, if that can be read: a token by itself, or as a password.
fn given(value: &HeaderValue) -> Option<Vec<u8>> {
    let (scheme, rest) = value.to_str().ok()?.trim().split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.into());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = STANDARD.decode(rest).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

/// Lets a request pass, with who sent it, or refuses it. What lets clients in here goes no further:
/// requests are passed on to other sites. Nor does what only other sites may say.
pub(super) async fn check(
    State(access): State<Arc<Access>>,
    mut request: Request,
    next: Next,
) -> Response {
    let came = request.extensions().get::<Came>().copied().unwrap_or(Came::ByNetwork);
    let who = access.who(came, request.headers(), SystemTime::now());
    if who.is_none() && !access.is_open(request.uri().path()) {
        return access.refused(request.headers());
    }
    let headers = request.headers_mut();
    headers.remove(AUTHORIZATION);
    headers.remove(COOKIE);
    let ours: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-cheops-")).cloned().collect();
    for name in ours {
        headers.remove(name);
    }
    if let Some(who) = who {
        request.extensions_mut().insert(who);
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::AgentConfig;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn access(more: &str) -> Access {
        let text = format!("site = \"paris\"\n[api]\n{more}");
        let config = AgentConfig::parse(&text, Path::new("x/agent.toml"), |_| None).unwrap().api;
        let token = Token::new(TOKEN).unwrap();
        let is_asked = config.auth == crate::config::Auth::Token;
        Access::new(&config, is_asked.then_some(&token), config.listen)
    }

    fn who(access: &Access, came: Came, authorization: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        if !authorization.is_empty() {
            headers.insert(AUTHORIZATION, authorization.parse().unwrap());
        }
        access.who(came, &headers, SystemTime::now()).map(|who| who.to_string())
    }

    fn basic(pair: &str) -> String {
        format!("Basic {}", STANDARD.encode(pair))
    }

    #[test]
    fn who_has_the_token_is_let_in_by_the_address() {
        let access = access("");
        let by_network = |authorization: &str| who(&access, Came::ByNetwork, authorization);
        for right in [
            format!("Bearer {TOKEN}"),
            format!("bearer  {TOKEN}"),
            basic(&format!("anyone:{TOKEN}")),
            basic(&format!(":{TOKEN}")),
        ] {
            assert_eq!(by_network(&right).as_deref(), Some("token"), "{right}");
        }
        for wrong in [
            String::new(),
            TOKEN.to_owned(),
            "Bearer".to_owned(),
            format!("Bearer {TOKEN}x"),
            format!("Bearer {}", &TOKEN[1..]),
            format!("Digest {TOKEN}"),
            basic(TOKEN),
            basic(&format!("{TOKEN}:")),
            "Basic not-base64!".to_owned(),
        ] {
            assert_eq!(by_network(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn who_comes_by_the_socket_is_known_by_its_user_whatever_it_says() {
        let (access, came) = (access(""), Came::BySocket { uid: 1000 });
        assert_eq!(who(&access, came, "").as_deref(), Some("uid:1000"));
        assert_eq!(who(&access, came, "Bearer wrong").as_deref(), Some("uid:1000"));
    }

    #[test]
    fn where_nothing_is_asked_for_anyone_is_let_in_and_called_so() {
        let access = access("auth = \"none\"");
        assert_eq!(who(&access, Came::ByNetwork, "").as_deref(), Some("anyone"));
    }

    #[test]
    fn only_what_shows_nothing_is_open() {
        let access = access("");
        for open in ["/", "/healthz", "/readyz", "/login"] {
            assert!(access.is_open(open), "{open}");
        }
        for closed in ["/metrics", "/openapi.json", "/api/v1/sites", "/exec/x", "/show/x", "/x"] {
            assert!(!access.is_open(closed), "{closed}");
        }
        assert!(self::access("metrics = \"open\"").is_open("/metrics"));
    }
}
