//! What goes into an engine and what comes out: events, effects, and the messages between sites.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::{Config, MergedAs, StateCommands};
use crate::model::OverLimit;
use crate::model::{
    Asker, BlobId, Chain, Declaration, DocumentEdit, Entry, Evidence, IdMap, Incarnation, KeyId,
    OperationId, OperationType, Outcome, Payload, Position, Reply, ResourceId, SiteId, Stamp,
    StateFloor, Undoing, Vector,
};
use crate::plan::{Decision, Divergence, SnapshotId};

/// The time, as the caller reads it. The engine has no clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// A clock that only goes forward, for timers and round trips; its origin means nothing.
    pub mono_ms: u64,
    /// Milliseconds since the Unix epoch as this site believes; may be wrong by any amount.
    pub wall_ms: u64,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant, reason = "most events are of the large kinds")]
pub enum Event {
    /// A user handed in an operation.
    Submitted(Submission),
    /// Another site said something. Who it is has been proven by the transport.
    Heard {
        /// The speaker.
        from: SiteId,
        /// What it said.
        message: Message,
    },
    /// A way to that site was opened (again): a sign of life can reach it now.
    Reached(SiteId),
    /// A job asked for by [`Effect::Run`] came to its end.
    Ended {
        /// Which.
        job: JobId,
        /// How.
        outcome: Outcome,
    },
    /// The same of [`Task::Edit`] that succeeded: with what it made of the document.
    Edited {
        /// Which.
        job: JobId,
        /// How.
        outcome: Outcome,
        /// The change; empty if there was none.
        change: Arc<[u8]>,
    },
    /// The operator settled an operation that was in doubt at this site.
    Decided {
        /// The resource.
        resource: ResourceId,
        /// The operation.
        operation: OperationId,
        /// What to make of it.
        decision: Decision,
    },
    /// Somebody asked that an operation which failed at this site be run again.
    Retried {
        /// The resource.
        resource: ResourceId,
        /// The operation.
        operation: OperationId,
    },
    /// Somebody said that an operation which failed is to be let be.
    Dismissed {
        /// The resource.
        resource: ResourceId,
        /// The operation.
        operation: OperationId,
    },
    /// Somebody said that an operation is to be taken out, everywhere, or to count again.
    Undone {
        /// The resource.
        resource: ResourceId,
        /// Which operation.
        undoing: Undoing,
    },
    /// Something that the agent saw and that belongs into the log.
    Noticed(Notice),
    /// Time passed. Due at [`super::Engine::next_deadline`] at the latest; earlier does no harm.
    Ticked,
}

/// The caller's name for a request it waits on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ticket(pub u64);

/// An operation as a user hands it in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// Where to send answers.
    pub ticket: Ticket,
    /// What to change.
    pub resource: ResourceId,
    /// Which sites hold it. Needed for a new resource; for a known one it must agree.
    pub sites: Option<BTreeSet<SiteId>>,
    /// How conflicts are settled, if this is to be said (anew).
    pub config: Option<Arc<Config>>,
    /// The operation's type.
    pub kind: OperationType,
    /// What to do.
    pub payload: Payload,
    /// The content of the request's body, where it is so short that it goes along in the entry; a
    /// longer one is a file, which is here already.
    pub inline_body: Option<Arc<[u8]>>,
    /// Whether it is the operator's own resolution: it replaces everything before it.
    pub force: bool,
    /// Whose replies to wait for.
    pub wait: WaitFor,
    /// How long to wait.
    pub timeout_ms: u64,
    /// Resources that must have taken effect at a site before this runs there.
    pub needs: BTreeSet<ResourceId>,
    /// Who asked for it, where that is known.
    pub asked_by: Option<Asker>,
}

/// Whose replies a user waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitFor {
    /// Every site of the resource.
    All,
    /// The receiving site.
    Local,
    /// Nobody's: durable acceptance is enough.
    Nothing,
}

