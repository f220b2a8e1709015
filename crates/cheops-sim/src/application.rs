//! The application of one simulated site: a small interpreter that keeps a value per resource and
//! knows nothing of Cheops. It also keeps books on what really happened to it, for the oracle.

use std::collections::BTreeMap;

use cheops_core::model::{OperationId, ResourceId};

/// The state of one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimValue {
    /// Text, number or set, as its commands treat it.
    pub text: String,
}

/// What the application holds, and which operations are in it.
#[derive(Debug, Clone, Default)]
pub struct SimApplication {
    values: BTreeMap<ResourceId, SimValue>,
    effects: BTreeMap<ResourceId, Vec<OperationId>>,
    /// What ran under each name: of a liar's operations sites hear different ones.
    commands: BTreeMap<OperationId, String>,
    snapshots: BTreeMap<(ResourceId, u64), SimState>,
}

/// A state, and the operations that are in it.
pub(crate) type SimState = (SimValue, Vec<OperationId>);

/// What an application must never see.
#[derive(Debug)]
pub struct RanTwice(pub OperationId);

impl SimApplication {
    /// The state of a resource.
    pub fn value(&self, resource: &ResourceId) -> SimValue {
        self.values.get(resource).cloned().unwrap_or_default()
    }

    /// Whether the operation's effect is in the state.
    pub fn holds(&self, resource: &ResourceId, operation: &OperationId) -> bool {
        self.effects.get(resource).is_some_and(|effects| effects.contains(operation))
    }

    /// Whether the state holds the effect of an such an operation.
    pub fn holds_any(&self, resource: &ResourceId, such: impl Fn(&OperationId) -> bool) -> bool {
        self.effects.get(resource).is_some_and(|effects| effects.iter().any(such))
    }

    /// Runs an operation's command: the text it answers, or the text it fails with.
    pub fn run(
        &mut self,
        resource: &ResourceId,
        operation: &OperationId,
        command: &str,
        again_is_fine: bool,
    ) -> Result<Result<String, String>, RanTwice> {
        let value = self.values.entry(resource.clone()).or_default();
        let result = interpret(value, command);
        if result.is_ok() {
            self.commands.insert(operation.clone(), command.to_owned());
            let effects = self.effects.entry(resource.clone()).or_default();
            if overwrites(command) {
                effects.clear();
            }
            if !again_is_fine && effects.contains(operation) {
                return Err(RanTwice(operation.clone()));
            }
            effects.push(operation.clone());
        }
        Ok(result)
    }

    /// Edits a document, which holds what these made: the words that this adds. A run that was cut short
    /// may have left anything, so the next one begins with what is known.
    pub fn edit(
        &mut self,
        resource: &ResourceId,
        operation: &OperationId,
        command: &str,
        known: &[String],
        again: bool,
    ) -> Result<String, String> {
        let value = self.values.entry(resource.clone()).or_default();
        if again {
            value.text = union(known);
        }
        interpret(value, command)?;
        let effects = self.effects.entry(resource.clone()).or_default();
        effects.push(operation.clone());
        let is_known = |word: &&str| known.iter().any(|text| words(text).any(|it| it == *word));
        let new: Vec<&str> = words(&value.text).filter(|word| !is_known(word)).collect();
        Ok(new.join(","))
    }

    /// Merges what others made with what these did; with what somebody did to it behind our back, unless an
    /// earlier run may have left it so.
    pub fn merge(
        &mut self,
        resource: &ResourceId,
        operation: &OperationId,
        known: &[String],
        new: &[String],
        again: bool,
    ) {
        let value = self.values.entry(resource.clone()).or_default();
        let here = (!again).then(|| value.text.clone());
        let all: Vec<String> = known.iter().chain(new).cloned().chain(here).collect();
        value.text = union(&all);
        self.effects.entry(resource.clone()).or_default().push(operation.clone());
    }

    /// Runs one of several parts of an operation, which has its effect from the first on.
    pub fn run_part(
        &mut self,
        resource: &ResourceId,
        operation: &OperationId,
        command: &str,
    ) -> Result<String, String> {
        let result = interpret(self.values.entry(resource.clone()).or_default(), command);
        let effects = self.effects.entry(resource.clone()).or_default();
        if result.is_ok() && !effects.contains(operation) {
            effects.push(operation.clone());
        }
        result
    }

    /// Takes an operation back by the inverse of the command that ran here.
    pub fn undo(&mut self, resource: &ResourceId, operation: &OperationId) -> bool {
        let ran = self.commands.get(operation);
        let Some(inverse) = ran.and_then(|command| inverse(command)) else { return false };
        let value = self.values.entry(resource.clone()).or_default();
        let done = interpret(value, &inverse).is_ok();
        if done && let Some(effects) = self.effects.get_mut(resource) {
            effects.retain(|held| held != operation);
            // As the first one found it: there is none, not one that is 0.
            if effects.is_empty() && value.text == "0" {
                *value = SimValue::default();
            }
        }
        done
    }

