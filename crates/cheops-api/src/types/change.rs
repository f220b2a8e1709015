//! News: what the change feed tells.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Asker, DecidedPair, LeftOut, Operation, Reply, ResourceDetail, ResourceSummary};

/// One thing that changed. In the feed, the event's name is that of the variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Change {
    /// An operation became known here.
    Operation {
        /// What it changes.
        resource: String,
        /// Which.
        operation: String,
        /// The site that received it from its user.
        site: String,
        /// Its type.
        #[serde(rename = "type")]
        kind: String,
        /// What it does, in a line.
        summary: String,
        /// When it was made, by the receiving site's clock (RFC 3339).
        time: String,
        /// Who asked for it, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_by: Option<Asker>,
    },
    /// A site said what it got from an operation.
    Reply {
        /// The resource.
        resource: String,
        /// The operation.
        operation: String,
        /// The site that replies.
        site: String,
        /// What it says.
        reply: Reply,
        /// What it says beside that: then the reply is one that it said before, and says again for this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        beside: Option<SaidBeside>,
    },
    /// An operation succeeded at some sites and failed at others.
    PartialError {
        /// The resource.
        resource: String,
        /// The operation.
        operation: String,
    },
    /// Every site has replied to an operation that was submitted at this site.
    Settled {
        /// The resource.
        resource: String,
        /// The operation.
        operation: String,
    },
    /// This site stopped while an operation ran, and nothing can tell whether it happened: the
    /// operator is asked.
    InDoubt {
        /// The resource.
        resource: String,
        /// The operation.
        operation: String,
    },
    /// This site's application no longer follows the list and cannot be repaired from here.
    Diverged {
        /// The resource.
        resource: String,
        /// Why.
        why: String,
    },
    /// Sites that applied the same operations read different states.
    Differs {
        /// The resource.
        resource: String,
    },
    /// Nothing failed, and somebody should look all the same: the state cannot be read here, or the
    /// program that decides was of no use.
    Warning {
        /// The resource.
        resource: String,
        /// What about.
        why: String,
    },
    /// Every site knows everything about the resource, and this one has run all of it.
    Converged {
        /// The resource.
        resource: String,
    },
    /// That site has not been connected for a while.
    SiteDown {
        /// Which.
        site: String,
    },
    /// That site is connected (again).
    SiteUp {
        /// Which.
        site: String,
    },
    /// That site came back without its memory: it gets its resources from the others.
    SiteLostDisk {
        /// Which.
        site: String,
    },
    /// An operation carries a stamp far ahead of this site's clock. It is taken all the same.
    StrangeClock {
        /// The resource.
        resource: String,
        /// The operation.
        operation: String,
        /// How far ahead.
        ahead_ms: u64,
    },
    /// History that every site has and none needs was forgotten.
    Pruned {
        /// The resource.
        resource: String,
        /// How many operations and replies.
        entries: u64,
    },
    /// Why operations do not count, said when they were pruned.
    LeftOut {
        /// The resource.
        resource: String,
        /// Each of them, with the reason.
        decisions: Vec<DecidedPair>,
    },
    /// A site sent something that cannot be; it was left aside.
    Malformed {
        /// The sender.
        site: String,
        /// What was wrong.
        why: String,
    },
    /// A site signed two entries that cannot both be its word. It is set apart: nothing is taken
    /// from who holds that key until it is issued a new identity.
    SetApart {
        /// Which.
        site: String,
        /// The key that both were signed with.
        key: String,
    },
    /// Two agents use the identity of one site at the same time.
    SharedIdentity {
        /// Which.
        site: String,
        /// What was seen of them.
        seen: String,
    },
    /// Somebody asked for something that leaves no operation: a reading command, a decision.
    Asked {
        /// What it is about, if it is about a resource.
        resource: Option<String>,
        /// Who asked, as the site that was asked knows them.
        principal: String,
        /// The site that was asked.
        site: String,
        /// What for.
        what: String,
    },
    /// A resource stands otherwise than was told last, without anything new about it: another site
    /// got to know what is known here, say. Only where standings are asked for, and not part of the
    /// log: it has the number of the last change before it.
    Standing {
        /// The resource.
        resource: String,
    },
}

