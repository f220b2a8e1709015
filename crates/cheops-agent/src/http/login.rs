//! How a browser is let in: by a link that serves once, and a cookie from then on.
//!
//! A link is remembered until it is used; a session is not remembered at all. Its cookie says whose
//! it is and until when, and the agent knows its own seal again, also after a restart. A new token
//! ends all sessions.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cheops_api::{LoginLink, Token, paths};
use http::header::{CACHE_CONTROL, COOKIE, LOCATION, REFERRER_POLICY, SET_COOKIE};
use http::{HeaderMap, Method, StatusCode};
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;

use super::SharedApi;
use super::principal::{self, Principal};
use super::refusal::HttpRefusal;

/// How long a link serves.
pub(super) const LINK_SERVES: Duration = Duration::from_secs(5 * 60);
/// How long a browser that was let in stays in.
pub(super) const SESSION_LASTS: Duration = Duration::from_secs(12 * 60 * 60);
/// How many links may wait to be used; of more, the oldest go.
const MOST_LINKS: usize = 64;
/// How much random there is in a link.
const LINK_BYTES: usize = 16;
/// How much there is in a cookie, so that no two are the same.
const NONCE_BYTES: usize = 12;
const LONGEST_COOKIE: usize = 1024;
const SEAL: &str = "cheops 2026-11 session cookie of an agent";
const NAME: &str = "cheops 2026-11 name of the session cookie";

/// Whom the agent's page is open to.
pub(super) struct Login {
    links: Mutex<VecDeque<UnusedLoginLink>>,
    seal: [u8; 32],
    cookie: String,
    /// Whether the page is reached by TLS only.
    is_tls: bool,
}

/// One that was not used yet. What it says is not kept, only how to know it again.
struct UnusedLoginLink {
    secret: blake3::Hash,
    who: Principal,
    until: SystemTime,
}

fn random<const N: usize>() -> io::Result<String> {
    let mut bytes = [0; N];
    let no_reason = |_| io::Error::other("the system gives no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(no_reason)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

impl Login {
    pub(super) fn new(token: &Token, is_tls: bool) -> Self {
        let secret = token.secret().as_bytes();
        // Cookies of one host are sent to all its ports: each agent has a name of its own.
        let name = blake3::Hash::from(blake3::derive_key(NAME, secret)).to_hex();
        Self {
            links: Mutex::default(),
            seal: blake3::derive_key(SEAL, secret),
            cookie: format!("cheops-{}", &name[..8]),
            is_tls,
        }
    }

    /// The secret of a new link.
    fn link(&self, who: &Principal, now: SystemTime) -> io::Result<String> {
        let secret = random::<LINK_BYTES>()?;
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| link.until > now);
        while links.len() >= MOST_LINKS {
            links.pop_front();
        }
        let known = blake3::hash(secret.as_bytes());
        links.push_back(UnusedLoginLink {
            secret: known,
            who: who.clone(),
            until: now + LINK_SERVES,
        });
        Ok(secret)
    }

    /// Whoever made the link, if it serves: it does not again.
    fn used(&self, secret: &str, now: SystemTime) -> Option<Principal> {
        let given = blake3::hash(secret.as_bytes());
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let at = links.iter().position(|link| link.secret == given)?;
        links.remove(at).filter(|link| link.until > now).map(|link| link.who)
    }

    /// The cookie of a new session, as a header has it.
    fn session(&self, who: &Principal, now: SystemTime) -> io::Result<String> {
        let until = now + SESSION_LASTS;
        let until = until.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let who = URL_SAFE_NO_PAD.encode(who.as_str());
        let said = format!("{until}.{who}.{}", random::<NONCE_BYTES>()?);
        let seal = blake3::keyed_hash(&self.seal, said.as_bytes()).to_hex();
        let secure = if self.is_tls { "; Secure" } else { "" };
        Ok(format!(
            "{}={said}.{seal}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{secure}",
            self.cookie,
            SESSION_LASTS.as_secs()
        ))
    }

    /// Whose session a request belongs to.
    pub(super) fn session_of(&self, headers: &HeaderMap, now: SystemTime) -> Option<Principal> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut cookies = cookies.flat_map(|cookies| cookies.split(';')).map(str::trim);
        cookies.find_map(|cookie| {
            let (name, value) = cookie.split_once('=')?;
            if name != self.cookie || value.len() > LONGEST_COOKIE {
                return None;
            }
            self.sealed(value, now)
        })
    }

    fn sealed(&self, value: &str, now: SystemTime) -> Option<Principal> {
        let (said, seal) = value.rsplit_once('.')?;
        let seal = blake3::Hash::from_hex(seal).ok()?;
        // Compared in the same time whatever is in it.
        if blake3::keyed_hash(&self.seal, said.as_bytes()) != seal {
            return None;
        }
        let mut parts = said.split('.');
        let until = Duration::from_secs(parts.next()?.parse().ok()?);
        let who = URL_SAFE_NO_PAD.decode(parts.next()?).ok()?;
        let is_over = now.duration_since(UNIX_EPOCH).ok()? >= until;
        (!is_over).then(|| Principal::page_of_named(&String::from_utf8_lossy(&who)))
    }
}

/// Where the page is, seen from this machine.
pub(super) fn origin(address: SocketAddr, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    let mut address = address;
    if address.ip().is_unspecified() {
        let loopback = match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        address.set_ip(loopback);
    }
    format!("{scheme}://{address}")
}