    /// Somebody changes the state without asking anybody.
    pub fn tamper(&mut self, resource: &ResourceId) {
        self.values.entry(resource.clone()).or_default().text.push('7');
    }

    /// Saves the state of a resource under a number.
    pub fn snapshot(&mut self, resource: &ResourceId, number: u64) {
        let saved = self.saved(resource);
        self.snapshots.insert((resource.clone(), number), saved);
    }

    /// The state of a resource, with what is in it.
    pub fn saved(&self, resource: &ResourceId) -> SimState {
        let effects = self.effects.get(resource).cloned().unwrap_or_default();
        (self.value(resource), effects)
    }

    /// Makes the state of a resource this one.
    pub fn write(&mut self, resource: &ResourceId, (value, effects): &SimState) -> bool {
        self.values.insert(resource.clone(), value.clone());
        self.effects.insert(resource.clone(), effects.clone());
        true
    }

    /// Brings a saved state back.
    pub fn restore(&mut self, resource: &ResourceId, number: u64) -> bool {
        let saved = self.snapshots.get(&(resource.clone(), number)).cloned();
        saved.is_some_and(|saved| self.write(resource, &saved))
    }
}

/// The state that a fresh application has after these commands, failures and all.
pub fn fresh_run<'a>(commands: impl IntoIterator<Item = &'a str>) -> SimValue {
    run_from(SimValue::default(), commands)
}

/// The same of one that began with this.
pub(crate) fn run_from<'a>(
    mut value: SimValue,
    commands: impl IntoIterator<Item = &'a str>,
) -> SimValue {
    for command in commands {
        // A command that fails changes nothing, there as here.
        let _refused = interpret(&mut value, command);
    }
    value
}

fn overwrites(command: &str) -> bool {
    matches!(command.split(' ').next(), Some("set" | "clear"))
}

fn inverse(command: &str) -> Option<String> {
    let (verb, argument) = command.split_once(' ')?;
    match verb {
        "inc" => Some(format!("inc {}", -argument.parse::<i64>().ok()?)),
        _ => None,
    }
}

/// The command language. Everything a state change can be: overwriting (`set`), adding
/// (`inc`), order-dependent (`append`), idempotent (`add`), refusing (`take`, below zero), failing.
fn interpret(value: &mut SimValue, command: &str) -> Result<String, String> {
    let (verb, argument) = command.split_once(' ').unwrap_or((command, ""));
    let text = match verb {
        "set" => argument.to_owned(),
        "clear" => String::new(),
        "inc" => (number(value)? + parse(argument)?).to_string(),
        "take" => {
            let left = number(value)? - parse(argument)?;
            if left < 0 {
                return Err(format!("only {} left", number(value)?));
            }
            left.to_string()
        }
        "append" => [value.text.as_str(), argument].concat(),
        "add" => add(&value.text, argument),
        "fail" => return Err("it fails".to_owned()),
        _ => return Err(format!("unknown command `{verb}`")),
    };
    value.text = text;
    Ok(value.text.clone())
}

fn number(value: &SimValue) -> Result<i64, String> {
    if value.text.is_empty() { Ok(0) } else { parse(&value.text) }
}

fn parse(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|word| !word.is_empty())
}

/// All the words of these, once each.
fn union(texts: &[String]) -> String {
    texts.iter().flat_map(|text| words(text)).fold(String::new(), |all, word| add(&all, word))
}

fn add(set: &str, member: &str) -> String {
    let mut members: Vec<&str> = words(set).collect();
    members.push(member);
    members.sort_unstable();
    members.dedup();
    members.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_only_operation_made_is_not_there_any_more_once_it_is_taken_back() {
        let (resource, mut holder) = ("sum".parse().unwrap(), SimApplication::default());
        let [one, two]: [OperationId; 2] = ["a-1.1", "a-1.2"].map(|id| id.parse().unwrap());
        let _ran = holder.run(&resource, &one, "inc 3", false).unwrap();
        let _ran = holder.run(&resource, &two, "inc -3", false).unwrap();
        assert!(holder.undo(&resource, &one) && holder.undo(&resource, &two));
        assert_eq!(holder.value(&resource), fresh_run([]));
    }

    #[test]
    fn commands_do_what_they_say_and_failures_change_nothing() {
        assert_eq!(fresh_run(["set 29", "inc 13", "inc -12"]).text, "30");
        assert_eq!(fresh_run(["append left", "fail", "append right"]).text, "leftright");
        assert_eq!(fresh_run(["set 100", "take 50", "take 51"]).text, "50");
        assert_eq!(fresh_run(["add b", "add a", "add b"]).text, "a,b");
        assert_eq!(fresh_run(["set x", "inc 1"]).text, "x");
    }
}
