//! The id of a whole: it says itself which parts there are, so that every site knows, and nothing
//! has to be kept.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cheops_core::model::SiteId;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

/// What such an id begins with; the digit is the version of what follows.
const PREFIX: &str = "cross-1";
/// Tells an id of ours from a name that happens to begin like one, or that was cut off.
const CHECK: usize = 4;
const MOST_PARTS: usize = 64;
const LONGEST_LOCAL: usize = 1024;
const LONGEST: usize = 8 * 1024;

/// One resource over several sites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Whole {
    /// In the order of the scope it was made under: what is left over when dividing goes to the
    /// first ones each time.
    parts: Vec<Part>,
    text: String,
}

/// What one site has of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) site: SiteId,
    /// The id that the site's service gave it.
    pub(super) id: String,
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

impl Whole {
    /// Of these parts; `None` if there are too many, two at one site, or ids that no path can hold.
    pub(super) fn of(parts: Vec<Part>) -> Option<Self> {
        let sites: BTreeSet<&SiteId> = parts.iter().map(|part| &part.site).collect();
        if parts.is_empty()
            || sites.len() < parts.len()
            || parts.len() > MOST_PARTS
            || !parts.iter().all(Part::can_be)
        {
            return None;
        }
        let listed: Vec<_> = parts.iter().map(|it| (it.site.as_str(), Local::of(&it.id))).collect();
        let mut bytes = postcard::to_stdvec(&listed).ok()?;
        bytes.extend(check(&bytes));
        let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
        (text.len() <= LONGEST).then_some(Self { parts, text })
    }

    /// `None` if it is no id of a whole, and so somebody else's.
    pub(super) fn read(text: &str) -> Option<Self> {
        let encoded = text.strip_prefix(PREFIX).filter(|_| text.len() <= LONGEST)?;
        let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
        let (bytes, checked) = bytes.split_at_checked(bytes.len().checked_sub(CHECK)?)?;
        if check(bytes) != checked {
            return None;
        }
        let listed: Vec<(String, Local)> = postcard::from_bytes(bytes).ok()?;
        let parts = listed
            .into_iter()
            .map(|(site, local)| Some(Part { site: SiteId::new(&site).ok()?, id: local.text() }));
        // Read back, so that a whole has one id only.
        Self::of(parts.collect::<Option<_>>()?).filter(|whole| whole.text == text)
    }

    /// The whole that a path speaks of: the first there is in it.
    pub(super) fn in_path(path: &str) -> Option<Self> {
        // On the way of every request: look before decoding.
        if !path.contains(PREFIX) {
            return None;
        }
        path.split('/').find_map(|segment| match percent_decode_str(segment).decode_utf8() {
            Ok(segment) => Self::read(&segment),
            Err(_) => None,
        })
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

impl Part {
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
mod tests {
    use super::*;

    fn parts(listed: &[(&str, &str)]) -> Vec<Part> {
        let part = |(site, id): &(&str, &str)| Part {
            site: SiteId::new(site).unwrap(),
            id: (*id).to_owned(),
        };
        listed.iter().map(part).collect()
    }

    #[test]
    fn a_path_says_which_parts_there_are() {
        let listed = parts(&[("paris", "0e6f7d2c-53f0-4c1b-9a39-0c4f3a5b8a11"), ("lyon", "a/b é")]);
        let whole = Whole::of(listed.clone()).unwrap();
        assert!(whole.as_str().len() < 80, "{}", whole.as_str());
        let path = format!("/v1/things/{}/file", whole.as_str());
        let found = Whole::in_path(&path).unwrap();
        assert_eq!((found.parts(), &found), (listed.as_slice(), &whole));
    }

    #[test]
    fn what_only_looks_like_an_id_of_ours_is_somebody_elses() {
        let whole = Whole::of(parts(&[("paris", "1"), ("lyon", "2")])).unwrap();
        let (cut, _) = whole.as_str().split_at(whole.as_str().len() - 1);
        let long = format!("{PREFIX}{}", "A".repeat(LONGEST));
        for other in ["cross-1", "cross-10", "cross-1999", "cross-country", cut, &long, "%FF"] {
            assert_eq!(Whole::in_path(&format!("/things/{other}")), None, "{other}");
        }
        for id in ["", ".", "..", &"x".repeat(LONGEST_LOCAL + 1)] {
            assert_eq!(Whole::of(parts(&[("paris", id)])), None, "{id}");
        }
        assert_eq!(Whole::of(parts(&[("paris", "1"), ("paris", "2")])), None);
    }

    proptest::proptest! {
        #[test]
        fn every_id_is_read_back_as_it_was(ids in proptest::collection::vec(".{1,20}", 1..8)) {
            let sites = ["a", "b", "c", "d", "e", "f", "g", "h"];
            let listed: Vec<_> = sites.into_iter().zip(ids.iter().map(String::as_str)).collect();
            if let Some(whole) = Whole::of(parts(&listed)) {
                proptest::prop_assert_eq!(Whole::read(whole.as_str()), Some(whole.clone()));
            }
        }

        #[test]
        fn nothing_that_is_sent_is_too_odd(bytes in proptest::collection::vec(0u8.., 0..60)) {
            let mut whole = bytes.clone();
            whole.extend(check(&bytes));
            let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(whole));
            let _any = Whole::in_path(&format!("/{text}"));
        }
    }
}
