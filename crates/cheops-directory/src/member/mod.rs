//! One site's part in the directory: what it is told, and what it does about it.
//!
//! News go on to all other links, a moment later and together: what came by two of them meanwhile is sent
//! by neither. What gets lost all the same is found when two sites compare what they have, as they meet
//! and now and then.

mod due;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cheops_core::model::{KeyId, SiteId};

use self::due::{COMPARE_MS, SAY_MS};
use crate::directory::{Applied, Existence, SiteDirectory};
use crate::reach::Way;
use crate::ring::Ring;
use crate::statement::{
    LAST_EPOCH, LinkState, Membership, NotTakenIn, Notary, SignedStatement, Statement,
};
use crate::talk::{GossipMessage, Holdings, SaidAbout};
use crate::wishes::Search;

/// How long news wait for more.
const FLUSH_MS: u64 = 100;
/// How long after a change it is found out who is alive.
const REACH_MS: u64 = 200;
/// How often, at the most; less often among many sites, since it takes longer then.
const REACH_EVERY_MS: u64 = 1_000;
const REACH_EVERY_MS_PER_SITE: u64 = 2;
/// How long after a change it is thought about links.
const WISH_MS: u64 = 200;

/// When something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// By a clock that never goes back.
    pub mono_ms: u64,
    /// By that of the wall.
    pub wall_ms: u64,
}

