//! Programs that decide about operations which were made concurrently (`logic:exec:NAME`).
//!
//! Where the list has a stretch of such operations, a site first comes back to the state before them, asks
//! its own program, and then runs what that says: some of them, in an order, or something else in their
//! place. What it said is told beside a reply, and holds for as long as the list up to there is the same.
//! Programs that are functions of what they are given say the same at all sites; where two sites gave
//! theirs the same and heard different things, both have diverged, and all sites say so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::json;

use super::Engine;
use super::context::Turn;
use super::ports::{Effect, Job, JobId, Notice, Task};
use super::resource::Resource;
use crate::model::{
    Author, Entry, EntryBody, Extension, Fingerprint, Operation, OperationId, Outcome, Payload,
    ProgramSaid, ProgramStep, ProgramVerdict, Reply, ResourceId, SiteId, SmallMap,
};
use crate::plan::Item;
use crate::resolve::Stretch;

/// What an author said is kept of so many stretches, the last ones.
const MOST_SAID: usize = 32;
/// So much of what a program printed is shown as a reason.
const MOST_SHOWN: usize = 512;

/// What programs said about one resource.
#[derive(Debug, Default)]
pub(super) struct Programs {
    /// What this site's said.
    own: BTreeMap<Fingerprint, ProgramVerdict>,
    /// What each author's said, the latest last.
    said: SmallMap<Author, Vec<VerdictSaid>>,
    asking: Option<(JobId, Stretch)>,
    /// What could not be told yet, for want of a reply to tell it beside.
    unsaid: Vec<ProgramVerdict>,
    /// What that comes to for the list as it is; readers may have it too.
    judged: Arc<Judged>,
}

#[derive(Debug)]
struct VerdictSaid {
    program: String,
    upto: Fingerprint,
    input: Option<Fingerprint>,
    output: Fingerprint,
    /// Why it was of no use, if so.
    failed: Option<String>,
    since_ms: u64,
}

/// The list, with what programs said of it.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// What is to be run; up to the first stretch about which the program is still to be asked.
    pub(super) items: Vec<Item>,
    /// About which to ask next.
    pub(super) ask: Option<Stretch>,
    left_out: BTreeMap<OperationId, LeftOutByProgram>,
    /// What is run in the place of commands.
    commands: BTreeMap<OperationId, String>,
    /// The stretches that there are.
    stretches: BTreeSet<Fingerprint>,
}

/// What a program did not name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutByProgram {
    /// The last of those that are run in its stead.
    pub by: OperationId,
    /// Which program.
    pub program: String,
}

impl fmt::Display for LeftOutByProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, program } = self;
        write!(f, "the program `{program}` left it out, and `{by}` is run")
    }
}

/// What programs decided about a list, at one time.
#[derive(Debug, Clone)]
pub struct DecidedByPrograms(Arc<Judged>);

impl DecidedByPrograms {
    /// What is run, in this order, with what is run in the place of commands.
    pub fn steps(&self) -> impl Iterator<Item = ProgramStep> {
        let judged = &self.0;
        let run = judged.items.iter().filter(|item| !item.kind.is_state());
        run.map(|item| ProgramStep {
            operation: item.id.clone(),
            command: judged.commands.get(&item.id).cloned(),
        })
    }

    /// What is left out of the list.
    pub fn left_out(&self) -> impl Iterator<Item = (&OperationId, &LeftOutByProgram)> {
        self.0.left_out.iter()
    }
}

impl Engine {
    /// What programs decided about the list of a resource, if they have.
    pub fn decided_by_programs(&self, id: &ResourceId) -> Option<DecidedByPrograms> {
        self.resources.get(id)?.programs.decided()
    }
}

impl Programs {
    /// Whether a program is asked, or about to be.
    pub(super) fn are_asked(&self) -> bool {
        self.asking.is_some() || self.judged.ask.is_some()
    }

    /// About what to ask, once all before it has run.
    pub(super) fn asks_next(&self) -> Option<Stretch> {
        self.judged.ask.clone()
    }

    /// Nothing is asked of the list as it is: it is run as it stands.
    pub(super) fn take_as_ordered(&mut self, items: Vec<Item>) {
        let stretches = self.judged.stretches.clone();
        self.judged = Arc::new(Judged { items, stretches, ..Judged::default() });
    }