/// Something to do. Handed out only after what it rests on is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Send this to that site. It may get lost: the engine asks again.
    Tell {
        /// The listener.
        to: SiteId,
        /// What to say.
        message: Message,
    },
    /// Run this, then hand in [`Event::Ended`].
    Run(Job),
    /// Tell a waiting user.
    Answer {
        /// Who.
        ticket: Ticket,
        /// What.
        answer: Answer,
    },
    /// Tell whoever cares: hooks, logs, metrics.
    Notify(Notice),
    /// From now on, requests that speak of this resource of a service are to be known, to the proxies
    /// and executors of this site; or, with `None`, no more.
    Publish(ResourceId, Option<Arc<IdMap>>),
    /// From now on, nothing is to be heard from who holds that key of that site, and nothing said to
    /// it: it was shown to lie.
    SetApart(SiteId, KeyId),
}

/// The name of a run. Counted from 1 in each engine: when an engine is recovered, jobs of the one
/// before it must have ended, or been ended, before this one's effects are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobId(pub u64);

/// One run at this site. One at a time per resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its name, new for every run of this engine.
    pub id: JobId,
    /// The resource.
    pub resource: ResourceId,
    /// Whether the same was begun here before, and may have happened.
    pub again: bool,
    /// What to run.
    pub task: Task,
    /// The content of the request's body, if its operation brought it along; else it is a file.
    pub inline_body: Option<Arc<[u8]>>,
}

/// What a job does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// Carry out the operation.
    Run(Arc<crate::model::Operation>),
    /// Carry out an operation on a document that is merged, and say what it made of it.
    Edit {
        /// The operation.
        operation: Arc<crate::model::Operation>,
        /// As what the document is merged.
        form: MergedAs,
        /// What is in it.
        merged: Arc<Vec<DocumentEdit>>,
        /// The name under which the change is made, which no other change has.
        writer: u64,
        /// How the document is read and written.
        state: StateCommands,
    },
    /// Merge what an operation made of the document at another site.
    Merge {
        /// The operation.
        operation: OperationId,
        /// As what the document is merged.
        form: MergedAs,
        /// What is in it.
        merged: Arc<Vec<DocumentEdit>>,
        /// What is new.
        new: Vec<DocumentEdit>,
        /// How the document is read and written.
        state: StateCommands,
    },
    /// Ask a program what becomes of operations that were made concurrently. What it says comes back as
    /// text: the fingerprint of what it was given, then a line end, then what it printed.
    Ask {
        /// Which of the site's programs.
        program: String,
        /// What it is given but for the state, as a JSON object.
        question: String,
        /// How the state before them is read.
        read: String,
    },
    /// One smaller step of an operation that failed whole.
    RunPart {
        /// The operation it is a part of.
        operation: Arc<crate::model::Operation>,
        /// The step.
        command: String,
    },
    /// Ask the operator's program for smaller steps: one command a line.
    Decompose {
        /// The operation that failed.
        operation: Arc<crate::model::Operation>,
        /// The program.
        command: String,
    },
    /// Take the operation back.
    Undo {
        /// Which.
        operation: OperationId,
        /// How.
        command: String,
    },
    /// Find out whether the operation happened: exit 0 if it did.
    Check {
        /// Which.
        operation: OperationId,
        /// How.
        command: String,
    },
    /// Save the resource's state: what it prints is kept at the site under this name.
    Snapshot {
        /// The name.
        id: SnapshotId,
        /// How.
        command: String,
    },
    /// Bring back a saved state.
    Restore {
        /// Which.
        id: SnapshotId,
        /// How.
        command: String,
        /// How the state that is written over is read, if what it was is to come back as text: nothing
        /// else has it.
        shown_by: Option<String>,
    },
    /// Read the resource's state: what comes back is the text of its fingerprint.
    Read {
        /// How.
        command: String,
        /// Whether what it prints is to be kept as content: then its size comes after the fingerprint.
        keep: bool,
    },
    /// Make the resource what a state that stands for forgotten operations says.
    Write {
        /// The state.
        state: BlobId,
        /// How many bytes it has.
        size: u64,
        /// How.
        command: String,
    },
}

