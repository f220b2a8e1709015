//! What a site does when it is time to.

use std::collections::BTreeSet;

use cheops_core::model::SiteId;

use super::{GossipEffect, Member, Moment, OwnSite, within};
use crate::directory::Existence;
use crate::reach::reachable;
use crate::ring::Ring;
use crate::statement::{
    Hears, LAST_EPOCH, LinkState, MOST_HEARD, SignedStatement, SiteRecord, Statement,
};
use crate::talk::GossipMessage;
use crate::wishes::wished;

/// How long after a change whom this site hears is said; twice as long each time that it changes again
/// soon, up to the longest.
pub(super) const SAY_MS: u64 = 1_000;
const SAY_AT_MOST_MS: u64 = 8_000;
/// How often what two sites have is compared.
pub(super) const COMPARE_MS: u64 = 30_000;
/// How often the next of those whom nobody hears is tried; and while there is no link at all.
const SEARCH_MS: u64 = 10_000;
const SEARCH_ALONE_MS: u64 = 1_000;

fn take_due(due: &mut Option<u64>, now_ms: u64) -> bool {
    let is_due = due.is_some_and(|at_ms| at_ms <= now_ms);
    if is_due {
        *due = None;
    }
    is_due
}

impl Member {
    pub(super) fn tick(&mut self, now: Moment, effects: &mut Vec<GossipEffect>) {
        let now_ms = now.mono_ms;
        if take_due(&mut self.due.record, now_ms) {
            self.say_what_it_is(now, effects);
        }
        if take_due(&mut self.due.say, now_ms) {
            self.say_whom_it_hears(now);
        }
        if take_due(&mut self.due.reach, now_ms) {
            self.find_ways(now, effects);
        }
        if take_due(&mut self.due.search, now_ms) {
            let (links, ways, me) = (&self.links, &self.ways, &self.me);
            let heard =
                |site: &SiteId| site == me || links.contains_key(site) || ways.contains_key(site);
            if self.search.next(&self.ring, heard) {
                let pause_ms = self.search_ms();
                within(&mut self.due.search, now_ms + pause_ms);
            }
            within(&mut self.due.wish, now_ms);
        }
        if take_due(&mut self.due.wish, now_ms) {
            self.wish(now, effects);
        }
        if take_due(&mut self.due.compare, now_ms) {
            self.compare(now, effects);
        }
        if take_due(&mut self.due.flush, now_ms) {
            self.flush(effects);
        }
    }

    fn search_ms(&self) -> u64 {
        if self.links.is_empty() { SEARCH_ALONE_MS } else { SEARCH_MS }
    }

    fn say_what_it_is(&mut self, now: Moment, effects: &mut Vec<GossipEffect>) {
        let Some(own) = self.own.clone() else { return };
        let known = self.directory.record(&self.me);
        let OwnSite { state, addresses, labels, services, software } = own;
        let epoch = known.map_or(0, |known| known.epoch + 1).max(now.wall_ms).min(LAST_EPOCH);
        let site = self.me.clone();
        let record = SiteRecord { site, epoch, state, addresses, labels, services, software };
        let certificate = self.notary.certificate();
        let is_said = known.is_some_and(|known| SiteRecord { epoch, ..known.clone() } == record)
            && self.directory.certificate(&self.me) == Some(&certificate[..]);
        if is_said {
            return;
        }
        let statement = Statement::Record(record);
        let signed = SignedStatement::new(&statement, &certificate, |text| self.notary.sign(text));
        if let Some(signed) = signed {
            if let Err(why) = self.apply(None, &signed, now, effects) {
                effects.push(GossipEffect::Refused(self.me.clone(), why));
            }
            // That one is news to the others, and no reason to say it again.
            self.due.record = None;
        }
    }

