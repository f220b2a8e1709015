//! Who is heard, how far away they are, and which resources they are behind on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::ports::{Echo, Effect, Heartbeat, Message, Notice, Now};
use super::settings::Settings;
use super::timers::{Timer, Timers};
use crate::model::{Incarnation, KeyId, ResourceId, SiteId};

/// So many sites are named in a sign of life, and looked at in one that was heard.
const MOST_UNHEARD: usize = 64;

/// What this site knows of the way to another.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// When it was last heard; never, if `None`.
    pub(super) heard_ms: Option<u64>,
    /// The same by the wall clock, to be told to people.
    pub(super) heard_wall_ms: Option<u64>,
    /// Since when it counts as up or down.
    pub(super) since_ms: u64,
    /// Whether it counts as up.
    pub(super) up: bool,
    /// Which incarnation of its disk was heard last.
    pub(super) incarnation: Option<Incarnation>,
    /// Smoothed round-trip time.
    pub(super) round_trip_ms: Option<u64>,
    /// How many signs of life of it were heard.
    pub(super) beats: u64,
    /// How many resources it shares with this site.
    pub(super) shared: usize,
    /// Sites that it says it does not hear.
    pub(super) does_not_hear: BTreeSet<SiteId>,
    /// Resources of which it is not known to know everything.
    pub(super) behind: BTreeSet<ResourceId>,
    /// Those among them that it is being asked about.
    pub(super) asking: BTreeSet<ResourceId>,
    asked_last: Option<ResourceId>,
    last_heartbeat: Option<Echo>,
    last_heartbeat_at_ms: u64,
    next_beat_ms: u64,
    /// Until when its silence says nothing, since it may not know yet that it should speak often.
    patient_until_ms: u64,
}

/// What hearing a site revealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing new.
    AsBefore,
    /// It can be talked to now, and could not be before.
    Back,
}

impl Link {
    /// Whether what is sent is likely to arrive: it is heard, and says that it hears us.
    pub(super) fn usable(&self, me: &SiteId) -> bool {
        self.up && !self.does_not_hear.contains(me)
    }

    /// The next resource to ask it about, in turn, so that none is passed over for ever.
    pub(super) fn next_to_ask(&mut self) -> Option<ResourceId> {
        let after = self.asked_last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.behind.range((after, Bound::Unbounded));
        let next = later.chain(&self.behind).find(|id| !self.asking.contains(*id)).cloned()?;
        self.asking.insert(next.clone());
        self.asked_last = Some(next.clone());
        Some(next)
    }

    fn interval_ms(&self, settings: &Settings) -> u64 {
        if self.shared > 0 { settings.heartbeat_ms } else { settings.idle_heartbeat_ms }
    }

    /// The other side's interval is not known; a site it shares nothing with is heard rarely.
    fn silence_allowed_ms(&self, settings: &Settings) -> u64 {
        let spare = settings.down_after_ms.saturating_sub(settings.heartbeat_ms);
        self.interval_ms(settings).saturating_add(spare)
    }
}

#[derive(Debug)]
pub(super) struct Links {
    links: BTreeMap<SiteId, Link>,
    /// The sites that should be heard, since they share resources, and are not.
    unheard: BTreeSet<SiteId>,
}

impl Links {
    pub(super) fn new(settings: &Settings) -> Self {
        let links = settings.peers.iter().map(|site| (site.clone(), Link::default())).collect();
        Self { links, unheard: BTreeSet::new() }
    }

    pub(super) fn get(&self, site: &SiteId) -> Option<&Link> {
        self.links.get(site)
    }

    /// How many signs of life of that site were heard since the start.
    pub(super) fn beats_of(&self, site: &SiteId) -> u64 {
        self.get(site).map_or(0, |link| link.beats)
    }

    pub(super) fn get_mut(&mut self, site: &SiteId) -> Option<&mut Link> {
        self.links.get_mut(site)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&SiteId, &Link)> {
        self.links.iter()
    }

    pub(super) fn usable(&self, site: &SiteId, me: &SiteId) -> bool {
        self.links.get(site).is_some_and(|link| link.usable(me))
    }

    /// In which incarnation that site was heard last, before this engine was started.
    pub(super) fn lived(&mut self, site: &SiteId, incarnation: Incarnation) {
        if let Some(link) = self.links.get_mut(site) {
            link.incarnation = Some(incarnation);
        }
    }

