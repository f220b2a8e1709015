//! What all statements come to: the same wherever the same were heard, in whichever order.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cheops_core::model::{KeyId, SiteId};
use cheops_record::{ByteReader, FormError, Writer};

use crate::statement::{
    MOST_SITES, Membership, NotTakenIn, Notary, Removal, SignedStatement, SiteRecord, Statement,
};

/// What a site said with so many of its keys is kept: the next to last counts again where the last is
/// revoked.
const MOST_KEYS: usize = 4;
/// So many keys can be revoked.
const MOST_REVOKED: usize = 16_384;
const VERSION: u8 = 1;

/// What became of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It was not known.
    News,
    /// It, or one that counts in its place, was known.
    Known,
}

/// Whether a site exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existence<'a> {
    /// It does.
    Exists(&'a SiteRecord),
    /// It took its leave.
    Left(&'a SiteRecord),
    /// It was put out.
    Removed(&'a Removal),
    /// Nothing is known of it.
    Unknown,
}

/// Which sites exist.
#[derive(Debug, Clone, Default)]
pub struct SiteDirectory {
    /// By the key they were signed with, the one that counts first.
    sites: BTreeMap<SiteId, Vec<(KeyId, SignedStatement)>>,
    removals: BTreeMap<SiteId, SignedStatement>,
    revocations: BTreeMap<(SiteId, KeyId), SignedStatement>,
}

impl SiteDirectory {
    /// Takes in a statement, if it is the word of who may say so. Whom a site hears is not kept here.
    pub fn apply(
        &mut self,
        signed: &SignedStatement,
        notary: &dyn Notary,
    ) -> Result<Applied, NotTakenIn> {
        match signed.statement() {
            Statement::Record(record) => self.apply_record(record, signed, notary),
            Statement::LinkState(state) => Err(NotTakenIn::Unknown(state.site.clone())),
            Statement::Removal(removal) => {
                let is_full = self.removals.len() >= MOST_SITES;
                let before = self.removals.get(&removal.site);
                if let Some(known) = is_newer(signed, before, is_full, notary)? {
                    return Ok(known);
                }
                self.sites.remove(&removal.site);
                self.removals.insert(removal.site.clone(), signed.clone());
                Ok(Applied::News)
            }
            Statement::Revocation(revocation) => {
                let key = (revocation.site.clone(), revocation.key);
                let is_full = self.revocations.len() >= MOST_REVOKED;
                let before = self.revocations.get(&key);
                if let Some(known) = is_newer(signed, before, is_full, notary)? {
                    return Ok(known);
                }
                if let Some(said) = self.sites.get_mut(&key.0) {
                    said.retain(|(by, _)| *by != key.1);
                    if said.is_empty() {
                        self.sites.remove(&key.0);
                    }
                }
                self.revocations.insert(key, signed.clone());
                Ok(Applied::News)
            }
        }
    }

    fn apply_record(
        &mut self,
        record: &SiteRecord,
        signed: &SignedStatement,
        notary: &dyn Notary,
    ) -> Result<Applied, NotTakenIn> {
        let site = &record.site;
        if self.removals.contains_key(site) {
            return Err(NotTakenIn::Removed(site.clone()));
        }
        let said = self.sites.get(site);
        if said.is_some_and(|said| said.iter().any(|(_, known)| known == signed)) {
            return Ok(Applied::Known);
        }
        if said.is_none() && self.sites.len() >= MOST_SITES {
            return Err(NotTakenIn::Full);
        }
        let key = notary.key_of(site, signed.certificate());
        let key = key.ok_or_else(|| NotTakenIn::Certificate(site.clone()))?;
        if self.is_revoked(site, key) {
            return Err(NotTakenIn::Revoked(site.clone()));
        }
        if !signed.is_signed_by(notary, key) {
            return Err(NotTakenIn::Signature(site.clone()));
        }
        let said = self.sites.entry(site.clone()).or_default();
        match said.iter_mut().find(|(by, _)| *by == key) {
            Some((_, before)) if !signed.is_after(before) => return Ok(Applied::Known),
            Some((_, before)) => *before = signed.clone(),
            None => said.push((key, signed.clone())),
        }
        let rank = |(key, signed): &(KeyId, SignedStatement)| {
            Reverse((signed.statement().order(), signed.hash(), *key))
        };
        said.sort_by_key(rank);
        said.truncate(MOST_KEYS);
        Ok(if said.iter().any(|(by, _)| *by == key) { Applied::News } else { Applied::Known })
    }

    /// What is known of that site.
    pub fn existence(&self, site: &SiteId) -> Existence<'_> {
        if let Some(Statement::Removal(removal)) =
            self.removals.get(site).map(SignedStatement::statement)
        {
            return Existence::Removed(removal);
        }
        match self.record(site) {
            Some(record) if record.state == Membership::Left => Existence::Left(record),
            Some(record) => Existence::Exists(record),
            None => Existence::Unknown,
        }
    }

    /// What a site says of itself.
    pub fn record(&self, site: &SiteId) -> Option<&SiteRecord> {
        match self.sites.get(site)?.first()?.1.statement() {
            Statement::Record(record) => Some(record),
            _ => None,
        }
    }

    /// The sites that exist, with what they say of themselves.
    pub fn alive(&self) -> impl Iterator<Item = (&SiteId, &SiteRecord)> {
        let records = self.sites.keys().filter_map(|site| Some((site, self.record(site)?)));
        records.filter(|(_, record)| record.state == Membership::Alive)
    }

    /// The sites that were put out.
    pub fn removed(&self) -> impl Iterator<Item = &Removal> {
        self.removals.values().filter_map(|signed| match signed.statement() {
            Statement::Removal(removal) => Some(removal),
            _ => None,
        })
    }

    /// Whether nobody with that key may speak for that site.
    pub fn is_refused(&self, site: &SiteId, key: KeyId) -> Option<NotTakenIn> {
        if self.removals.contains_key(site) {
            return Some(NotTakenIn::Removed(site.clone()));
        }
        self.is_revoked(site, key).then(|| NotTakenIn::Revoked(site.clone()))
    }

    fn is_revoked(&self, site: &SiteId, key: KeyId) -> bool {
        // The authority names the site for people; a key is nobody else's.
        self.revocations.contains_key(&(site.clone(), key))
    }

    /// The key that what counts of a site's words is signed with.
    pub fn key(&self, site: &SiteId) -> Option<KeyId> {
        self.keys(site).next()
    }

    /// The keys that a site spoke with, the one that counts first.
    pub(crate) fn keys(&self, site: &SiteId) -> impl Iterator<Item = KeyId> {
        self.sites.get(site).into_iter().flatten().map(|(key, _)| *key)
    }

    /// What a site said with each of them.
    pub(crate) fn records(&self, site: &SiteId) -> impl Iterator<Item = (KeyId, &SignedStatement)> {
        self.sites.get(site).into_iter().flatten().map(|(key, signed)| (*key, signed))
    }

    /// The certificate that comes with what a site says of itself.
    pub fn certificate(&self, site: &SiteId) -> Option<&[u8]> {
        Some(self.sites.get(site)?.first()?.1.certificate())
    }

    /// All that counts, with the key of who said what it is.
    pub(crate) fn keyed(&self) -> impl Iterator<Item = (Option<KeyId>, &SignedStatement)> {
        let by_authority = self.removals.values().chain(self.revocations.values());
        let records = self.sites.values().flatten().map(|(key, signed)| (Some(*key), signed));
        by_authority.map(|signed| (None, signed)).chain(records)
    }

    /// All that counts.
    pub fn statements(&self) -> impl Iterator<Item = &SignedStatement> {
        self.keyed().map(|(_, signed)| signed)
    }

    /// All of it as bytes, for the disk or who joins.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.number(self.statements().count() as u64);
        self.statements().for_each(|signed| signed.put(&mut out));
        out
    }

    /// Reads those bytes. What is in them is taken in as if it were heard; and what is not, is told.
    pub fn from_bytes(
        bytes: &[u8],
        notary: &dyn Notary,
    ) -> Result<(Self, Vec<NotTakenIn>), FormError> {
        let mut from = ByteReader::new(bytes);
        match from.byte()? {
            VERSION => {}
            other => return Err(FormError::Version(other)),
        }
        let (mut directory, mut left_out) = (Self::default(), Vec::new());
        for _ in 0..from.count(3)? {
            let signed = SignedStatement::take(&mut from)?;
            if let Err(why) = signed.and_then(|signed| directory.apply(&signed, notary)) {
                left_out.push(why);
            }
        }
        Ok((directory, left_out))
    }
}

/// Whether the authority said this, and it does not count already.
fn is_newer(
    signed: &SignedStatement,
    before: Option<&SignedStatement>,
    is_full: bool,
    notary: &dyn Notary,
) -> Result<Option<Applied>, NotTakenIn> {
    if before.is_some_and(|before| !signed.is_after(before)) {
        return Ok(Some(Applied::Known));
    }
    if before.is_none() && is_full {
        return Err(NotTakenIn::Full);
    }
    if !signed.is_of_authority(notary) {
        return Err(NotTakenIn::Signature(signed.statement().site().clone()));
    }
    Ok(None)
}
