//! The acts, played on the stage and told as they go.

use cheops_core::model::OperationId;

use super::beat::{Beat, Converged, HandedIn, Here, Length, Opening, Outcome};
use super::readings::short;
use super::scenario::{Action, Scenario};
use super::stage::{Handed, SITES, Stage};
use crate::failure::Failure;

/// Who hears the story.
type Listener<'l> = dyn FnMut(Beat) -> Result<(), Failure> + 'l;

/// What users do between two operations, in simulated time.
const BREATH_MS: u64 = 500;
/// The site that is killed, and the one that goes on.
const VICTIM: usize = 1;
const SURVIVOR: usize = 0;

/// Plays a scenario; whether the sites agreed every time, and on what they should.
pub(super) fn play(
    scenario: &'static Scenario,
    length: Length,
    seed: u64,
    listener: &mut Listener<'_>,
) -> Result<bool, Failure> {
    let stage = Stage::open(scenario, seed)?;
    let mut story =
        Story { stage, scenario, listener, scenes: 0, agreed: true, made_alone: Vec::new() };
    story.open(length, seed)?;
    story.one_after_the_other(length)?;
    story.cut(length)?;
    story.heal(length)?;
    if length == Length::Full {
        story.kill()?;
    }
    Ok(story.agreed)
}

struct Story<'l, 'f> {
    stage: Stage,
    scenario: &'static Scenario,
    listener: &'l mut Listener<'f>,
    scenes: usize,
    agreed: bool,
    /// The operations made while the links were cut.
    made_alone: Vec<OperationId>,
}

impl Story<'_, '_> {
    fn open(&mut self, length: Length, seed: u64) -> Result<(), Failure> {
        let Scenario { what, resource, profile, meaning, .. } = self.scenario;
        let sites = self.stage.site_names();
        self.tell(Beat::Opening(Opening { seed, length, what, resource, sites, profile, meaning }))
    }

    fn one_after_the_other(&mut self, length: Length) -> Result<(), Failure> {
        self.scene("One after the other")?;
        if length == Length::Full {
            self.map()?;
            self.say("Three users, one per site, each waits until all sites have replied.")?;
        }
        for (site, action) in self.scenario.operations.iter().enumerate() {
            let handed = self.stage.hand_in(site, action)?;
            let here = self.reply_here(&handed)?;
            let everywhere = self.stage.until(|stage| stage.replied_everywhere(&handed))?;
            let after_ms = self.stage.now_ms() - handed.at_ms;
            self.handed_in(&handed, action, here, everywhere.then_some(after_ms))?;
            self.stage.wait(BREATH_MS)?;
        }
        self.stage.until(Stage::is_converged)?;
        self.states()?;
        self.outcome(Some(self.scenario.published.in_sequence))
    }

    fn cut(&mut self, length: Length) -> Result<(), Failure> {
        self.stage.cut_all_links();
        self.scene("The links are cut")?;
        self.map()?;
        if length == Length::Full {
            self.say("The same three do the same again. Each site answers at once, by itself.")?;
        }
        for (site, action) in self.scenario.operations.iter().enumerate() {
            let handed = self.stage.hand_in(site, action)?;
            let here = self.reply_here(&handed)?;
            self.handed_in(&handed, action, here, None)?;
            self.made_alone.push(handed.id);
            self.stage.wait(BREATH_MS)?;
        }
        self.stage.until(|stage| stage.unheard().iter().flat_map(|who| &who.1).count() == 6)?;
        if length == Length::Full {
            for (site, others, since_ms) in self.stage.unheard() {
                self.tell(Beat::Unheard { site, others, since_ms })?;
            }
        }
        self.states()
    }

    fn heal(&mut self, length: Length) -> Result<(), Failure> {
        self.stage.heal_all_links();
        self.scene("The links are back")?;
        if length == Length::Full {
            self.map()?;
        }
        self.converge()?;
        self.states()?;
        self.replies()?;
        if length == Length::Full {
            for telling in self.stage.explained() {
                self.tell(Beat::Explained(telling))?;
            }
        }
        self.outcome(Some(self.scenario.published.after_the_cut))
    }

    fn kill(&mut self) -> Result<(), Failure> {
        self.scene("A site is killed")?;
        let interrupted = &self.scenario.interrupted;
        let handed = self.stage.hand_in(VICTIM, interrupted)?;
        self.handed_in(&handed, interrupted, None, None)?;
        self.stage.until(|stage| stage.is_between_work_and_note(VICTIM))?;
        let site = self.stage.site_names()[VICTIM].clone();
        let killed_ms = self.stage.now_ms();
        let moment = self.stage.kill(VICTIM);
        self.tell(Beat::Killed { site: site.clone(), at_ms: killed_ms, moment })?;
        let meanwhile = &self.scenario.meanwhile;
        let handed = self.stage.hand_in(SURVIVOR, meanwhile)?;
        let here = self.reply_here(&handed)?;
        self.handed_in(&handed, meanwhile, here, None)?;
        self.states()?;
        self.stage.until(|stage| stage.is_up(VICTIM))?;
        let at_ms = self.stage.now_ms();
        self.tell(Beat::Restarted { site, at_ms, after_ms: at_ms - killed_ms })?;
        self.converge()?;
        self.states()?;
        self.outcome(None)?;
        if self.agreed {
            self.say("Nothing was lost, and nothing counts twice.")?;
        }
        Ok(())
    }

