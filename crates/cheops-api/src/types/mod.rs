//! What goes over the wire: one type per request, answer and event. Names are plain text here;
//! each side checks what it reads.

mod backup;
mod change;
mod cross;
mod demo;
mod explanation;
mod fault;
mod forecast;
mod history;
mod legacy;
mod login;
mod matrix;
mod operation;
mod page;
mod problem;
mod reply;
mod resource;
mod show;
mod site;
mod submit;
mod summary;

pub use backup::{Backup, BackupEvent};
pub use change::{Change, ChangeDetail, LatestAsked, NumberedChange, SaidBeside, TimedChange};
pub use cross::{Cross, CrossPart, CrossPartValue, CrossPlace, CrossSeen, CrossValue};
pub use demo::{Demo, DemoLink, DemoSite, RunSite};
pub use explanation::{DecidedPair, ExplainedOperation, Explanation};
pub use fault::Fault;
pub use forecast::{
    DryRun, DryRunAsked, Forecast, ForecastOperation, SiteForecast, TriedDecision, WouldFollow,
};
pub use history::{
    History, HistoryAsked, HistoryItem, HistoryUse, OperationRecord, PastOperations, RecordedBody,
    RecordedEdit,
};
pub use legacy::{
    ExecForm, ExecLine, ExecStatus, InputOutput, LegacyShow, ReplyMark, ShowForm, SiteShow,
};
pub use login::LoginLink;
pub use matrix::{ConfigFinding, InSequence, MatrixPair, MatrixTrial, Profile, TryMatrix, Which};
pub use operation::{
    Asker, File, Header, HttpRequest, LeftOut, Operation, Payload, Replaces, ShellCommand,
};
pub use page::{Cursor, Page, Seen};
pub use problem::{PROBLEM_JSON, Problem};
pub use reply::{Reply, ReplyStatus, SiteReply};
pub use resource::{
    Progress, Replicant, Resource, ResourceDetail, ResourceFilter, ResourceHolding, ResourceOrder,
    ResourceState, ResourceSummary, ResourceWarning, SiteStanding, Standing, StateAgreement,
    StateProof, TroubledOperation, Unverified, UnverifiedReason, WarningAbout,
};
pub use show::{Show, ShowAnswer, ShowStatus, Shown};
pub use site::{Site, SiteState, Sites};
pub use submit::{
    Action, Body, DEFAULT_TIMEOUT_MS, Decision, Delete, HttpAction, Settle, ShellAction, Submit,
    SubmitEvent, SubmitForm, Wait,
};
pub use summary::{Summary, SummaryFilter};

/// The media type of streams with one JSON document a line.
pub const NDJSON: &str = "application/x-ndjson";
