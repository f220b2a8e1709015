//! What a program is tried on: questions as it gets them, and what it is to answer.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use cheops_core::model::{OperationId, ProgramSaid, ProgramStep};
use serde_json::{Map, Value, json};

use crate::failure::Failure;

const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// More would take minutes: each is asked several times.
const MAX_CASES: usize = 1000;
const FORM: &str = "`cheops logic check --help` shows what a case looks like";

/// One question.
pub(super) struct Case {
    /// What its author calls it.
    pub(super) name: Option<String>,
    /// What a program gets.
    pub(super) input: Value,
    /// About which operations it is asked.
    pub(super) operations: Vec<OperationId>,
    /// What it is to answer, if that is said.
    pub(super) expect: Option<Vec<ProgramStep>>,
}

/// Reads all of them.
pub(super) fn read(path: &Path) -> Result<Vec<Case>, Failure> {
    let name = path.display();
    let cannot = |message: String| Failure::caller(message).hint(FORM);
    let bytes = bytes(path)
        .map_err(|error| Failure::caller(format!("cannot read `{name}`")).because(error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(cannot(format!("`{name}` is longer than {MAX_FILE_BYTES} bytes")));
    }
    let document: Value = serde_json::from_slice(&bytes)
        .map_err(|error| cannot(format!("`{name}` is not JSON")).because(error))?;
    let Value::Array(items) = document else {
        return Err(cannot(format!("`{name}` is no list of cases")));
    };
    if items.is_empty() || items.len() > MAX_CASES {
        let count = items.len();
        return Err(cannot(format!("`{name}` has {count} cases; expected 1 to {MAX_CASES}")));
    }
    let cases = items.into_iter().enumerate().map(|(n, item)| {
        case(item).map_err(|why| cannot(format!("case {} of `{name}`: {why}", n + 1)))
    });
    cases.collect()
}

/// One byte more than allowed tells that there is too much.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn case(item: Value) -> Result<Case, String> {
    let Value::Object(mut members) = item else {
        return Err("it is no object; expected `operations` and `state`".to_owned());
    };
    let name = match members.remove("name") {
        None => None,
        Some(Value::String(name)) => Some(name),
        Some(_) => return Err("`name` is no text".to_owned()),
    };
    let expect = members.remove("expect");
    let operations = operations(members.get("operations"))?;
    let state = members.get("state");
    let is_state = |state: &Value| match state {
        Value::String(_) => true,
        Value::Object(members) => {
            members.len() == 1 && members.get("base64").is_some_and(Value::is_string)
        }
        _ => false,
    };
    if !state.is_some_and(is_state) {
        let expected = "expected what `Read` prints, as a text, or `{\"base64\": …}`";
        return Err(match state {
            None => format!("`state` is missing; {expected}"),
            Some(_) => format!("`state` is no text; {expected}"),
        });
    }
    let config = members.entry("config").or_insert_with(|| Value::Object(Map::new()));
    if !config.is_object() {
        return Err("`config` is no object; expected the config of a resource".to_owned());
    }
    if let Some(unknown) =
        members.keys().find(|key| !["operations", "state", "config"].contains(&key.as_str()))
    {
        return Err(format!(
            "there is no such member, `{unknown}`; expected `name`, `operations`, `state`, \
             `config` and `expect`"
        ));
    }
    let expect = expect.map(|expect| ProgramSaid::read(&expect.to_string(), &operations));
    let expect = expect.transpose().map_err(|why| format!("`expect` cannot be met: {why}"))?;
    Ok(Case { name, input: Value::Object(members), operations, expect })
}

fn operations(list: Option<&Value>) -> Result<Vec<OperationId>, String> {
    let Some(list) = list.and_then(Value::as_array).filter(|list| !list.is_empty()) else {
        return Err("`operations` is no list of operations".to_owned());
    };
    let mut ids: Vec<OperationId> = Vec::new();
    for (n, operation) in list.iter().enumerate() {
        let id = operation.get("id").and_then(Value::as_str).unwrap_or_default();
        let id: OperationId = id.parse().map_err(|_| {
            format!("`operations[{n}].id` is `{id}`; expected an id such as `paris-1f.7`")
        })?;
        if ids.contains(&id) {
            return Err(format!("`operations[{n}].id` is `{id}`, as that of another"));
        }
        ids.push(id);
    }
    Ok(ids)
}

/// Steps, as a program answers with them.
pub(super) fn as_answer(steps: &[ProgramStep]) -> Value {
    let step = |step: &ProgramStep| match &step.command {
        None => json!(step.operation.to_string()),
        Some(command) => json!({ "id": step.operation.to_string(), "command": command }),
    };
    Value::Array(steps.iter().map(step).collect())
}