/// What a waiting user hears.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The operation is on this site's disk.
    Accepted {
        /// Under this id.
        operation: OperationId,
        /// Where it goes.
        sites: BTreeSet<SiteId>,
        /// What the resource is resolved by from now on.
        config: Arc<Config>,
        /// Whether that took the place of another config.
        config_replaced: bool,
    },
    /// A site replied.
    Replied(Reply),
    /// Everyone waited for has replied.
    Done,
    /// Time is up; these have not replied. The work goes on.
    TimedOut {
        /// Who is missing.
        missing: Vec<SiteId>,
    },
    /// It was not accepted, and nothing happened.
    Refused(Refusal),
}

/// Why an operation was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// Nobody said yet where it lives.
    #[error("resource `{0}` is not known here; a new resource needs its sites")]
    UnknownResource(ResourceId),
    /// This site does not hold it.
    #[error("resource `{resource}` lives on {}, not on this site", names(.sites))]
    NotHeldHere {
        /// The resource.
        resource: ResourceId,
        /// Where it lives.
        sites: BTreeSet<SiteId>,
    },
    /// The sites named are not those it lives on.
    #[error("resource `{resource}` lives on {}, not on {}", names(.are), names(.asked))]
    SitesDiffer {
        /// The resource.
        resource: ResourceId,
        /// Where it lives.
        are: BTreeSet<SiteId>,
        /// What was asked for.
        asked: BTreeSet<SiteId>,
    },
    /// It was ended.
    #[error("resource `{0}` was deleted; only a forced operation brings it back")]
    Deleted(ResourceId),
    /// A site that no one has heard of.
    #[error("site `{0}` is not a site of this mesh")]
    UnknownSite(SiteId),
    /// Nothing takes the place of what others wrote in a document that is merged.
    #[error(
        "the operations of resource `{0}` are edits that are merged, and none takes the place of all \
         others; submit an edit that makes the document what it should be"
    )]
    Merged(ResourceId),
    /// It needs what needs it.
    #[error("resource `{resource}` needs {}, so that none of them could be there first", chain(.by, .resource))]
    NeedsItself {
        /// The resource.
        resource: ResourceId,
        /// What it needs, what that needs, and so on.
        by: Vec<ResourceId>,
    },
}

fn chain(by: &[ResourceId], resource: &ResourceId) -> String {
    let all = by.iter().chain(std::iter::once(resource));
    all.map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", which needs ")
}

fn names(sites: &BTreeSet<SiteId>) -> String {
    sites.iter().map(|site| format!("`{site}`")).collect::<Vec<_>>().join(", ")
}

/// News for hooks, logs and metrics. The engine itself never logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// An operation ran here and succeeded.
    Applied(ResourceId, OperationId),
    /// An operation ran here and failed.
    Failed(ResourceId, OperationId),
    /// An operation succeeded at some sites and failed at others.
    PartialError(ResourceId, OperationId),
    /// An operation did not run here, since another took its place.
    Superseded(ResourceId, OperationId, OperationId),
    /// This site's application no longer follows the list and cannot be repaired from here.
    Diverged(ResourceId, Divergence),
    /// Sites that ran the same list have different states.
    Differs(ResourceId),
    /// Nothing failed, and somebody should look all the same: the state cannot be read here, or the program
    /// that decides was of no use. Why.
    Warning(ResourceId, String),
    /// The site stopped while the operation ran, and nothing can tell whether it happened.
    InDoubt(ResourceId, OperationId),
    /// Every site has replied to an operation that was handed in here.
    Settled(ResourceId, OperationId, Ending),
    /// Every site knows everything about the resource, and this one has run all of it.
    Converged(ResourceId),
    /// Nothing was heard of that site for a while.
    SiteDown(SiteId),
    /// That site is heard (again).
    SiteUp(SiteId),
    /// That site came back without its memory: it gets its resources from the others.
    SiteLostItsDisk(SiteId),
    /// An operation claims a time far ahead of this site's clock. It is taken all the same.
    StrangeClock(ResourceId, OperationId, u64),
    /// History below a floor was forgotten, since every site has it and none needs it.
    Pruned(ResourceId, u64),
    /// Why operations are left out: told when they lose, and of the others before they are forgotten,
    /// for who reads the history later.
    LeftOut(ResourceId, Vec<PastDecision>),
    /// A site sent something that cannot be; it was left aside.
    Malformed(SiteId, Malformed),
    /// A site was shown to lie, by two entries that no honest one signs both: nothing is heard from
    /// who holds that key.
    SetApart(SiteId, KeyId),
    /// Two agents use the identity of one site at once; with what was seen of them.
    SharedIdentity(SiteId, String),
    /// Somebody asked for something that leaves no entry: what, and who.
    Asked(Option<ResourceId>, Asker, String),
}

