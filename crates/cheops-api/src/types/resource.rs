//! Resources, as the agent asked knows them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// A resource in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceSummary {
    /// Its name.
    pub id: String,
    /// Where it lives.
    pub sites: Vec<String>,
    /// How many operations are kept.
    pub operations: u64,
    /// How many of them are in the list.
    pub listed: u64,
    /// How it is, in a word.
    pub state: ResourceState,
    /// How it stands where it stands worst, as that site said: see [`SiteStanding`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<SiteStanding>,
    /// How many operations have a failure among their latest replies.
    pub errors: u64,
    /// When it last changed (RFC 3339).
    pub last_change: Option<String>,
    /// Since when all its sites are known to have read the same state (RFC 3339). None where that is not
    /// proven, or something else is amiss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
    /// Why that is not proven, where all sites are in sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unverified: Option<Unverified>,
    /// How many of the list a program left out: they are not run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out_by_programs: u64,
    /// What somebody should look at, though nothing failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<ResourceWarning>,
    /// The first few of the operations that `errors` counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubled: Vec<TroubledOperation>,
    /// Whether its operations are edits that are merged: none takes the place of others, so `force` and
    /// `undo` are refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub merged: bool,
    /// The service that it is a resource of, if it is one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

/// An operation that went wrong at some site, which nothing later has set right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TroubledOperation {
    /// Its id.
    pub operation: String,
    /// What it does, in a line.
    pub summary: String,
    /// Where it failed, whole or in part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_at: Vec<String>,
    /// Where nothing can tell whether it happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_doubt_at: Vec<String>,
    /// Where it can be run again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_at: Vec<String>,
    /// Where the state went back to what it was before all that it was to replace; its reply there tells
    /// what was there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written_over_at: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_false(truth: &bool) -> bool {
    !*truth
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why it is not known that all sites of a resource have the same state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Unverified {
    /// In a word.
    pub reason: UnverifiedReason,
    /// The sites by which that is so: those that have not said yet what they read, or the one that cannot
    /// read it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<String>,
    /// Since when that site cannot read it (RFC 3339), by its clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Why not, in that site's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Why a state is not verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnverifiedReason {
    /// The config does not say how the state is read: no target was given, or no `State`.
    NoState,
    /// Some sites have not said yet what they read.
    NotYet,
    /// A site cannot read it, or does not believe what it read.
    Unread,
}

impl UnverifiedReason {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::NoState => "no-state",
            Self::NotYet => "not-yet",
            Self::Unread => "unread",
        }
    }
}

/// Something that somebody should look at, though nothing failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceWarning {
    /// What it is about.
    pub about: WarningAbout,
    /// The site that says so.
    pub site: String,
    /// Since when (RFC 3339), by that site's clock.
    pub since: String,
    /// What it says.
    pub why: String,
}

/// What a warning is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarningAbout {
    /// The state could not be read for longer than `verify_every`.
    State,
    /// The program that decides about operations was of no use, so that they ran in the total order.
    Program,
}

/// What is known of a resource's state, where its config says how that is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateProof {
    /// Whether it is the same at all sites.
    pub agreement: StateAgreement,
    /// Since when that is known (RFC 3339), by the clock of the site that said so last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What stands for the state of each site, where they differ.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fingerprints: BTreeMap<String, String>,
    /// When it was last read at the site asked (RFC 3339), since that was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_here: Option<String>,
    /// Why what was read there proves nothing, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// Why the logic of the resource was of no use, and at which site, if so: then its operations ran in
    /// the total order there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logic_failed: Option<String>,
}

/// Whether the sites of a resource have the same state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StateAgreement {
    /// All sites read the same, after the same operations.
    Verified,
    /// They did not.
    Differs,
    /// Not all sites have said what they read.
    Unproven,
}

/// How a resource is, as the agent asked knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceState {
    /// Every site is connected, knows everything, and has run all of it with success.
    Converged,
    /// Some site is not known to know everything yet, or waits for something.
    Waiting,
    /// Something runs at a site, or waits for a place.
    Running,
    /// Some site is not connected, and was not in trouble when it was.
    Unknown,
    /// An operation may or may not have happened at a site: the operator is asked.
    InDoubt,
    /// The application of a site does not follow the list and cannot be repaired from there.
    Diverged,
    /// An operation failed at a site, and nothing later has set it right.
    Error,
    /// It was deleted.
    Deleted,
}

impl ResourceState {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Converged,
        Self::Waiting,
        Self::Running,
        Self::Unknown,
        Self::InDoubt,
        Self::Diverged,
        Self::Error,
        Self::Deleted,
    ];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Unknown => "unknown",
            Self::InDoubt => "in-doubt",
            Self::Diverged => "diverged",
            Self::Error => "error",
            Self::Deleted => "deleted",
        }
    }
}

