//! What is said of a service's resources for their replication.

use cheops_proxy::config::{Pointer, ReplicationConfig};

use super::reader::{ConfigReader, ConfigTable};

/// Reads the settings of one of `[[services]]`.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    service: &mut ConfigTable<'a>,
) -> ReplicationConfig {
    let default = ReplicationConfig::default();
    let a_pointer = "a JSON pointer such as `/id`";
    let client_chosen_id =
        reader.value(service, "client_chosen_id", a_pointer, str::parse::<Pointer>);
    let a_path = "a path such as `/v1/albums/*/photos`";
    let collections = reader.one_or_more(service, "collections", a_path, str::parse);
    let a_status = "an HTTP status from 400 to 499";
    let mut table = reader.table(service, "already");
    let done = reader.one_or_more(&mut table, "done", a_status, status);
    let gone = reader.one_or_more(&mut table, "gone", a_status, status);
    reader.end(&table);
    ReplicationConfig {
        client_chosen_id: client_chosen_id.map(|(pointer, _)| pointer),
        collections: collections.unwrap_or_default(),
        already_done: done.unwrap_or(default.already_done),
        already_gone: gone.unwrap_or(default.already_gone),
    }
}

fn status(text: &str) -> Result<u16, String> {
    let status = text.parse().ok().filter(|status| (400..500).contains(status));
    status.ok_or_else(|| "is no such status".to_owned())
}