/// Why an operation that is about to be forgotten is not in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastDecision {
    /// The operation.
    pub operation: OperationId,
    /// The one that counts in its stead; none if it failed everywhere.
    pub by: Option<OperationId>,
    /// The reason, in words.
    pub why: String,
}

/// How an operation ended when the last of its sites had replied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It succeeded at every site.
    Applied,
    /// It failed at every site where it ran.
    Failed,
    /// It succeeded at some sites and failed at others.
    PartialError,
    /// Another took its place, at some site at least.
    Superseded,
    /// Some site cannot tell whether it happened.
    InDoubt,
}

impl Notice {
    /// Whether a reply that this site writes in the same batch says the same.
    pub fn is_in_a_reply(&self) -> bool {
        matches!(self, Self::Applied(..) | Self::Failed(..) | Self::Superseded(..))
    }
}

/// What was wrong with something heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Malformed {
    /// About a resource that this site, or the sender, does not hold.
    #[error("about a resource that is not shared with the sender")]
    NotShared,
    /// An entry that belongs to another resource.
    #[error("an entry of another resource")]
    WrongResource,
    /// An operation stamped before its own past.
    #[error("an operation stamped before its own past")]
    StampBeforePast,
    /// Numbers that do not go forward.
    #[error("an entry numbered before the one it follows")]
    NumberNotAfter,
    /// A time that no clock shows, with no room for anything after it.
    #[error("a stamp at the end of time")]
    NoSuchTime,
    /// A base that its sender does not know itself, or that goes beyond what this site wrote.
    #[error("a base beyond what is known")]
    BaseBeyondKnowledge,
    /// More at once than the limit.
    #[error("more entries than the limit")]
    TooMany,
    /// A declaration, a config or a payload beyond what a user may hand in.
    #[error("an operation beyond the limits that hold for users")]
    BeyondLimits,
    /// An entry in the name of another site, or of nobody.
    #[error("an entry whose signature is not its author's")]
    NotItsAuthors,
    /// Bytes that are no message. The link was closed.
    #[error("bytes that cannot be read")]
    Unreadable,
}

/// What sites say to each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// I am here.
    Heartbeat(Heartbeat),
    /// What I know of a resource we share, and what you may lack.
    Update(Box<Update>),
    /// A site lies: here is what shows it. Whoever hands this in has checked both signatures.
    Evidence(Box<Evidence>),
}

/// A sign of life, with what is needed to measure the round trip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Which incarnation of the sender's disk.
    pub incarnation: Incarnation,
    /// When it left, by the sender's clock.
    pub sent_ms: u64,
    /// The last heartbeat heard from the listener, and how long ago.
    pub echo: Option<Echo>,
    /// Sites sharing resources with the sender that it does not hear at present.
    pub unheard: Vec<SiteId>,
    /// The keys of those that the sender knows to lie.
    pub set_apart: Vec<KeyId>,
}

/// A heartbeat on its way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Echo {
    /// As the other side stamped it.
    pub sent_ms: u64,
    /// How long it was held before it was sent back.
    pub held_ms: u64,
}