    /// Whether the answer is waited for.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// What a program wants to be run in the place of the operation's command.
    pub(super) fn command_for(&self, operation: &OperationId) -> Option<&String> {
        self.judged.commands.get(operation)
    }

    /// Which operation is run instead of one that a program left out.
    pub(super) fn left_out_for(&self, operation: &OperationId) -> Option<&LeftOutByProgram> {
        self.judged.left_out.get(operation)
    }

    /// For what is waited, if it is for a program.
    pub(super) fn wait_for(&self) -> Option<String> {
        let asked =
            self.asking.as_ref().map(|(_, stretch)| stretch).or(self.judged.ask.as_ref())?;
        Some(format!("the program `{}` is asked about concurrent operations", asked.program))
    }

    /// What is run where programs decided, if all is decided.
    pub(super) fn decided(&self) -> Option<DecidedByPrograms> {
        let is_all = !self.judged.stretches.is_empty() && self.judged.ask.is_none();
        is_all.then(|| DecidedByPrograms(Arc::clone(&self.judged)))
    }

    /// How many operations of the list programs left out of it.
    pub(super) fn left_out(&self) -> usize {
        self.judged.left_out.len()
    }

    fn see(&mut self, author: &Author, verdict: &ProgramVerdict, since_ms: u64) {
        let said = self.said.get_or_insert_with(author, Vec::new);
        said.retain(|earlier| earlier.upto != verdict.upto);
        said.push(VerdictSaid {
            program: verdict.program.clone(),
            upto: verdict.upto,
            input: verdict.input,
            output: verdict.output(),
            failed: verdict.failure(),
            since_ms,
        });
        let over = said.len().saturating_sub(MOST_SAID);
        said.drain(..over);
    }
}

impl Resource {
    /// Whether a program is to be asked of any operations of this resource.
    pub(super) fn asks_programs(&self) -> bool {
        self.resolution.config().asks_programs()
    }

    /// Takes in what a site's program said.
    pub(super) fn see_program(&mut self, entry: &Entry, me: &Author) {
        let Some(verdict) = entry.program_verdict() else { return };
        let author = &entry.id().author;
        self.programs.see(author, &verdict, entry.stamp().wall_ms);
        if author == me {
            self.programs.own.insert(verdict.upto, verdict);
        }
    }

    /// Works out what programs said of the list as it is, of these items of it.
    pub(super) fn judge_list(&mut self, items: &[Item]) {
        self.programs.judged = Arc::new(self.judged(items));
        let judged = &self.programs.judged;
        let is_of_now = |upto: &Fingerprint| judged.stretches.contains(upto);
        self.programs.own.retain(|upto, _| is_of_now(upto));
    }

    pub(super) fn judged_items(&self) -> Vec<Item> {
        self.programs.judged.items.clone()
    }

    fn judged(&self, items: &[Item]) -> Judged {
        let config = self.resolution.config();
        let stretches = self.resolution.contested(|a, b| config.program(a, b).map(str::to_owned));
        let mut judged = Judged {
            stretches: stretches.iter().map(|stretch| stretch.upto).collect(),
            ..Judged::default()
        };
        // A state may stand before the first operation of the list.
        let before = items.len().saturating_sub(self.resolution.list().len());
        let mut done = 0;
        for stretch in stretches {
            let (from, to) = (before + stretch.from, before + stretch.to);
            judged.items.extend(items.get(done..from).unwrap_or_default().iter().cloned());
            let Some(contested) = items.get(from..to) else { return judged };
            let Some(verdict) = self.programs.own.get(&stretch.upto) else {
                judged.ask = Some(stretch);
                return judged;
            };
            judged.follow(verdict, contested);
            done = to;
        }
        judged.items.extend(items.get(done..).unwrap_or_default().iter().cloned());
        judged
    }

