//! The log itself: tables, rows, and who writes and reads them.

mod append;
mod head;
mod journal;
mod migrate;
mod reader;
mod row;
mod scan;
mod schema;
mod shared;
mod store;

pub(crate) use head::{Head, Round};
pub(crate) use journal::{Journal, RoundKey};
pub(crate) use migrate::{Moving, vouch};
pub(crate) use scan::{Scanned, check_structure, scan};
pub(crate) use schema::{
    ConnectionUse, FORMAT, OLD_FORMAT, WITHOUT_NAMES, add_names, connect, create, format, is_empty,
    matches_schema,
};
pub(crate) use shared::OpenLog;

pub(crate) use reader::Reader;
pub(crate) use store::{Settled, Store};
