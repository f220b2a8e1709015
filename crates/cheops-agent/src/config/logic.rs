//! `[logic]`: the site's programs that decide about operations which were made concurrently.

use std::collections::BTreeMap;

use cheops_core::model::OperationType;

use super::reader::{ConfigReader, ConfigTable};
use super::values::parsed;

/// Nobody writes more such programs.
const MOST_PROGRAMS: usize = 64;
const A_NAME: &str = "a name such as `shopping`, as in `logic:exec:shopping`";
const A_COMMAND: &str = "a shell command, such as `python3 /srv/logic/shopping.py`";

/// Reads it: the names, which matrices use, and the commands. No variable says any of it.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    root: &mut ConfigTable<'a>,
) -> BTreeMap<String, String> {
    let table = reader.table(root, "logic");
    let Some(entries) = table.entries else { return BTreeMap::new() };
    if entries.len() > MOST_PROGRAMS {
        let message =
            format!("there are {} programs; at most {MOST_PROGRAMS} are allowed", entries.len());
        reader.report(&table.place, &table.path, message);
    }
    // As in a matrix, where `logic:exec:` stands before it.
    let name = parsed::<OperationType>;
    let command = |text: &str| match text.trim() {
        "" => Err("is empty".to_owned()),
        _ if text.contains('\0') => Err("has a zero byte in it".to_owned()),
        _ => Ok(text.to_owned()),
    };
    let named = reader.named(&table.path, entries, (A_NAME, name), (A_COMMAND, command));
    named.into_iter().map(|(name, command)| (name.to_string(), command)).collect()
}