    /// Asks the site's program about a stretch, of which nothing has run here.
    pub(super) fn ask_program(&mut self, stretch: Stretch, turn: &mut Turn<'_>) {
        let Some(state) = self.config().state.clone() else { return };
        let Some(job) = turn.context.start_job(&self.id) else { return };
        let task = Task::Ask {
            program: stretch.program.clone(),
            question: self.question(&stretch),
            read: state.read,
        };
        self.programs.asking = Some((job, stretch));
        let resource = self.id.clone();
        turn.effect(Effect::Run(Job { id: job, resource, again: false, task, inline_body: None }));
    }

    /// What a program is given but for the state, as a JSON object.
    fn question(&self, stretch: &Stretch) -> String {
        let asked = self.asked_about(stretch);
        let among = |id: &&OperationId| asked.iter().any(|operation| operation.id == **id);
        let told = |operation: &&Operation| {
            let past = self.resolution.operations().past(&operation.id);
            let knew = |id: &&OperationId| past.is_some_and(|past| past.includes(&id.0));
            let others = asked.iter().map(|it| &it.id).filter(|id| **id != operation.id);
            let after: Vec<String> =
                others.filter(among).filter(knew).map(ToString::to_string).collect();
            let does = match &operation.payload {
                Payload::Shell { command, .. } => json!({ "command": command }),
                Payload::Http { service, method, path, .. } => {
                    json!({ "request": { "service": service, "method": method, "path": path } })
                }
            };
            json!({
                "id": operation.id.to_string(),
                "site": operation.id.site().to_string(),
                "type": operation.kind.to_string(),
                "does": does,
                "after": after,
            })
        };
        let operations: Vec<_> = asked.iter().map(told).collect();
        let config: serde_json::Value =
            serde_json::from_str(&self.config().to_json()).unwrap_or_default();
        json!({ "operations": operations, "config": config }).to_string()
    }

    fn asked_about(&self, stretch: &Stretch) -> Vec<&Operation> {
        let ids = self.resolution.list().skip(stretch.from).take(stretch.to - stretch.from);
        ids.filter_map(|id| self.operation(id)).map(|operation| &**operation).collect()
    }

    /// The answer to a question is there, if that job was one.
    pub(super) fn program_answered(
        &mut self,
        job: JobId,
        outcome: &Outcome,
        turn: &mut Turn<'_>,
    ) -> bool {
        let Some((_, stretch)) = self.programs.asking.take_if(|(asking, _)| *asking == job) else {
            return false;
        };
        let asked: Vec<OperationId> =
            self.asked_about(&stretch).iter().map(|operation| operation.id.clone()).collect();
        let (input, said) = said_in(outcome, &asked);
        let Stretch { program, upto, .. } = stretch;
        let verdict = ProgramVerdict { program, upto, input, said };
        if let Some(why) = verdict.failure() {
            turn.notify(Notice::Warning(self.id.clone(), why));
        }
        self.programs.own.insert(upto, verdict.clone());
        self.programs.unsaid.push(verdict);
        self.runs.list_rearranged();
        // What was asked about may be what nobody here has run anything of yet.
        if let Some(carrier) = self.carrier(&turn.context.settings.me.clone()) {
            let id = turn.context.next_entry();
            let stamp = turn.context.clock.tick(turn.now.wall_ms);
            let beside = self.unsaid_verdicts();
            self.write(EntryBody::Reply(Reply { id, stamp, ..carrier }), beside, turn);
        }
        true
    }

    /// What programs said and nobody was told, to be told beside a reply: one at a time.
    pub(super) fn unsaid_verdicts(&mut self) -> Vec<Extension> {
        // What holds no more is not worth telling.
        let latest = std::mem::take(&mut self.programs.unsaid).pop();
        latest.and_then(|verdict| Extension::program(&verdict)).into_iter().collect()
    }

    /// Why a site has diverged by what its program said, if it has, and since when.
    pub(super) fn disagreement_at(&self, site: &SiteId, me: &Author) -> Option<(String, u64)> {
        let stretches = &self.programs.judged.stretches;
        if stretches.is_empty() {
            return None;
        }
        let here = self.verdicts_of(site, me);
        let others = self.declared.sites.iter().filter(|other| *other != site);
        let mut disagreeing = others.flat_map(|other| {
            let theirs = self.verdicts_of(other, me);
            let pairs = theirs.into_iter().filter_map(|theirs| {
                let ours = here.iter().find(|ours| ours.upto == theirs.upto)?;
                let differs = ours.input.is_some()
                    && ours.input == theirs.input
                    && ours.output != theirs.output;
                differs.then_some((ours.since_ms.max(theirs.since_ms), &ours.program))
            });
            pairs.map(move |(since_ms, program)| (other, program, since_ms)).collect::<Vec<_>>()
        });
        let (other, program, since_ms) = disagreeing.next()?;
        Some((
            format!(
                "the logic `{program}` disagrees: asked the same, it said one thing here and another at \
                 `{other}`"
            ),
            since_ms,
        ))
    }