/// Entries the listener lacks, with what the speaker knows: enough to tell what either lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// Which incarnation of the sender's disk.
    pub incarnation: Incarnation,
    /// The resource.
    pub resource: ResourceId,
    /// What was pruned, where the listener may not know.
    pub base: Option<Base>,
    /// What the listener lacks, in causal order.
    pub entries: Vec<Arc<Entry>>,
    /// Everything the speaker knows of the resource.
    pub knows: Vector,
    /// The hashes of the last entries that it knows, author by author.
    pub chain: Chain,
    /// What an earlier incarnation of the listener may have known, so it may have run it.
    pub you_may_have_run: Vector,
    /// Whether the speaker wants to hear what the listener knows.
    pub asks: bool,
}

/// The ground under the kept history: everything up to here was known by every site, is ruled out
/// for good, and has been forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// What was forgotten.
    pub upto: Vector,
    /// What the forgotten operations declared, for a reader that may never have seen them. Of the
    /// configs, none that a later operation gave: the reader may not know that one yet, and whoever
    /// knows the same must resolve by the same.
    pub declared: Option<Declared>,
    /// The hashes of the last forgotten entries, as far as they are known.
    pub chain: Chain,
    /// The last place in the order that a forgotten operation had.
    pub order: Option<Stamp>,
    /// The state that stands for those of the forgotten operations which count. It is believed only
    /// where the sites that have it say so themselves.
    pub state: Option<Box<StateFloor>>,
}

impl Base {
    /// That all this was forgotten, and nothing of what it was.
    pub(super) fn of(upto: Vector) -> Self {
        Self { upto, declared: None, chain: Chain::default(), order: None, state: None }
    }

    /// The last config that the forgotten operations gave.
    pub(super) fn config(&self) -> Option<&Given> {
        self.declared.as_ref().and_then(|declared| declared.config.as_ref())
    }
}

/// A config, and where in the total order it was given.
pub type Given = (Position, Arc<Config>);

/// Keeps the later of two configs; whether that is a change.
pub(super) fn keep_later(ours: &mut Option<Given>, theirs: Option<&Given>) -> bool {
    let is_later = theirs.map(|(at, _)| at) > ours.as_ref().map(|(at, _)| at);
    if is_later {
        *ours = theirs.cloned();
    }
    is_later
}

/// What all declarations of a resource come to. They only add up, so every site agrees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// Where the resource lives: all sites ever declared.
    pub sites: BTreeSet<SiteId>,
    /// The last config given, and where in the total order that was.
    pub config: Option<Given>,
    /// What the sites call it, if it is a resource of a service.
    pub id_map: Option<IdMap>,
}

impl Declared {
    /// Whether a user could have said it.
    pub(super) fn check_limits(&self) -> Result<(), OverLimit> {
        let config = self.config.as_ref().map(|(_, config)| config.clone());
        Declaration { sites: self.sites.clone(), config }.check_limits()?;
        self.id_map.as_ref().map_or(Ok(()), IdMap::check_limits)
    }

    /// Takes in another declaration; whether it changed the sites or the config.
    pub fn join(&mut self, other: &Self) -> bool {
        match (&mut self.id_map, &other.id_map) {
            (Some(ours), Some(theirs)) => ours.join(theirs),
            (None, Some(theirs)) => self.id_map = Some(theirs.clone()),
            (_, None) => {}
        }
        let sites = self.sites.len();
        self.sites.extend(other.sites.iter().cloned());
        let is_later = keep_later(&mut self.config, other.config.as_ref());
        is_later || self.sites.len() > sites
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heartbeat(_) => f.write_str("heartbeat"),
            Self::Evidence(evidence) => write!(f, "evidence against {}", evidence.author()),
            Self::Update(update) => write!(
                f,
                "update {} entries={:?} knows={:?}{}{}",
                update.resource,
                update.entries.iter().map(|entry| entry.id()).collect::<Vec<_>>(),
                update.knows,
                if update.base.is_some() { " base" } else { "" },
                if update.asks { " asks" } else { "" },
            ),
        }
    }
}