/// What this site says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSite {
    /// Whether it is part of the mesh.
    pub state: Membership,
    /// Where it can be called.
    pub addresses: Vec<String>,
    /// What its operator says of it.
    pub labels: BTreeMap<String, String>,
    /// The services that it has.
    pub services: BTreeSet<String>,
    /// Which release it runs.
    pub software: String,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GossipEvent {
    /// There is a link to that site, with that round trip.
    LinkUp(SiteId, u64),
    /// There is none any more.
    LinkDown(SiteId),
    /// Something was said on a link.
    Heard(SiteId, GossipMessage),
    /// How long round trips take now.
    Measured(SiteId, u64),
    /// What this site is to say of itself.
    Announced(OwnSite),
    /// The operator says that these sites exist, whatever else is known.
    Configured(BTreeSet<SiteId>),
    /// Time passed.
    Ticked,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GossipEffect {
    /// Say that to a site.
    Send(SiteId, GossipMessage),
    /// See to it that there are links to these, and be content if there are to no others.
    Want(BTreeSet<SiteId>),
    /// Who exists is not as it was.
    DirectoryChanged,
    /// Who is alive is not as it was.
    ReachChanged,
    /// What that site sent is not taken in.
    Refused(SiteId, NotTakenIn),
}

/// What a member begins with.
pub struct MemberStart {
    /// Which site it is.
    pub me: SiteId,
    /// Who signs and checks.
    pub notary: Arc<dyn Notary>,
    /// What it knew when it stopped.
    pub directory: SiteDirectory,
    /// Greater than at any start before.
    pub number: u64,
}

#[derive(Debug)]
struct GossipLink {
    round_trip_us: u64,
    /// What is to be sent there.
    news: BTreeSet<u64>,
}

/// When what is due.
#[derive(Debug, Default)]
struct Due {
    flush: Option<u64>,
    reach: Option<u64>,
    wish: Option<u64>,
    say: Option<u64>,
    compare: Option<u64>,
    search: Option<u64>,
    record: Option<u64>,
}

fn within(due: &mut Option<u64>, at_ms: u64) {
    *due = Some(due.map_or(at_ms, |before| before.min(at_ms)));
}

/// One site's part in the directory.
pub struct Member {
    me: SiteId,
    notary: Arc<dyn Notary>,
    directory: SiteDirectory,
    states: BTreeMap<SiteId, SignedStatement>,
    holdings: Holdings,
    configured: BTreeSet<SiteId>,
    own: Option<OwnSite>,
    links: BTreeMap<SiteId, GossipLink>,
    ring: Ring,
    ways: BTreeMap<SiteId, Way>,
    /// When those were lost that were alive once.
    gone_ms: BTreeMap<SiteId, u64>,
    wanted: BTreeSet<SiteId>,
    search: Search,
    /// The number of what is said next of who is heard.
    number: u64,
    /// Whom it last said that it hears, and when.
    said: Option<BTreeSet<SiteId>>,
    said_ms: Option<u64>,
    say_after_ms: u64,
    /// When it was last found out who is alive.
    reached_ms: Option<u64>,
    compared: Option<SiteId>,
    due: Due,
}

impl Member {
    /// Knows what it knew when it stopped.
    pub fn new(start: MemberStart) -> Self {
        let MemberStart { me, notary, directory, number } = start;
        let search = Search::new(&me);
        let mut member = Self {
            me,
            notary,
            directory,
            states: BTreeMap::new(),
            holdings: Holdings::default(),
            configured: BTreeSet::new(),
            own: None,
            links: BTreeMap::new(),
            ring: Ring::default(),
            ways: BTreeMap::new(),
            gone_ms: BTreeMap::new(),
            wanted: BTreeSet::new(),
            search,
            number: number.min(LAST_EPOCH - 1),
            said: None,
            said_ms: None,
            say_after_ms: SAY_MS,
            reached_ms: None,
            compared: None,
            due: Due { wish: Some(0), ..Due::default() },
        };
        member.hold_anew();
        member
    }

    /// Who exists.
    pub fn directory(&self) -> &SiteDirectory {
        &self.directory
    }

    /// How that site is reached, if it is alive.
    pub fn way(&self, site: &SiteId) -> Option<&Way> {
        self.ways.get(site)
    }

    /// Those that are alive, this site aside.
    pub fn ways(&self) -> &BTreeMap<SiteId, Way> {
        &self.ways
    }

    /// When that site was lost, if it was alive since this one's start.
    pub fn gone_ms(&self, site: &SiteId) -> Option<u64> {
        self.gone_ms.get(site).copied()
    }

    /// To whom it wants a link.
    pub fn wanted(&self) -> &BTreeSet<SiteId> {
        &self.wanted
    }

    /// When [`GossipEvent::Ticked`] is due.
    pub fn next_deadline(&self) -> Option<u64> {
        let Due { flush, reach, wish, say, compare, search, record } = &self.due;
        [flush, reach, wish, say, compare, search, record].into_iter().flatten().min().copied()
    }

    /// Takes in what happened, and says what to do.
    pub fn handle(&mut self, now: Moment, event: GossipEvent) -> Vec<GossipEffect> {
        let mut effects = Vec::new();
        match event {
            GossipEvent::LinkUp(site, round_trip_us) => {
                if self.me < site {
                    effects.push(GossipEffect::Send(site.clone(), self.holdings.summary()));
                }
                let link = GossipLink { round_trip_us, news: BTreeSet::new() };
                self.links.insert(site, link);
                self.links_changed(now);
            }
            GossipEvent::LinkDown(site) => {
                if self.links.remove(&site).is_some() {
                    self.links_changed(now);
                }
            }
            GossipEvent::Measured(site, round_trip_us) => {
                if let Some(link) = self.links.get_mut(&site) {
                    link.round_trip_us = round_trip_us;
                }
            }
            GossipEvent::Heard(from, message) => self.hear(&from, message, now, &mut effects),
            GossipEvent::Announced(own) => {
                self.own = Some(own);
                within(&mut self.due.record, now.mono_ms);
            }
            GossipEvent::Configured(sites) => {
                self.configured = sites;
                within(&mut self.due.wish, now.mono_ms);
            }
            GossipEvent::Ticked => {}
        }
        self.tick(now, &mut effects);
        effects
    }

    /// Takes in what the authority says, handed in at this site, or what one that joins was given.
    pub fn hand_in(
        &mut self,
        now: Moment,
        signed: &SignedStatement,
    ) -> Result<Vec<GossipEffect>, NotTakenIn> {
        let mut effects = Vec::new();
        self.apply(None, signed, now, &mut effects)?;
        self.tick(now, &mut effects);
        Ok(effects)
    }

    /// Changes seldom come alone.
    fn reach_soon(&mut self, now: Moment) {
        let every_ms = REACH_EVERY_MS + self.ring.len() as u64 * REACH_EVERY_MS_PER_SITE;
        let soonest = self.reached_ms.map_or(0, |reached| reached + every_ms);
        within(&mut self.due.reach, soonest.max(now.mono_ms + REACH_MS));
    }

    fn links_changed(&mut self, now: Moment) {
        self.reach_soon(now);
        let soonest = self.said_ms.map_or(0, |said| said + self.say_after_ms);
        within(&mut self.due.say, soonest.max(now.mono_ms + SAY_MS));
        within(&mut self.due.compare, now.mono_ms + COMPARE_MS);
    }

    fn hear(
        &mut self,
        from: &SiteId,
        message: GossipMessage,
        now: Moment,
        effects: &mut Vec<GossipEffect>,
    ) {
        match message {
            GossipMessage::Ping => {}
            GossipMessage::Summary(theirs) => {
                let parts = self.holdings.differing(&theirs);
                if parts != 0 {
                    let digest = self.holdings.digest(parts, true);
                    effects.push(GossipEffect::Send(from.clone(), digest));
                }
            }
            GossipMessage::Digest { parts, asks, held } => {
                let (lacks, has_newer) = self.holdings.compare(parts, &held);
                for message in GossipMessage::said(lacks) {
                    effects.push(GossipEffect::Send(from.clone(), message));
                }
                if asks && has_newer {
                    let digest = self.holdings.digest(parts, false);
                    effects.push(GossipEffect::Send(from.clone(), digest));
                }
            }
            GossipMessage::Said { statements, left_out } => {
                let refused =
                    left_out.into_iter().map(|why| GossipEffect::Refused(from.clone(), why));
                effects.extend(refused);
                for signed in statements {
                    if let Err(why) = self.apply(Some(from), &signed, now, effects) {
                        effects.push(GossipEffect::Refused(from.clone(), why));
                    }
                }
            }
        }
    }

    fn apply(
        &mut self,
        from: Option<&SiteId>,
        signed: &SignedStatement,
        now: Moment,
        effects: &mut Vec<GossipEffect>,
    ) -> Result<(), NotTakenIn> {
        if let Statement::LinkState(state) = signed.statement() {
            return self.apply_link_state(from, state, signed, now);
        }
        let site = signed.statement().site().clone();
        let before: Vec<KeyId> = self.directory.keys(&site).collect();
        let applied = self.directory.apply(signed, &*self.notary)?;
        let ids = match signed.statement() {
            Statement::Removal(_) | Statement::Revocation(_) if applied == Applied::News => {
                self.hold_anew();
                vec![self.holdings.put(subject(&self.directory, signed), signed)]
            }
            Statement::Record(_) if applied == Applied::News => self.hold_records(&site, &before),
            Statement::Record(_) => {
                before.iter().map(|key| SaidAbout::Record(&site, *key).id()).collect()
            }
            _ => vec![subject(&self.directory, signed).id()],
        };
        let is_this =
            |id: &u64| self.holdings.named(*id).is_some_and(|it| it.hash() == signed.hash());
        if let Some(id) = ids.into_iter().find(is_this) {
            self.pass_on(from, id, applied, now);
        }
        if applied == Applied::Known {
            return Ok(());
        }
        if site == self.me {
            // Somebody has what this site said in an earlier life, or says now with the same key.
            within(&mut self.due.record, now.mono_ms + SAY_MS);
        }
        within(&mut self.due.wish, now.mono_ms + WISH_MS);
        self.reach_soon(now);
        if !effects.contains(&GossipEffect::DirectoryChanged) {
            effects.push(GossipEffect::DirectoryChanged);
        }
        Ok(())
    }

    fn apply_link_state(
        &mut self,
        from: Option<&SiteId>,
        state: &LinkState,
        signed: &SignedStatement,
        now: Moment,
    ) -> Result<(), NotTakenIn> {
        let site = &state.site;
        if let Some(before) = self.states.get(site).filter(|before| !signed.is_after(before)) {
            if before.hash() == signed.hash() {
                self.pass_on(from, SaidAbout::LinkState(site).id(), Applied::Known, now);
            }
            return Ok(());
        }
        if !matches!(self.directory.existence(site), Existence::Exists(_)) {
            return Err(NotTakenIn::Unknown(site.clone()));
        }
        if !self.directory.keys(site).any(|key| signed.is_signed_by(&*self.notary, key)) {
            return Err(NotTakenIn::Signature(site.clone()));
        }
        if *site == self.me {
            // Said in an earlier life, by a clock that was ahead.
            self.number = self.number.max(state.number).min(LAST_EPOCH - 1);
            within(&mut self.due.say, now.mono_ms + SAY_MS);
            self.said = None;
            return Ok(());
        }
        self.hold_state(signed, from, now);
        Ok(())
    }

    fn hold_state(&mut self, signed: &SignedStatement, from: Option<&SiteId>, now: Moment) {
        let site = signed.statement().site();
        self.states.insert(site.clone(), signed.clone());
        let id = self.holdings.put(SaidAbout::LinkState(site), signed);
        self.pass_on(from, id, Applied::News, now);
        self.reach_soon(now);
    }

    /// News go to all others; who sent something has it.
    fn pass_on(&mut self, from: Option<&SiteId>, id: u64, applied: Applied, now: Moment) {
        for (site, link) in &mut self.links {
            if Some(site) == from {
                link.news.remove(&id);
            } else if applied == Applied::News {
                link.news.insert(id);
            }
        }
        if applied == Applied::News {
            within(&mut self.due.flush, now.mono_ms + FLUSH_MS);
        }
    }

    fn hold_records(&mut self, site: &SiteId, before: &[KeyId]) -> Vec<u64> {
        for key in before {
            self.holdings.remove(SaidAbout::Record(site, *key));
        }
        let records = self.directory.records(site);
        records
            .map(|(key, signed)| self.holdings.put(SaidAbout::Record(site, key), signed))
            .collect()
    }

    /// Begins anew with what there is, after something was struck out.
    fn hold_anew(&mut self) {
        let directory = &self.directory;
        let exists = |site: &SiteId| matches!(directory.existence(site), Existence::Exists(_));
        self.states.retain(|site, _| exists(site));
        self.holdings = Holdings::default();
        for (site, signed) in &self.states {
            self.holdings.put(SaidAbout::LinkState(site), signed);
        }
        for (key, signed) in directory.keyed() {
            let subject = match key {
                Some(key) => SaidAbout::Record(signed.statement().site(), key),
                None => subject(directory, signed),
            };
            self.holdings.put(subject, signed);
        }
    }
}

/// What a statement is about that needs no key to say so.
fn subject<'a>(directory: &SiteDirectory, signed: &'a SignedStatement) -> SaidAbout<'a> {
    match signed.statement() {
        Statement::Record(record) => {
            let key = directory.keys(&record.site).next().unwrap_or(KeyId([0; 32]));
            SaidAbout::Record(&record.site, key)
        }
        Statement::LinkState(state) => SaidAbout::LinkState(&state.site),
        Statement::Removal(removal) => SaidAbout::Removal(&removal.site),
        Statement::Revocation(revocation) => {
            SaidAbout::Revocation(&revocation.site, revocation.key)
        }
    }
}