/// `POST` for a link.
pub(super) async fn make_link(
    State(api): State<SharedApi>,
    request: Request,
) -> Result<Json<LoginLink>, HttpRefusal> {
    let origin = &api.access.origin;
    let Some(login) = &api.access.login else {
        // Nobody needs to be let in.
        let path = "/".to_owned();
        return Ok(Json(LoginLink { url: format!("{origin}/"), path, seconds: None }));
    };
    let who = principal::of(request.extensions());
    let secret =
        login.link(&who, SystemTime::now()).map_err(|error| HttpRefusal::no_random(&error))?;
    let path = format!("{}?once={secret}", paths::LOGIN);
    let seconds = Some(LINK_SERVES.as_secs());
    Ok(Json(LoginLink { url: format!("{origin}{path}"), path, seconds }))
}

/// What a link says.
#[derive(Deserialize)]
pub(super) struct Once {
    #[serde(default)]
    once: String,
}

/// `GET` of a link: on to the page, with a cookie if the link serves. Programs that look where a
/// link leads before a person follows it ask by `HEAD`, and get and use up nothing.
pub(super) async fn enter(
    State(api): State<SharedApi>,
    method: Method,
    Query(Once { once }): Query<Once>,
) -> Result<Response, HttpRefusal> {
    let now = SystemTime::now();
    if method != Method::GET {
        return Ok(on_to("/"));
    }
    let Some(login) = &api.access.login else { return Ok(on_to("/")) };
    let Some(who) = login.used(&once, now) else { return Ok(on_to("/?link=over")) };
    let cookie = login.session(&who, now).map_err(|error| HttpRefusal::no_random(&error))?;
    tracing::info!(%who, "a browser was let in");
    let mut response = on_to("/");
    response.headers_mut().extend(cookie.parse().ok().map(|cookie| (SET_COOKIE, cookie)));
    Ok(response)
}

fn on_to(path: &'static str) -> Response {
    let headers = [(LOCATION, path), (CACHE_CONTROL, "no-store"), (REFERRER_POLICY, "no-referrer")];
    (StatusCode::SEE_OTHER, headers).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn login() -> Login {
        Login::new(&Token::new(TOKEN).unwrap(), false)
    }

    fn sent(cookie: &str) -> HeaderMap {
        let pair = cookie.split(';').next().unwrap();
        [(COOKIE, format!("theme=dark; {pair}").parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn a_link_serves_once() {
        let (login, now) = (login(), SystemTime::now());
        let secret = login.link(&Principal::user(1000), now).unwrap();
        assert_eq!(login.used("another", now), None);
        assert_eq!(login.used(&secret, now), Some(Principal::user(1000)));
        assert_eq!(login.used(&secret, now), None);
    }

    #[test]
    fn a_link_serves_for_some_minutes_only_and_not_many_wait() {
        let (login, now) = (login(), SystemTime::now());
        let old = login.link(&Principal::token(), now).unwrap();
        assert_eq!(login.used(&old, now + LINK_SERVES), None);
        let secrets: Vec<_> =
            (0..=MOST_LINKS).map(|_| login.link(&Principal::token(), now).unwrap()).collect();
        assert_eq!(login.links.lock().unwrap().len(), MOST_LINKS);
        assert_eq!(login.used(&secrets[0], now), None, "the oldest had to go");
        assert!(login.used(&secrets[MOST_LINKS], now).is_some());
    }

    #[test]
    fn a_session_lets_the_browser_in_until_it_is_over_and_after_a_restart() {
        let (login, now) = (login(), SystemTime::now());
        let cookie = login.session(&Principal::user(1000), now).unwrap();
        for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=43200"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        let page = Principal::page_of(&Principal::user(1000));
        assert_eq!(login.session_of(&sent(&cookie), now), Some(page.clone()));
        assert_eq!(self::login().session_of(&sent(&cookie), now), Some(page));
        assert_eq!(login.session_of(&sent(&cookie), now + SESSION_LASTS), None);
    }

    #[test]
    fn a_cookie_that_was_changed_or_is_anothers_is_nobodys() {
        let (login, now) = (login(), SystemTime::now());
        let cookie = login.session(&Principal::user(1000), now).unwrap();
        let forged = cookie.replace(&URL_SAFE_NO_PAD.encode("uid:1000"), "dWlkOjA");
        assert_ne!(forged, cookie);
        assert_eq!(login.session_of(&sent(&forged), now), None);
        let other = Login::new(&Token::new("another-token-of-an-agent").unwrap(), true);
        assert_ne!(other.cookie, login.cookie);
        assert_eq!(other.session_of(&sent(&cookie), now), None);
        assert!(other.session(&Principal::token(), now).unwrap().ends_with("; Secure"));
        for nonsense in ["", "x", "x=", "=", "a=b; c"] {
            let headers = [(COOKIE, nonsense.parse().unwrap())].into_iter().collect();
            assert_eq!(login.session_of(&headers, now), None);
        }
    }

    #[test]
    fn the_link_leads_to_where_the_page_is() {
        let at = |text: &str, is_tls| origin(text.parse().unwrap(), is_tls);
        assert_eq!(at("127.0.0.1:8079", false), "http://127.0.0.1:8079");
        assert_eq!(at("0.0.0.0:8079", true), "https://127.0.0.1:8079");
        assert_eq!(at("[::]:8079", true), "https://[::1]:8079");
    }
}