    /// The site whose program was of no use for the list as it is, why, and since when; of several the
    /// first of which that was so.
    pub(super) fn program_failure(&self, me: &Author) -> Option<(&SiteId, &str, u64)> {
        if self.programs.judged.stretches.is_empty() {
            return None;
        }
        let failed = self.declared.sites.iter().flat_map(|site| {
            let of_no_use = self.verdicts_of(site, me).into_iter();
            of_no_use.filter_map(move |said| Some((site, said.failed.as_deref()?, said.since_ms)))
        });
        failed.min_by_key(|(.., since_ms)| *since_ms)
    }

    /// What the program of a site said of the list as it is, in the incarnation that site is in now.
    fn verdicts_of(&self, site: &SiteId, me: &Author) -> Vec<&VerdictSaid> {
        let incarnation = match *site == me.site {
            true => Some(me.incarnation),
            false => self.peers.get(site).and_then(|peer| peer.incarnation),
        };
        let is_it = |author: &Author| {
            author.site == *site && incarnation.is_none_or(|it| author.incarnation == it)
        };
        let of_site = self.programs.said.iter().filter(|(author, _)| is_it(author));
        let stretches = &self.programs.judged.stretches;
        of_site.flat_map(|(_, said)| said).filter(|said| stretches.contains(&said.upto)).collect()
    }
}

impl Judged {
    /// Takes what a program said in the place of what it was asked about.
    fn follow(&mut self, verdict: &ProgramVerdict, contested: &[Item]) {
        let steps = match &verdict.said {
            ProgramSaid::Nothing { .. } => {
                self.items.extend(contested.iter().cloned());
                return;
            }
            ProgramSaid::Steps(steps) => steps,
        };
        for step in steps {
            let Some(item) = contested.iter().find(|item| item.id == step.operation) else {
                continue;
            };
            self.items.push(item.clone());
            if let Some(command) = &step.command {
                self.commands.insert(step.operation.clone(), command.clone());
            }
        }
        let is_run = |item: &&Item| steps.iter().any(|step| step.operation == item.id);
        let last = contested.iter().rev().find(is_run);
        for item in contested.iter().filter(|item| !is_run(item)) {
            // Of those that are all left out, each for the last one, and that for the first.
            let other = || contested.iter().rev().find(|other| other.id != item.id);
            if let Some(by) = last.or_else(other) {
                let (by, program) = (by.id.clone(), verdict.program.clone());
                self.left_out.insert(item.id.clone(), LeftOutByProgram { by, program });
            }
        }
    }
}

/// What came of asking: the fingerprint of what the program was given, on a line of its own, and what it said.
fn said_in(outcome: &Outcome, asked: &[OperationId]) -> (Option<Fingerprint>, ProgramSaid) {
    let text = outcome.text();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let input = Fingerprint::parse(first.trim());
    let shown = |why: &str| why.trim().chars().take(MOST_SHOWN).collect::<String>();
    let nothing = |why: String| ProgramSaid::Nothing { why, printed: None };
    let said = match outcome {
        Outcome::Exited { code: 0, .. } if !outcome.is_truncated() => {
            ProgramSaid::read(rest, asked).map_or_else(
                |why| {
                    let printed = Some(Fingerprint::of(rest.as_bytes()));
                    ProgramSaid::Nothing { why, printed }
                },
                ProgramSaid::Steps,
            )
        }
        Outcome::Exited { .. } => nothing(shown(rest)),
        Outcome::TimedOut { limit_ms } => nothing(format!("it did not end within {limit_ms} ms")),
        other => nothing(shown(other.text())),
    };
    (input, said)
}