    fn say_whom_it_hears(&mut self, now: Moment) {
        if self.own.is_none() {
            return;
        }
        let neighbours = self.ring.neighbours(&self.me).filter_map(|mut places| places.next());
        let first = neighbours.filter(|site| self.links.contains_key(site));
        let mut heard = BTreeSet::new();
        for site in first.chain(self.links.keys()) {
            if heard.len() < MOST_HEARD {
                heard.insert(site.clone());
            }
        }
        if self.said.as_ref() == Some(&heard) {
            return;
        }
        let hears = heard.iter().map(|site| Hears {
            site: site.clone(),
            round_trip_us: self.links.get(site).map_or(0, |link| link.round_trip_us),
        });
        self.number = (self.number + 1).min(LAST_EPOCH);
        let state =
            LinkState { site: self.me.clone(), number: self.number, hears: hears.collect() };
        let statement = Statement::LinkState(state);
        let signed = SignedStatement::new(&statement, &[], |text| self.notary.sign(text));
        let Some(signed) = signed else { return };
        let calm = self.said_ms.is_none_or(|said| now.mono_ms > said + 4 * self.say_after_ms);
        self.say_after_ms = if calm { SAY_MS } else { (self.say_after_ms * 2).min(SAY_AT_MOST_MS) };
        self.said_ms = Some(now.mono_ms);
        self.said = Some(heard);
        self.hold_state(&signed, None, now);
    }

    fn find_ways(&mut self, now: Moment, effects: &mut Vec<GossipEffect>) {
        self.reached_ms = Some(now.mono_ms);
        let links = self.links.iter().map(|(site, link)| (site, link.round_trip_us));
        let states = &self.states;
        let ways = reachable(&self.me, links, |site| match states.get(site)?.statement() {
            Statement::LinkState(state) => Some(state),
            _ => None,
        });
        if ways == self.ways {
            return;
        }
        let before = std::mem::replace(&mut self.ways, ways);
        let is_same = before.keys().eq(self.ways.keys());
        for site in before.into_keys().filter(|site| !self.ways.contains_key(site)) {
            self.gone_ms.insert(site, now.wall_ms);
        }
        let ways = &self.ways;
        self.gone_ms.retain(|site, _| !ways.contains_key(site));
        within(&mut self.due.wish, now.mono_ms);
        if !is_same {
            effects.push(GossipEffect::ReachChanged);
        }
    }

    fn wish(&mut self, now: Moment, effects: &mut Vec<GossipEffect>) {
        let exist = self.directory.alive().map(|(site, _)| site);
        let configured = self.configured.iter().filter(|site| {
            matches!(self.directory.existence(site), Existence::Unknown | Existence::Exists(_))
        });
        let ring = Ring::new(exist.chain(configured).chain([&self.me]).cloned());
        self.ring = ring;
        let (links, ways, me) = (&self.links, &self.ways, &self.me);
        let is_linked = |site: &SiteId| links.contains_key(site);
        let wanted = wished(me, &self.ring, ways, is_linked, &self.search);
        let is_heard = |site: &SiteId| site == me || is_linked(site) || ways.contains_key(site);
        if self.ring.sites().any(|site| !is_heard(site)) {
            let pause_ms = self.search_ms();
            within(&mut self.due.search, now.mono_ms + pause_ms);
        } else {
            self.due.search = None;
            self.search.rest();
        }
        if wanted != self.wanted {
            self.wanted = wanted;
            effects.push(GossipEffect::Want(self.wanted.clone()));
        }
    }

    /// What this site and the next one have is compared.
    fn compare(&mut self, now: Moment, effects: &mut Vec<GossipEffect>) {
        let after = |site: &&SiteId| self.compared.as_ref().is_none_or(|last| last < *site);
        let next = self.links.keys().find(after).or_else(|| self.links.keys().next()).cloned();
        if let Some(next) = &next {
            effects.push(GossipEffect::Send(next.clone(), self.holdings.summary()));
            within(&mut self.due.compare, now.mono_ms + COMPARE_MS);
        }
        self.compared = next;
    }

    fn flush(&mut self, effects: &mut Vec<GossipEffect>) {
        for (site, link) in &mut self.links {
            let news = std::mem::take(&mut link.news);
            let news: Vec<_> =
                news.into_iter().filter_map(|id| self.holdings.named(id).cloned()).collect();
            // Nobody believes whom a site hears before it is known what that site is.
            let (first, then): (Vec<_>, Vec<_>) = news
                .into_iter()
                .partition(|signed| !matches!(signed.statement(), Statement::LinkState(_)));
            for message in GossipMessage::said(first.into_iter().chain(then)) {
                effects.push(GossipEffect::Send(site.clone(), message));
            }
        }
    }
}