impl Change {
    /// The names of all events.
    pub const NAMES: [&'static str; 20] = [
        "operation",
        "reply",
        "partial-error",
        "settled",
        "in-doubt",
        "diverged",
        "differs",
        "warning",
        "converged",
        "site-down",
        "site-up",
        "site-lost-disk",
        "strange-clock",
        "pruned",
        "left-out",
        "malformed",
        "set-apart",
        "shared-identity",
        "asked",
        "standing",
    ];

    /// The event's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Operation { .. } => "operation",
            Self::Reply { .. } => "reply",
            Self::PartialError { .. } => "partial-error",
            Self::Settled { .. } => "settled",
            Self::InDoubt { .. } => "in-doubt",
            Self::Diverged { .. } => "diverged",
            Self::Differs { .. } => "differs",
            Self::Warning { .. } => "warning",
            Self::Converged { .. } => "converged",
            Self::SiteDown { .. } => "site-down",
            Self::SiteUp { .. } => "site-up",
            Self::SiteLostDisk { .. } => "site-lost-disk",
            Self::StrangeClock { .. } => "strange-clock",
            Self::Pruned { .. } => "pruned",
            Self::LeftOut { .. } => "left-out",
            Self::Malformed { .. } => "malformed",
            Self::SetApart { .. } => "set-apart",
            Self::SharedIdentity { .. } => "shared-identity",
            Self::Asked { .. } => "asked",
            Self::Standing { .. } => "standing",
        }
    }

    /// The resource it is about, if it is about one.
    pub fn resource(&self) -> Option<&str> {
        match self {
            Self::Operation { resource, .. }
            | Self::Reply { resource, .. }
            | Self::PartialError { resource, .. }
            | Self::Settled { resource, .. }
            | Self::InDoubt { resource, .. }
            | Self::Diverged { resource, .. }
            | Self::Differs { resource }
            | Self::Warning { resource, .. }
            | Self::Converged { resource }
            | Self::Standing { resource }
            | Self::StrangeClock { resource, .. }
            | Self::LeftOut { resource, .. }
            | Self::Pruned { resource, .. } => Some(resource),
            Self::SiteDown { .. }
            | Self::SiteUp { .. }
            | Self::SiteLostDisk { .. }
            | Self::Malformed { .. }
            | Self::SetApart { .. }
            | Self::SharedIdentity { .. } => None,
            Self::Asked { resource, .. } => resource.as_deref(),
        }
    }
}

/// What a site tells the others beside a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SaidBeside {
    /// It has read its state, so that the sites can be compared.
    ReadState,
    /// It cannot read its state, or does not believe what it read, for that reason.
    CannotRead(String),
    /// Its application follows the list again.
    InSync,
    /// Its application does not follow the list, for that reason.
    Diverged(String),
    /// Somebody there let this operation be, which failed.
    Dismissed(String),
    /// Somebody there took the operation out, at all sites.
    Undone,
    /// Somebody there brought it back.
    BroughtBack,
}

/// A change and when it was: the data of an event of the feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimedChange {
    /// When this site noted it, by its clock (RFC 3339).
    pub at: String,
    /// What changed.
    #[serde(flatten)]
    pub change: Change,
    /// The resource as lists show it, where standings are asked for and it is held here: as it is when
    /// this is told, which may be more than this change made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<ResourceSummary>,
    /// What a page about that resource shows, in its own feed, where standings are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<ChangeDetail>,
}

/// What the feed of one resource tells beside a change: as it is when this is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeDetail {
    /// The resource, but for its list and its config.
    pub resource: ResourceDetail,
    /// The operation that the change is about, with what became of it; none if it is about none, or
    /// that is pruned or too long: it can be asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// The operations that are kept, in total order, where some were pruned; none if these are many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Vec<String>>,
    /// What is said of all that the operation was made on, where it replaces that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<LeftOut>,
    /// How conflicts are resolved, where that is not as it was when something was told before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
}

/// How much of the feed's past to tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct LatestAsked {
    /// How many changes at most; the agent may give less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
}

/// A change with its place in the feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NumberedChange {
    /// The event's id: to go on from here, hand it in as `Last-Event-ID` or `after`.
    pub id: u64,
    /// When this site noted it, by its clock (RFC 3339).
    pub at: String,
    /// What changed.
    #[serde(flatten)]
    pub change: Change,
}
