//! The id of a whole: it says itself which parts there are, so that every site knows, and nothing
//! has to be kept. The site that made the whole has signed it, so that nobody makes one up, with the
//! service and the collection that it was made in: the same ids mean something else in others.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cheops_core::model::SiteId;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use serde::{Deserialize, Serialize};

use super::seen::SeenWholes;
use crate::ports::{SignatureCheck, Signatures};

/// What such an id begins with, and its version after it.
const PREFIX: &str = "cross-";
/// The parts, and a checksum: as they were before ids were signed.
const UNSIGNED: char = '1';
/// The parts, who signed them, the signature and its length.
const SIGNED: char = '2';
/// Tells an unsigned id of ours from a name that happens to begin like one, or that was cut off.
const CHECK: usize = 4;
/// What is signed begins like this, so that nothing else that a site signs is taken for an id.
const CONTEXT: &[u8] = b"cheops: the parts of a resource over several sites\0";
const MOST_PARTS: usize = 64;
const LONGEST_LOCAL: usize = 1024;
const LONGEST: usize = 8 * 1024;
/// So many signatures that were found to be good are not looked at again.
const MOST_CHECKED: usize = 4096;

/// One resource over several sites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct WholeResource {
    /// In the order of the scope it was made under: what is left over when dividing goes to the
    /// first ones each time.
    parts: Vec<SitePart>,
    text: String,
}

/// What one site has of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SitePart {
    pub(super) site: SiteId,
    /// The id that the site's service gave it.
    pub(super) id: String,
}

/// Where a whole was made: what its id is good for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in super::super) struct WholeOrigin<'a> {
    service: &'a str,
    /// The path of the collection.
    collection: String,
}

impl<'a> WholeOrigin<'a> {
    /// A collection, however its path is written.
    pub(in super::super) fn new(service: &'a str, path: &str) -> Self {
        let segment = |segment: &str| {
            let bytes: Vec<u8> = percent_decode_str(segment).collect();
            percent_encode(&bytes, NON_ALPHANUMERIC).to_string()
        };
        let segments: Vec<String> = path.trim_end_matches('/').split('/').map(segment).collect();
        Self { service, collection: segments.join("/") }
    }
}

/// What an id says, before anybody looked at whether it is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClaimedId {
    whole: WholeResource,
    signed: Option<Signed>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Signed {
    by: SiteId,
    what: Vec<u8>,
    signature: Vec<u8>,
}

/// Why an id is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum NotTaken {
    /// It is of a version that did not sign them.
    Unsigned,
    /// That site did not sign it, or not for that place.
    MadeUp(SiteId),
    /// It cannot be told whether that site signed it.
    Unknown(SiteId),
}

/// Makes ids, and tells those that a site made from those that nobody did.
pub(in super::super) struct WholeIds {
    seals: Arc<dyn Signatures>,
    /// Whether those are taken that nobody signed.
    unsigned: bool,
    checked: Mutex<HashSet<blake3::Hash>>,
    seen: SeenWholes,
}

impl WholeIds {
    pub(in super::super) fn new(seals: Arc<dyn Signatures>, unsigned: bool) -> Self {
        Self { seals, unsigned, checked: Mutex::default(), seen: SeenWholes::default() }
    }

    /// Those that were made or asked for here.
    pub(super) fn seen(&self) -> &SeenWholes {
        &self.seen
    }

    /// A whole of these parts in that place; `None` if there are too many, two at one site, ids that no path can
    /// hold, or this site has nothing to sign with.
    pub(super) fn make(
        &self,
        place: &WholeOrigin<'_>,
        parts: Vec<SitePart>,
    ) -> Option<WholeResource> {
        if !can_be(&parts) {
            return None;
        }
        let by = self.seals.me().as_str();
        let mut bytes = postcard::to_stdvec(&(by, listed(&parts))).ok()?;
        let signature = self.seals.sign(&in_context(place, &bytes)?)?;
        bytes.extend(&signature);
        bytes.push(u8::try_from(signature.len()).ok()?);
        let text = written(SIGNED, &bytes);
        (text.len() <= LONGEST).then_some(WholeResource { parts, text })
    }

