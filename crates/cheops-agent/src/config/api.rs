//! `[api]`: where people and programs come in, and what they have to show.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use super::problem::SettingPlace;
use super::reader::{ConfigReader, ConfigTable};
use super::values::{self, parsed};
use super::{ApiConfig, Auth, MetricsFor};

pub(super) const AN_ADDRESS: &str = "an address to listen on, such as `127.0.0.1:8079`";
/// What says that there is to be no socket.
const OFF: &str = "off";
/// The system takes no longer names of sockets.
pub(crate) const LONGEST_SOCKET: usize = 107;
const MOST_CONNECTIONS: usize = 65_536;

/// Reads it, and says where its address was said.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    root: &mut ConfigTable<'a>,
    data_dir: &Path,
) -> (ApiConfig, SettingPlace) {
    let mut table = reader.table(root, "api");
    let default = SocketAddr::from((Ipv4Addr::LOCALHOST, 8079));
    let said = reader.value(&mut table, "listen", AN_ADDRESS, parsed);
    let (listen, place) = said.unwrap_or((default, SettingPlace::File));
    let socket = socket(reader, &mut table, data_dir);
    let ways = [("token", Auth::Token), ("none", Auth::None)];
    let auth = reader.word(&mut table, "auth", &ways).unwrap_or(Auth::Token);
    let token_file = reader.path(&mut table, "token_file");
    let tls = reader.path(&mut table, "tls");
    let whom = [("token", MetricsFor::TokenHolders), ("open", MetricsFor::Anyone)];
    let metrics = reader.word(&mut table, "metrics", &whom).unwrap_or(MetricsFor::TokenHolders);
    let a_count = format!("a number from 1 to {MOST_CONNECTIONS}");
    let connections = values::count(MOST_CONNECTIONS);
    let most = reader.value(&mut table, "connections_per_address", &a_count, connections);
    reader.end(&table);
    if !is_loopback(listen) {
        let listens = format!("`{listen}` can be reached from other machines");
        if auth == Auth::None {
            let message = format!(
                "{listens}, and anyone there could run commands; leave `auth` out, or listen on \
                 loopback, such as `127.0.0.1:8079`"
            );
            reader.report(&table.place, "api.auth", message);
        }
        if tls.is_none() {
            let message = format!(
                "{listens}; expected `tls = \"FILE\"` beside it, a certificate and its key as PEM, \
                 or an address of loopback, such as `127.0.0.1:8079`"
            );
            reader.report(&place, "api.listen", message);
        }
    }
    let config = ApiConfig {
        listen,
        socket,
        auth,
        token_file: token_file.unwrap_or_else(|| data_dir.join("api.token")),
        tls,
        metrics,
        connections_per_address: most.map_or(256, |(most, _)| most),
    };
    (config, place)
}

/// Where the socket is, unless there is to be none.
fn socket<'a>(
    reader: &mut ConfigReader<'a>,
    table: &mut ConfigTable<'a>,
    data_dir: &Path,
) -> Option<PathBuf> {
    let given = |text: &str| match text.trim() {
        "" => Err("names nothing".to_owned()),
        text => Ok(text.to_owned()),
    };
    let said = reader.value(table, "socket", "a path, or `off`", given);
    let Some((said, place)) = said else { return Some(data_dir.join("api.sock")) };
    if said == OFF {
        return None;
    }
    let path = match (&place, reader.file.parent()) {
        (SettingPlace::At { .. }, Some(folder)) => folder.join(&said),
        _ => PathBuf::from(&said),
    };
    let length = path.as_os_str().len();
    if length > LONGEST_SOCKET {
        let message = format!(
            "`{}` has {length} bytes; a socket's path has {LONGEST_SOCKET} at most",
            path.display()
        );
        reader.report(&place, "api.socket", message);
    }
    Some(path)
}

/// Whether only this machine can reach it.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