/// How a resource stands at one site: whose word, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SiteStanding {
    /// The site.
    pub site: String,
    /// How it stands there.
    pub standing: Standing,
    /// Since when (RFC 3339), by the clock of that site; for one that is not connected, when it last was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Why, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The first operation that it is about; of one that has diverged, one that failed there, if that may
    /// be why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Whether that site is connected at present: if not, this is the last that is known of it.
    pub connected: bool,
    /// Whether the operation that failed there can be run again there. If not, it failed at every site,
    /// which counts nowhere, or some of its steps went well: submit it again, or dismiss it.
    #[serde(default)]
    pub can_retry: bool,
}

/// How a resource stands at a site, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It ran all that is known, and all went well.
    InSync,
    /// It has an operation and has not said yet what became of it.
    Running,
    /// It does not have everything yet, or waits for something.
    Waiting,
    /// It is not connected.
    Unknown,
    /// An operation failed there, and nothing later has set it right.
    Failed,
    /// Nothing can tell whether an operation happened there.
    InDoubt,
    /// Its application does not follow the list, and it cannot repair that.
    Diverged,
}

/// Which resources to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ResourceFilter {
    /// How many at most; the agent may give less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    /// Where to begin: `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Those whose id contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Those that live on this site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Those in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub state: Option<ResourceState>,
    /// Those with an operation of this type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Deleted ones too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<bool>,
    /// Those in sync everywhere that are, or are not, verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// Those with, or without, something that somebody should look at though nothing failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<bool>,
    /// In which order; by name if not given. In any other, all of them are looked at for each page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub sort: Option<ResourceOrder>,
    /// The other way round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse: Option<bool>,
}

/// In which order resources are listed; those that are alike by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceOrder {
    /// By name.
    Name,
    /// The worst first.
    State,
    /// What changed last first.
    Changed,
    /// Those with most operations first.
    Operations,
    /// Those with most errors first.
    Errors,
    /// Those never verified first, then those whose proof is oldest.
    Verified,
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    /// What a list says of it.
    #[serde(flatten)]
    pub summary: ResourceSummary,
    /// The operations that count, in the order to run them.
    pub list: Vec<String>,
    /// How conflicts are resolved.
    pub config: Value,
    /// How it stands at each of its sites.
    #[serde(default)]
    pub standings: Vec<SiteStanding>,
    /// Why this site's application does not follow the list; none if it does.
    pub health: Option<String>,
    /// What this site is doing about the list.
    pub progress: Progress,
    /// How many operations and replies each other site is not known to know.
    pub behind: BTreeMap<String, u64>,
    /// The operation in doubt that waits for the operator, if one does.
    pub awaits: Option<String>,
    /// What keeps the next operation from being tried at this site, if something does: it is tried
    /// again every now and then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// What the sites call it, if it is a resource of a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicant: Option<Replicant>,
    /// What is known of its state, if its config says how that is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<StateProof>,
}

/// What is told of a resource beyond its summary at whatever length its list has: all but its list and
/// its config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceDetail {
    /// How it stands at each of its sites.
    pub standings: Vec<SiteStanding>,
    /// Why this site's application does not follow the list; none if it does.
    pub health: Option<String>,
    /// What this site is doing about the list.
    pub progress: Progress,
    /// How many operations and replies each other site is not known to know.
    pub behind: BTreeMap<String, u64>,
    /// The operation in doubt that waits for the operator, if one does.
    pub awaits: Option<String>,
    /// What keeps the next operation from being tried at this site, if something does.
    pub waits_for: Option<String>,
    /// What the sites call it, if it is a resource of a service.
    pub replicant: Option<Replicant>,
    /// What is known of its state, if its config says how that is read.
    pub proof: Option<StateProof>,
}

impl From<Resource> for ResourceDetail {
    fn from(whole: Resource) -> Self {
        // Every field is named: what is added to one of them is not forgotten in the other.
        let Resource {
            summary: _,
            list: _,
            config: _,
            standings,
            health,
            progress,
            behind,
            awaits,
            waits_for,
            replicant,
            proof,
        } = whole;
        Self { standings, health, progress, behind, awaits, waits_for, replicant, proof }
    }
}

/// Whether a site holds a resource, and for whom: what agents ask each other who need no more of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceHolding {
    /// Whether it is held there, be it deleted or not.
    pub held: bool,
    /// Where it lives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<String>,
    /// Whether it was deleted.
    #[serde(default)]
    pub deleted: bool,
    /// Whether it is a resource of a service.
    #[serde(default)]
    pub is_of_service: bool,
}

/// What each site's instance of a service calls one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Replicant {
    /// The service.
    pub service: String,
    /// What users call it, at every site.
    pub meta_id: String,
    /// The path under which it is one of many.
    pub collection: String,
    /// What each site's service calls it; sites that have not made it are missing.
    pub local_ids: BTreeMap<String, String>,
}

/// Where a site stands with running the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// Nothing is left to run.
    Idle,
    /// Something runs, or waits for a place.
    Running,
    /// An operation in doubt waits for the operator.
    AwaitsOperator,
}
