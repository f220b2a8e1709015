//! The log itself: tables, rows, and who writes and reads them.

mod append;
mod head;
mod reader;
mod row;
mod scan;
mod schema;
mod shared;
mod store;

pub(crate) use head::Head;
pub(crate) use scan::{Scanned, check_structure, scan};
pub(crate) use schema::{Access, FORMAT, connect, create, format, is_empty, matches_schema};
pub(crate) use shared::Shared;

pub use reader::Reader;
pub use store::Store;