    /// The whole that a path of a service speaks of: the first there is in it.
    pub(in super::super) fn in_path(
        &self,
        service: &str,
        path: &str,
    ) -> Result<Option<WholeResource>, NotTaken> {
        let Some((before, said)) = ClaimedId::in_path(path) else { return Ok(None) };
        // Steps back after the id would lead to another place than the one before it.
        let place = (!has_steps(path)).then(|| WholeOrigin::new(service, before));
        let whole = self.check(place.as_ref(), said)?;
        if place.is_some() {
            self.seen.note(service, before, whole.as_str());
        }
        Ok(Some(whole))
    }

    fn check(
        &self,
        place: Option<&WholeOrigin<'_>>,
        ClaimedId { whole, signed }: ClaimedId,
    ) -> Result<WholeResource, NotTaken> {
        let Some(Signed { by, what, signature }) = signed else {
            return if self.unsigned { Ok(whole) } else { Err(NotTaken::Unsigned) };
        };
        let Some(what) = place.and_then(|place| in_context(place, &what)) else {
            return Err(NotTaken::MadeUp(by));
        };
        let hash = blake3::Hasher::new().update(&what).update(&signature).finalize();
        if self.checked().contains(&hash) {
            return Ok(whole);
        }
        match self.seals.check(&by, &what, &signature) {
            SignatureCheck::Good => {
                let mut checked = self.checked();
                if checked.len() >= MOST_CHECKED {
                    checked.clear();
                }
                checked.insert(hash);
                Ok(whole)
            }
            SignatureCheck::Bad => Err(NotTaken::MadeUp(by)),
            SignatureCheck::NobodyKnown => Err(NotTaken::Unknown(by)),
        }
    }

    fn checked(&self) -> std::sync::MutexGuard<'_, HashSet<blake3::Hash>> {
        // Nothing here leaves it half changed.
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is signed for a place.
fn in_context(place: &WholeOrigin<'_>, bytes: &[u8]) -> Option<Vec<u8>> {
    let place = postcard::to_stdvec(place).ok()?;
    Some([CONTEXT, &place, bytes].concat())
}

/// Whether a path has segments that lead elsewhere.
fn has_steps(path: &str) -> bool {
    let is_step = |segment| matches!(&*Vec::from_iter(percent_decode_str(segment)), b"." | b"..");
    path.split('/').any(is_step)
}

fn written(version: char, bytes: &[u8]) -> String {
    format!("{PREFIX}{version}{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// An id as it travels: most are UUIDs, which take less than half the room as a number.
#[derive(Serialize, Deserialize)]
enum Local {
    Text(String),
    Uuid(u128),
}

impl Local {
    fn of(id: &str) -> Self {
        let uuid = uuid::Uuid::try_parse(id).ok();
        match uuid.filter(|uuid| uuid.hyphenated().to_string() == id) {
            Some(uuid) => Self::Uuid(uuid.as_u128()),
            None => Self::Text(id.to_owned()),
        }
    }

    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Uuid(uuid) => uuid::Uuid::from_u128(uuid).hyphenated().to_string(),
        }
    }
}

fn listed(parts: &[SitePart]) -> Vec<(&str, Local)> {
    parts.iter().map(|it| (it.site.as_str(), Local::of(&it.id))).collect()
}

fn can_be(parts: &[SitePart]) -> bool {
    let sites: BTreeSet<&SiteId> = parts.iter().map(|part| &part.site).collect();
    !parts.is_empty()
        && sites.len() == parts.len()
        && parts.len() <= MOST_PARTS
        && parts.iter().all(SitePart::can_be)
}

impl ClaimedId {
    /// `None` if it is no id of a whole, and so somebody else's.
    pub(super) fn read(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX).filter(|_| text.len() <= LONGEST)?;
        let version = rest.chars().next().filter(|it| matches!(*it, UNSIGNED | SIGNED))?;
        let bytes = URL_SAFE_NO_PAD.decode(&rest[1..]).ok()?;
        let (parts, signed) = match version {
            UNSIGNED => {
                let (bytes, checked) = bytes.split_at_checked(bytes.len().checked_sub(CHECK)?)?;
                let is_whole = check(bytes) == checked;
                (is_whole.then(|| postcard::from_bytes(bytes).ok()).flatten()?, None)
            }
            _ => {
                let (length, bytes) = bytes.split_last()?;
                let end = bytes.len().checked_sub((*length).into())?;
                let (what, signature) = bytes.split_at_checked(end)?;
                let (by, parts): (String, Vec<(String, Local)>) = whole_of(what)?;
                let (what, signature) = (what.to_vec(), signature.to_vec());
                (parts, Some(Signed { by: SiteId::new(&by).ok()?, what, signature }))
            }
        };
        let part = |(site, local): (String, Local)| {
            Some(SitePart { site: SiteId::new(&site).ok()?, id: local.text() })
        };
        let parts: Vec<SitePart> = parts.into_iter().map(part).collect::<Option<_>>()?;
        let is_fine = can_be(&parts) && (signed.is_some() || unsigned(&parts)? == text);
        is_fine.then(|| Self { whole: WholeResource { parts, text: text.to_owned() }, signed })
    }