    /// Notes that a site was heard, whatever it said.
    pub(super) fn heard(&mut self, from: &SiteId, now: Now) -> Option<Effect> {
        let now_ms = now.mono_ms;
        let link = self.links.get_mut(from)?;
        link.heard_ms = Some(now_ms);
        link.heard_wall_ms = Some(now.wall_ms);
        if link.up {
            return None;
        }
        link.up = true;
        link.since_ms = now_ms;
        self.unheard.remove(from);
        // It should learn at once that it is heard again.
        link.next_beat_ms = now_ms;
        Some(Effect::Notify(Notice::SiteUp(from.clone())))
    }

    /// Takes in a sign of life.
    pub(super) fn heartbeat(
        &mut self,
        from: &SiteId,
        me: &SiteId,
        beat: &Heartbeat,
        now_ms: u64,
    ) -> Heard {
        let Some(link) = self.links.get_mut(from) else { return Heard::AsBefore };
        let could_talk = link.usable(me);
        link.beats += 1;
        link.last_heartbeat = Some(Echo { sent_ms: beat.sent_ms, held_ms: 0 });
        link.last_heartbeat_at_ms = now_ms;
        link.does_not_hear = beat.unheard.iter().take(MOST_UNHEARD).cloned().collect();
        if let Some(echo) = beat.echo {
            let sample = now_ms.saturating_sub(echo.sent_ms).saturating_sub(echo.held_ms);
            link.round_trip_ms = Some(match link.round_trip_ms {
                None => sample,
                Some(smoothed) => (smoothed * 7 + sample) / 8,
            });
        }
        if !could_talk && link.usable(me) { Heard::Back } else { Heard::AsBefore }
    }

    /// A timer for this link went off: says what it costs, and when to look again.
    pub(super) fn beat(
        &mut self,
        site: &SiteId,
        settings: &Settings,
        set_apart: Vec<KeyId>,
        timers: &mut Timers,
        now_ms: u64,
    ) -> Vec<Effect> {
        let Some(link) = self.links.get_mut(site) else { return Vec::new() };
        let mut effects = Vec::new();
        let silence = link.heard_ms.map(|heard| now_ms.saturating_sub(heard));
        let too_long = silence.is_none_or(|silence| silence > link.silence_allowed_ms(settings));
        if link.up && too_long && now_ms > link.patient_until_ms {
            link.up = false;
            link.since_ms = now_ms;
            link.asking.clear();
            if link.shared > 0 {
                self.unheard.insert(site.clone());
            }
            effects.push(Effect::Notify(Notice::SiteDown(site.clone())));
        }
        if link.next_beat_ms <= now_ms {
            link.next_beat_ms = now_ms + link.interval_ms(settings);
            let echo = link.last_heartbeat.map(|echo| Echo {
                held_ms: now_ms.saturating_sub(link.last_heartbeat_at_ms),
                ..echo
            });
            let incarnation = settings.me.incarnation;
            // Few by nature; bounded all the same, since every sign of life carries them.
            let unheard = self.unheard.iter().take(MOST_UNHEARD).cloned().collect();
            let beat = Heartbeat { incarnation, sent_ms: now_ms, echo, unheard, set_apart };
            effects.push(Effect::Tell { to: site.clone(), message: Message::Heartbeat(beat) });
        }
        timers.set(link.next_beat_ms, Timer::Link(site.clone()));
        effects
    }

    /// There is a way to that site again: it hears from this one at once.
    pub(super) fn reached(&mut self, site: &SiteId, timers: &mut Timers, now_ms: u64) {
        if let Some(link) = self.links.get_mut(site) {
            link.next_beat_ms = now_ms;
            timers.set(now_ms, Timer::Link(site.clone()));
        }
    }

    /// That site talks about a shared resource, so it speaks often from now on.
    pub(super) fn knows_it_shares(&mut self, site: &SiteId) {
        if let Some(link) = self.links.get_mut(site) {
            link.patient_until_ms = 0;
        }
    }

    /// One more resource is shared with that site: look after the link more often from now on.
    pub(super) fn share(
        &mut self,
        site: &SiteId,
        settings: &Settings,
        timers: &mut Timers,
        now_ms: u64,
    ) {
        if let Some(link) = self.links.get_mut(site) {
            link.shared += 1;
            if link.shared == 1 {
                link.patient_until_ms =
                    now_ms + settings.idle_heartbeat_ms + settings.down_after_ms;
                if !link.up {
                    self.unheard.insert(site.clone());
                }
                link.next_beat_ms = now_ms;
                timers.set(now_ms, Timer::Link(site.clone()));
            }
        }
    }
}