    /// Lets the sites come to agree, and tells every change on the way.
    fn converge(&mut self) -> Result<(), Failure> {
        let (start_ms, before) = (self.stage.now_ms(), self.stage.traffic());
        let mut held = self.held();
        while !self.stage.is_converged() {
            let moved =
                self.stage.until(|stage| stage.is_converged() || self::held(stage) != held)?;
            if !moved {
                return self.say("The sites do not come to agree.");
            }
            let after_ms = self.stage.now_ms() - start_ms;
            let now = self.held();
            for (site, (was, holds)) in held.iter().zip(&now).enumerate() {
                if was != holds {
                    let site = self.stage.site_names()[site].clone();
                    self.tell(Beat::Changed { site, after_ms, holds: holds.clone() })?;
                }
            }
            held = now;
        }
        let after = self.stage.traffic();
        self.tell(Beat::Converged(Converged {
            after_ms: self.stage.now_ms() - start_ms,
            messages: after.updates - before.updates,
            bytes: after.update_bytes - before.update_bytes,
        }))
    }

    fn held(&self) -> Vec<String> {
        held(&self.stage)
    }

    /// Waits for the receiving site's own reply: when it came, and what it was.
    fn reply_here(&mut self, handed: &Handed) -> Result<Option<Here>, Failure> {
        self.stage.until(|stage| stage.reply_here(handed).is_some())?;
        let after_ms = self.stage.now_ms() - handed.at_ms;
        let status = self.stage.reply_here(handed);
        Ok(status.map(|status| Here { after_ms, status: status.word() }))
    }

    fn handed_in(
        &mut self,
        handed: &Handed,
        action: &Action,
        here: Option<Here>,
        everywhere_after_ms: Option<u64>,
    ) -> Result<(), Failure> {
        self.tell(Beat::HandedIn(HandedIn {
            at_ms: handed.at_ms,
            site: handed.id.site().to_string(),
            operation: short(&handed.id),
            command: action.shell,
            here,
            everywhere_after_ms,
        }))
    }

    fn scene(&mut self, title: &str) -> Result<(), Failure> {
        self.scenes += 1;
        let at_ms = self.stage.now_ms();
        self.tell(Beat::Scene { number: self.scenes, title: title.to_owned(), at_ms })
    }

    fn say(&mut self, text: &str) -> Result<(), Failure> {
        self.tell(Beat::Says { text: text.to_owned() })
    }

    fn map(&mut self) -> Result<(), Failure> {
        self.tell(Beat::Map { links: self.stage.links() })
    }

    fn states(&mut self) -> Result<(), Failure> {
        self.tell(Beat::States { at_ms: self.stage.now_ms(), sites: self.stage.states() })
    }

    /// Every site has the same view once they agree: the first one's is told.
    fn replies(&mut self) -> Result<(), Failure> {
        let sites = self.stage.site_names();
        let (as_seen_by, operations) = (sites[0].clone(), self.stage.replies(0, &self.made_alone));
        self.tell(Beat::Replies { as_seen_by, sites, operations })
    }

    fn outcome(&mut self, published: Option<&'static str>) -> Result<(), Failure> {
        let mut held = self.held();
        held.dedup();
        let at_ms = self.stage.now_ms();
        let outcome = Outcome { at_ms, held, fresh_run: self.stage.fresh_run(), published };
        self.agreed &= outcome.agrees();
        self.tell(Beat::Outcome(outcome))
    }

    fn tell(&mut self, beat: Beat) -> Result<(), Failure> {
        (self.listener)(beat)
    }
}

/// What every site holds, in order of the sites.
fn held(stage: &Stage) -> Vec<String> {
    (0..SITES).map(|site| stage.holds(site)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::scenario::{FILE, REDIS};
    use super::*;

    fn beats(scenario: &'static Scenario, seed: u64) -> (bool, Vec<Beat>) {
        let mut beats = Vec::new();
        let mut listener = |beat| {
            beats.push(beat);
            Ok(())
        };
        let agreed = play(scenario, Length::Full, seed, &mut listener).unwrap();
        (agreed, beats)
    }

    #[test]
    fn the_published_outcomes_come_out_whatever_the_seed() {
        for seed in 0..30 {
            for scenario in [&FILE, &REDIS] {
                let (agreed, beats) = beats(scenario, seed);
                let outcomes = beats.iter().filter_map(|beat| match beat {
                    Beat::Outcome(outcome) => Some(outcome),
                    _ => None,
                });
                let outcomes: Vec<_> = outcomes.collect();
                assert!(agreed, "seed {seed}: {outcomes:?}");
                assert_eq!(outcomes.len(), 3);
                assert_eq!(outcomes[1].held, [scenario.published.after_the_cut]);
            }
        }
    }

    #[test]
    fn sites_that_are_cut_off_differ_and_explain_the_end_alike() {
        let (_, beats) = beats(&FILE, 1);
        let states = beats.iter().filter_map(|beat| match beat {
            Beat::States { sites, .. } => Some(sites),
            _ => None,
        });
        let cut: Vec<_> =
            states.into_iter().nth(1).unwrap().iter().map(|site| &site.holds).collect();
        assert!(cut[0] != cut[1] && cut[1] != cut[2] && cut[0] != cut[2], "{cut:?}");
        let tellings = beats.iter().filter(|beat| matches!(beat, Beat::Explained(_)));
        assert_eq!(tellings.count(), 1, "all sites tell the same");
    }

    #[test]
    fn the_same_seed_tells_the_same_story() {
        let told = |seed| serde_json::to_string(&beats(&REDIS, seed).1).unwrap();
        assert_eq!(told(3), told(3));
        assert_ne!(told(3), told(4));
    }
}