    /// The first that there is in a path, and what is before it there.
    fn in_path(path: &str) -> Option<(&str, Self)> {
        // On the way of every request: look before decoding.
        if !path.contains(PREFIX) {
            return None;
        }
        let mut at = 0;
        path.split('/').find_map(|segment| {
            let before = &path[..at];
            at += segment.len() + 1;
            let segment = percent_decode_str(segment).decode_utf8().ok()?;
            Some((before, Self::read(&segment)?))
        })
    }

    pub(super) fn parts(&self) -> &[SitePart] {
        &self.whole.parts
    }
}

/// What bytes say, if they say nothing else.
fn whole_of<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Option<T> {
    let (found, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(found)
}

/// The id that earlier versions made of these parts.
fn unsigned(parts: &[SitePart]) -> Option<String> {
    let mut bytes = postcard::to_stdvec(&listed(parts)).ok()?;
    bytes.extend(check(&bytes));
    Some(written(UNSIGNED, &bytes))
}

impl WholeResource {
    pub(super) fn parts(&self) -> &[SitePart] {
        &self.parts
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

impl SitePart {
    /// Whether a path can lead to it.
    fn can_be(&self) -> bool {
        !matches!(self.id.as_str(), "" | "." | "..") && self.id.len() <= LONGEST_LOCAL
    }
}

fn check(bytes: &[u8]) -> [u8; CHECK] {
    let mut check = [0; CHECK];
    blake3::Hasher::new().update(bytes).finalize_xof().fill(&mut check);
    check
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn parts(listed: &[(&str, &str)]) -> Vec<SitePart> {
        let part = |(site, id): &(&str, &str)| SitePart {
            site: SiteId::new(site).unwrap(),
            id: (*id).to_owned(),
        };
        listed.iter().map(part).collect()
    }

    /// A whole of these parts, as nobody checks it.
    pub(in super::super) fn whole(parts: Vec<SitePart>) -> WholeResource {
        let text = unsigned(&parts).unwrap();
        WholeResource { parts, text }
    }

    /// Where most of them are made.
    fn things() -> WholeOrigin<'static> {
        WholeOrigin::new("x", "/things")
    }

    /// What a site signs in these tests: its name is its key.
    struct TestSeals {
        me: SiteId,
        known: &'static [&'static str],
    }

    impl Signatures for TestSeals {
        fn me(&self) -> &SiteId {
            &self.me
        }

        fn sign(&self, what: &[u8]) -> Option<Vec<u8>> {
            Some(signature(&self.me, what))
        }

        fn check(&self, site: &SiteId, what: &[u8], signed: &[u8]) -> SignatureCheck {
            match self.known.contains(&site.as_str()) {
                false => SignatureCheck::NobodyKnown,
                true if signed == signature(site, what) => SignatureCheck::Good,
                true => SignatureCheck::Bad,
            }
        }
    }

    fn signature(site: &SiteId, what: &[u8]) -> Vec<u8> {
        let key = blake3::derive_key("a signature in a test", site.as_str().as_bytes());
        // As long as a real one.
        let mut signature = [0; 64];
        blake3::Hasher::new_keyed(&key).update(what).finalize_xof().fill(&mut signature);
        signature.into()
    }

    /// Of a site that has seen the certificates of these.
    fn seals(me: &str, known: &'static [&'static str]) -> Arc<dyn Signatures> {
        Arc::new(TestSeals { me: SiteId::new(me).unwrap(), known })
    }

    struct TwoSites {
        paris: WholeIds,
        lyon: WholeIds,
    }

    fn mesh() -> TwoSites {
        let paris = WholeIds::new(seals("paris", &["paris"]), false);
        let lyon = WholeIds::new(seals("lyon", &["paris", "lyon"]), false);
        TwoSites { paris, lyon }
    }

    #[test]
    fn a_path_says_which_parts_there_are_at_every_site() {
        let TwoSites { paris, lyon } = mesh();
        let listed = parts(&[("paris", "0e6f7d2c-53f0-4c1b-9a39-0c4f3a5b8a11"), ("lyon", "a/b é")]);
        let whole = paris.make(&WholeOrigin::new("x", "/v1/things/"), listed.clone()).unwrap();
        assert!(whole.as_str().len() < 190, "{}", whole.as_str());
        for path in ["/v1/things/ID", "/v1/things/ID/", "/v1/things/ID/file", "/v1/%74hings/ID"] {
            let path = path.replace("ID", whole.as_str());
            for site in [&paris, &lyon, &lyon] {
                let found = site.in_path("x", &path).unwrap().unwrap();
                assert_eq!((found.parts(), &found), (listed.as_slice(), &whole));
            }
        }
    }

    #[test]
    fn an_id_is_good_in_the_service_and_collection_that_it_was_made_in_and_nowhere_else() {
        let TwoSites { paris, lyon } = mesh();
        let whole = paris.make(&things(), parts(&[("paris", "1"), ("lyon", "2")])).unwrap();
        let at = |site: &WholeIds, service: &str, path: &str| {
            site.in_path(service, &path.replace("ID", whole.as_str()))
        };
        let made_up = Err(NotTaken::MadeUp(SiteId::new("paris").unwrap()));
        for site in [&paris, &lyon] {
            // Also where it was found to be good before.
            assert_eq!(at(site, "x", "/things/ID/photos"), Ok(Some(whole.clone())));
            assert_eq!(at(site, "y", "/things/ID"), made_up);
            for elsewhere in [
                "/servers/ID",
                "/ID",
                "/v1/things/ID",
                "/things/7/ID",
                "/things%2Fx/ID",
                "/servers/../things/ID",
                "/things/ID/../../servers/ID",
                "/things/ID/%2e%2E/7",
            ] {
                assert_eq!(at(site, "x", elsewhere), made_up, "{elsewhere}");
            }
        }
        // No service's name goes on in a path.
        let xt = WholeOrigin::new("x/t", "hings");
        assert_ne!(in_context(&xt, b""), in_context(&things(), b""));
    }

    #[test]
    fn an_id_that_no_site_signed_is_not_taken() {
        let TwoSites { paris, lyon } = mesh();
        let whole = paris.make(&things(), parts(&[("paris", "1"), ("lyon", "2")])).unwrap();
        let path = |text: &str| format!("/things/{text}");
        let by_paris = SiteId::new("paris").unwrap();

        // Other parts, under the signature of these.
        let signed = URL_SAFE_NO_PAD.decode(&whole.as_str()[PREFIX.len() + 1..]).unwrap();
        let place = signed.windows(2).position(|it| it == [1, b'2']).unwrap();
        let mut changed = signed.clone();
        changed[place + 1] = b'3';
        let made_up = written(SIGNED, &changed);
        assert!(ClaimedId::read(&made_up).is_some());
        let found = lyon.in_path("x", &path(&made_up));
        assert_eq!(found, Err(NotTaken::MadeUp(by_paris.clone())));

        // Signed by another site than it says.
        let mut bytes = postcard::to_stdvec(&("paris", listed(whole.parts()))).unwrap();
        let signature = lyon.seals.sign(&in_context(&things(), &bytes).unwrap()).unwrap();
        bytes.extend(&signature);
        bytes.push(signature.len() as u8);
        let found = paris.in_path("x", &path(&written(SIGNED, &bytes)));
        assert_eq!(found, Err(NotTaken::MadeUp(by_paris.clone())));

        // By a site that was never seen here.
        let nice = WholeIds::new(seals("nice", &["nice"]), false);
        assert_eq!(nice.in_path("x", &path(whole.as_str())), Err(NotTaken::Unknown(by_paris)));
    }

    #[test]
    fn an_id_of_before_there_were_signatures_is_taken_only_if_that_is_said() {
        let TwoSites { paris, .. } = mesh();
        // In the format of commit 99ce964: the parts, and the start of their hash.
        let listed = parts(&[("paris", "p"), ("lyon", "l")]);
        let before = unsigned(&listed).unwrap();
        assert_eq!(before, "cross-1AgVwYXJpcwABcARseW9uAAFsAoHCiA");
        let path = format!("/things/{before}");
        assert_eq!(paris.in_path("x", &path), Err(NotTaken::Unsigned));
        let taking = WholeIds::new(seals("paris", &["paris"]), true);
        assert_eq!(taking.in_path("x", &path).unwrap().unwrap().parts(), listed);
    }

    #[test]
    fn what_only_looks_like_an_id_of_ours_is_somebody_elses() {
        let TwoSites { paris, .. } = mesh();
        let whole = paris.make(&things(), parts(&[("paris", "1"), ("lyon", "2")])).unwrap();
        let before = unsigned(whole.parts()).unwrap();
        let cut_before = &before[..before.len() - 1];
        let half = &whole.as_str()[..whole.as_str().len() / 2];
        let long = format!("{PREFIX}{SIGNED}{}", "A".repeat(LONGEST));
        let others = ["cross-1", "cross-10", "cross-2", "cross-1999", "cross-country", "%FF"];
        for other in others.into_iter().chain([cut_before, half, &long]) {
            assert_eq!(paris.in_path("x", &format!("/things/{other}")), Ok(None), "{other}");
        }
        for id in ["", ".", "..", &"x".repeat(LONGEST_LOCAL + 1)] {
            assert_eq!(paris.make(&things(), parts(&[("paris", id)])), None, "{id}");
        }
        assert_eq!(paris.make(&things(), parts(&[("paris", "1"), ("paris", "2")])), None);
    }

    proptest::proptest! {
        #[test]
        fn every_id_is_read_back_as_it_was(ids in proptest::collection::vec(".{1,20}", 1..8)) {
            let sites = ["a", "b", "c", "d", "e", "f", "g", "h"];
            let listed: Vec<_> = sites.into_iter().zip(ids.iter().map(String::as_str)).collect();
            let listed = parts(&listed);
            if can_be(&listed) {
                let before = whole(listed.clone());
                proptest::prop_assert_eq!(ClaimedId::read(before.as_str()).unwrap().whole, before);
                let mut bytes = postcard::to_stdvec(&("a", super::listed(&listed))).unwrap();
                bytes.extend([7; 70]);
                bytes.push(70);
                let said = ClaimedId::read(&written(SIGNED, &bytes)).unwrap();
                proptest::prop_assert_eq!(said.parts(), listed);
                proptest::prop_assert_eq!(said.signed.unwrap().signature, [7; 70]);
            }
        }

        #[test]
        fn nothing_that_is_sent_is_too_odd(bytes in proptest::collection::vec(0u8.., 0..60)) {
            let mut before = bytes.clone();
            before.extend(check(&bytes));
            for text in [written(UNSIGNED, &before), written(SIGNED, &bytes)] {
                let _any = ClaimedId::in_path(&format!("/{text}"));
            }
        }
    }
}
