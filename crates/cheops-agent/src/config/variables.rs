//! Variables that look like settings and are none: a slip in a name must not go unnoticed.

use std::collections::BTreeMap;

use super::problem::{SettingPlace, meant};
use super::reader::ConfigReader;

/// What other parts of Cheops read or set: the command line, commands that agents run, tests and
/// examples. An agent may be started by any of them.
const OTHERS: [&str; 20] = [
    "CHEOPS_AGENT",
    "CHEOPS_AGENT_CA",
    "CHEOPS_TOKEN_FILE",
    "CHEOPS_RESOURCE",
    "CHEOPS_OPERATION",
    "CHEOPS_TYPE",
    "CHEOPS_FILES",
    "CHEOPS_RUN",
    "CHEOPS_EVENT",
    "CHEOPS_SEQ",
    "CHEOPS_DELIVERY",
    "CHEOPS_ABOUT_SITE",
    "CHEOPS_COMMAND",
    "CHEOPS_CODE",
    "CHEOPS_OUTPUT",
    "CHEOPS_LOGIC",
    "CHEOPS_BIN",
    "CHEOPS_SEED",
    "CHEOPS_UI_DIST",
    "CHEOPS_FRONT",
];
const OTHER_FAMILIES: [&str; 3] = ["CHEOPS_E2E_", "CHEOPS_STORE_TEST_", "CHEOPS_OPENSTACK_"];

/// Reports those that no setting was read from. An empty one says nothing, as everywhere.
pub(super) fn check(reader: &mut ConfigReader<'_>, given: &BTreeMap<String, String>) {
    let known = std::mem::take(&mut reader.variables);
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    for (name, value) in given.iter().filter(|(name, _)| name.starts_with("CHEOPS_")) {
        let is_ours = known.contains(&name.as_str())
            || OTHERS.contains(&name.as_str())
            || OTHER_FAMILIES.iter().any(|family| name.starts_with(family));
        if !is_ours && !value.is_empty() && !is_of_a_service(name, value) {
            let message = format!("there is no such setting; {}", meant(name, &known));
            reader.report(&SettingPlace::Variable(name.clone()), "", message);
        }
    }
}

/// Whether it is one of those by which Kubernetes tells every container of a service, which may well
/// be called `cheops`: `CHEOPS_SERVICE_HOST`, `CHEOPS_PORT=tcp://…`, `CHEOPS_PORT_8079_TCP_ADDR`.
fn is_of_a_service(name: &str, value: &str) -> bool {
    let of_service = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT_"];
    of_service.iter().any(|part| name.contains(part))
        || (name.ends_with("_PORT") && value.contains("://"))
}
