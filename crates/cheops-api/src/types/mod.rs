//! What goes over the wire: one type per request, answer and event. Names are plain text here;
//! each side checks what it reads.

mod change;
mod explanation;
mod operation;
mod original;
mod page;
mod problem;
mod reply;
mod resource;
mod show;
mod site;
mod submit;

pub use change::{Change, NumberedChange};
pub use explanation::{DecidedPair, ExplainedOperation, Explanation};
pub use operation::{
    File, Header, HttpRequest, LeftOut, Operation, Payload, Replaces, ShellCommand,
};
pub use original::{
    ExecForm, ExecLine, ExecStatus, InputOutput, OriginalShow, ReplyMark, ShowForm, SiteShow,
};
pub use page::{Cursor, Page};
pub use problem::{PROBLEM_JSON, Problem};
pub use reply::{Reply, ReplyStatus, SiteReply};
pub use resource::{Progress, Replicant, Resource, ResourceFilter, ResourceState, ResourceSummary};
pub use show::{Show, ShowAnswer, ShowStatus, Shown};
pub use site::{Site, SiteState, Sites};
pub use submit::{
    Action, Body, DEFAULT_TIMEOUT_MS, Decision, Delete, HttpAction, Settle, ShellAction, Submit,
    SubmitEvent, SubmitForm, Wait,
};

/// The media type of streams with one JSON document a line.
pub const NDJSON: &str = "application/x-ndjson";
