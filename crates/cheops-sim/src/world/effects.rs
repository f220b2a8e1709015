//! Carrying out what an engine decided, once it is durable.

use cheops_core::engine::{Answer, Effect, Job, Message, Notice, Task, Ticket};
use cheops_core::model::SiteId;

use super::World;
use super::agenda::AgendaItem;
use crate::bugs::Bug;
use crate::keys::SimKey;
use crate::site::RunningJob;

impl World {
    pub(super) fn carry_out_effect(&mut self, site: usize, effect: Effect) {
        self.trace.note(self.now_ms, &self.sites[site].id, &effect);
        if !Bug::lets_out(self.setup.bug, &effect) {
            return;
        }
        match effect {
            Effect::Tell { to, message } => self.tell(site, &to, &message),
            Effect::Run(job) => self.run(site, job),
            Effect::Answer { ticket, answer } => self.answer(site, ticket, answer),
            Effect::Notify(notice) => self.note(site, notice),
            Effect::Publish(resource, id_map) => self.published(site, &resource, id_map),
            Effect::SetApart(liar, key) => self.set_apart(site, &liar, key),
        }
    }

    fn tell(&mut self, from: usize, to: &SiteId, message: &Message) {
        let Some(to) = self.indexes.get(to).copied() else { return };
        if self.sites[from].set_apart.contains(&SimKey::of(&self.sites[to].id).id()) {
            return;
        }
        self.count(from, to, message);
        let delays = self.network.delays_ms(from, to, &mut self.rng);
        match delays.as_slice() {
            [] => self.sometimes.saw("network: lost"),
            [_] => {}
            _ => self.sometimes.saw("network: duplicated"),
        }
        if delays.iter().any(|delay| *delay > 300) {
            self.sometimes.saw("network: reordered");
        }
        for delay in delays {
            self.schedule(delay, AgendaItem::Deliver { to, from, message: message.clone() });
        }
    }

    fn count(&mut self, from: usize, to: usize, message: &Message) {
        let Message::Update(update) = message else {
            self.traffic.heartbeats += 1;
            return;
        };
        self.traffic.updates += 1;
        self.traffic.entries += update.entries.len() as u64;
        self.traffic.update_bytes +=
            postcard::to_stdvec(message).map_or(0, |bytes| bytes.len() as u64);
        if !self.setup.check || self.sites[from].lies {
            return;
        }
        let (from, to) = (self.sites[from].id.clone(), self.sites[to].id.clone());
        self.checks.told(&to, update);
        if update.asks {
            self.sometimes.saw("sync: asked");
        }
        if update.entries.len() > 4 {
            self.sometimes.saw("sync: caught up in one message");
        }
        if update.entries.iter().any(|entry| entry.id().author.site != from) {
            self.sometimes.saw("sync: relayed by a third site");
        }
    }

    fn run(&mut self, site: usize, job: Job) {
        match &job.task {
            Task::Run(operation) => {
                let site = &self.sites[site];
                if site.application.holds(&job.resource, &operation.id) {
                    self.sometimes.saw("run: again, from a replacing operation");
                }
            }
            Task::Undo { .. } => self.sometimes.saw("run: undone"),
            Task::Check { .. } => self.sometimes.saw("run: checked"),
            Task::Snapshot { .. } => self.sometimes.saw("run: snapshot"),
            Task::Restore { .. } => self.sometimes.saw("run: restored"),
            Task::Read { .. } => self.sometimes.saw("state: read"),
            Task::Write { .. } => self.sometimes.saw("history: begun with a state"),
            Task::Edit { .. } if job.again => self.sometimes.saw("edit: made again"),
            Task::Edit { .. } => self.sometimes.saw("edit: made"),
            Task::Merge { .. } if job.again => self.sometimes.saw("edit: merged again"),
            Task::Merge { .. } => self.sometimes.saw("edit: merged"),
            Task::Ask { .. } => self.sometimes.saw("program: asked"),
            Task::RunPart { .. } | Task::Decompose { .. } => {}
        }
        let (least, most) = self.setup.command_ms;
        let takes = self.rng.between(least, most);
        let acts = self.rng.below(takes + 1);
        let (id, start) = (job.id, self.sites[site].start);
        self.sites[site].running.insert(id, RunningJob { job, outcome: None, change: None });
        self.schedule(acts, AgendaItem::CarryOut { site, start, job: id });
        self.schedule(takes, AgendaItem::End { site, start, job: id });
    }

    fn answer(&mut self, site: usize, ticket: Ticket, answer: Answer) {
        match &answer {
            Answer::Accepted { operation: id, .. } => {
                if let Some(operation) = self.operations.get(id) {
                    let holds = self.sites[site].disk.holds(&operation.resource, id);
                    self.checks.accepted(&operation.resource, id, holds);
                }
            }
            Answer::Done => self.sometimes.saw("user: answered by all"),
            Answer::TimedOut { .. } => self.sometimes.saw("user: timed out"),
            Answer::Refused(_) => self.sometimes.saw("user: refused"),
            Answer::Replied(_) => {}
        }
        self.answers.entry(ticket).or_default().push(answer);
    }

    fn note(&mut self, site: usize, notice: Notice) {
        self.trace.line(|| format!("{:>9} {:<9}   {notice:?}", self.now_ms, self.sites[site].id));
        match &notice {
            Notice::SiteDown(_) => self.sometimes.saw("site: seen down"),
            Notice::SiteUp(_) => self.sometimes.saw("site: seen up again"),
            Notice::SiteLostItsDisk(_) => self.sometimes.saw("site: rejoined without its memory"),
            Notice::StrangeClock(..) => self.sometimes.saw("clock: strange stamp flagged"),
            Notice::Pruned(resource, _) => {
                self.sometimes.saw("sync: pruned");
                let engine = self.sites[site].engine.as_ref();
                let view = engine.and_then(|engine| engine.resource(resource));
                if view.is_some_and(|view| view.state.is_some()) {
                    self.sometimes.saw("history: forgotten for a state");
                }
            }
            Notice::PartialError(..) => self.sometimes.saw("run: partial error"),
            Notice::Diverged(..) => self.sometimes.saw("run: diverged"),
            Notice::Differs(_) => self.sometimes.saw("state: differs"),
            Notice::Warning(..) => self.sometimes.saw("warning: somebody should look"),
            Notice::InDoubt(resource, operation) => {
                self.sometimes.saw("run: in doubt, operator asked");
                let at = self.sites[site].id.clone();
                self.checks.doubted.insert((at, resource.clone(), operation.clone()));
            }
            Notice::Settled(..) => self.sometimes.saw("operation: every site has replied"),
            Notice::Converged(_) => self.sometimes.saw("resource: converged"),
            Notice::Malformed(from, what) => {
                let lies = self.indexes.get(from).is_some_and(|from| self.sites[*from].lies);
                let allowed = self.setup.bug.is_some() || lies || self.sites[site].lies;
                self.checks.malformed(from, *what, allowed);
            }
            Notice::Applied(resource, operation) => {
                let at = self.sites[site].id.clone();
                self.checks.doubted.remove(&(at, resource.clone(), operation.clone()));
            }
            Notice::LeftOut(..) => self.sometimes.saw("history: told why before it was forgotten"),
            Notice::Failed(..)
            | Notice::Superseded(..)
            | Notice::SetApart(..)
            | Notice::SharedIdentity(..)
            | Notice::Asked(..) => {}
        }
        self.notices.push((self.sites[site].id.clone(), notice));
    }
}
