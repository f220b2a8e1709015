//! What a site's program said of operations that were made concurrently (`logic:exec:NAME`), as it goes
//! beside a reply of that site.
//!
//! A version that does not know of it passes it on, and takes such operations as ordered: its state is
//! another one then, which is found and shown.

use serde::{Deserialize, Serialize};

use super::{Entry, EntryBody, Extension, Fingerprint, OperationId};

const NAME: &str = "program";
/// The longest text of a verdict that is told, in bytes.
const MAX_VERDICT_BYTES: usize = 64 * 1024;

/// What a program said, and of what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramVerdict {
    /// Which program.
    pub program: String,
    /// The list up to the last of the operations that it was asked about.
    pub upto: Fingerprint,
    /// What it was given; none if it could not be asked.
    pub input: Option<Fingerprint>,
    /// What it said.
    pub said: ProgramSaid,
}

/// What a program said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramSaid {
    /// These are to be run, in this order; what is not among them is left out.
    Steps(Vec<ProgramStep>),
    /// Nothing of use: the operations run in the total order.
    Nothing {
        /// Why.
        why: String,
        /// That of what it printed, if it took that for an answer.
        printed: Option<Fingerprint>,
    },
}

/// One operation that a program wants to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStep {
    /// Which.
    pub operation: OperationId,
    /// What is to be run in its place.
    pub command: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct WrittenVerdict {
    program: String,
    upto: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    list: Option<Vec<WrittenStep>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    printed: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct WrittenStep {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

/// What a program may answer: a list, or an object that has one.
#[derive(Deserialize)]
#[serde(untagged)]
enum ProgramAnswer {
    List(Vec<AnsweredStep>),
    Object { list: Vec<AnsweredStep> },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AnsweredStep {
    Id(String),
    Step(WrittenStep),
}

impl ProgramSaid {
    /// Reads what a program printed about these operations.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(text: &str, asked_about: &[OperationId]) -> Result<Vec<ProgramStep>, String> {
        let answer: ProgramAnswer = serde_json::from_str(text).map_err(|_| {
            "it did not answer with a list of ids, or of objects with `id` and `command`".to_owned()
        })?;
        let (ProgramAnswer::List(list) | ProgramAnswer::Object { list }) = answer;
        let mut steps: Vec<ProgramStep> = Vec::new();
        for step in list {
            let (id, command) = match step {
                AnsweredStep::Id(id) => (id, None),
                AnsweredStep::Step(WrittenStep { id, command }) => (id, command),
            };
            let known = id.parse().ok().filter(|id| asked_about.contains(id));
            let Some(operation) = known else {
                return Err(format!("it named `{id}`, about which it was not asked"));
            };
            if steps.iter().any(|step| step.operation == operation) {
                return Err(format!("it named `{id}` twice"));
            }
            steps.push(ProgramStep { operation, command });
        }
        Ok(steps)
    }
}

impl ProgramVerdict {
    /// Why the program was of no use, if so, for people.
    pub fn failure(&self) -> Option<String> {
        let ProgramSaid::Nothing { why, .. } = &self.said else { return None };
        Some(format!("the program `{}` is of no use: {why}", self.program))
    }

    /// What stands for what was said: equal answers, equal fingerprints.
    pub fn output(&self) -> Fingerprint {
        let Self { said, .. } = self;
        match said {
            ProgramSaid::Steps(steps) => {
                let line = |step: &ProgramStep| {
                    format!("{} {}\n", step.operation, step.command.as_deref().unwrap_or_default())
                };
                Fingerprint::of(steps.iter().map(line).collect::<String>().as_bytes())
            }
            // Two that printed different things disagree, whatever it was; two that failed do not, unlike
            // one that failed here and went well there.
            ProgramSaid::Nothing { printed, .. } => {
                printed.unwrap_or_else(|| Fingerprint::of(b"nothing"))
            }
        }
    }

    fn written(&self) -> WrittenVerdict {
        let (list, failed, printed) = match &self.said {
            ProgramSaid::Steps(steps) => {
                let step = |step: &ProgramStep| WrittenStep {
                    id: step.operation.to_string(),
                    command: step.command.clone(),
                };
                (Some(steps.iter().map(step).collect()), None, None)
            }
            ProgramSaid::Nothing { why, printed } => {
                (None, Some(why.clone()), printed.map(|printed| printed.to_string()))
            }
        };
        let input = self.input.map(|input| input.to_string());
        WrittenVerdict {
            program: self.program.clone(),
            upto: self.upto.to_string(),
            input,
            list,
            failed,
            printed,
        }
    }
}

impl Extension {
    /// What goes beside a reply; none if it is too long to be told.
    pub(crate) fn program(verdict: &ProgramVerdict) -> Option<Self> {
        let value = serde_json::to_vec(&verdict.written()).ok()?;
        let fits = value.len() <= MAX_VERDICT_BYTES;
        fits.then(|| Self { name: NAME.to_owned(), must_understand: false, value })
    }
}

impl Entry {
    /// What a program of its author's site said, if it is a reply that says so in words that this version
    /// knows.
    pub fn program_verdict(&self) -> Option<ProgramVerdict> {
        let EntryBody::Reply(_) = &self.body else { return None };
        let said = self.extra.iter().find(|extension| extension.name == NAME)?;
        if said.value.len() > MAX_VERDICT_BYTES {
            return None;
        }
        let WrittenVerdict { program, upto, input, list, failed, printed } =
            serde_json::from_slice(&said.value).ok()?;
        let step = |step: WrittenStep| {
            let operation = step.id.parse().ok()?;
            Some(ProgramStep { operation, command: step.command })
        };
        let said = match (list, failed) {
            (Some(list), None) => {
                ProgramSaid::Steps(list.into_iter().map(step).collect::<Option<_>>()?)
            }
            (None, Some(why)) => {
                let printed = printed.and_then(|printed| Fingerprint::parse(&printed));
                ProgramSaid::Nothing { why, printed }
            }
            _ => return None,
        };
        let input = input.map(|input| Fingerprint::parse(&input));
        if input == Some(None) {
            return None;
        }
        Some(ProgramVerdict {
            program,
            upto: Fingerprint::parse(&upto)?,
            input: input.flatten(),
            said,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> OperationId {
        text.parse().unwrap()
    }

    #[test]
    fn an_answer_is_a_list_of_what_was_asked_about_and_says_what_is_wrong_with_it() {
        let asked = [id("a-1.1"), id("b-1.1")];
        let read = |text: &str| ProgramSaid::read(text, &asked);
        let step = |of: &str, command: Option<&str>| ProgramStep {
            operation: id(of),
            command: command.map(str::to_owned),
        };
        assert_eq!(read("[]"), Ok(vec![]));
        let both = vec![step("b-1.1", None), step("a-1.1", Some("true"))];
        assert_eq!(read(r#"["b-1.1", {"id": "a-1.1", "command": "true"}]"#), Ok(both.clone()));
        assert_eq!(read(r#"{"list": ["b-1.1", {"id": "a-1.1", "command": "true"}]}"#), Ok(both));
        for (bad, why) in [
            ("", "it did not answer with a list"),
            ("3", "it did not answer with a list"),
            (r#"["c-1.1"]"#, "it named `c-1.1`, about which it was not asked"),
            (r#"["x"]"#, "it named `x`, about which it was not asked"),
            (r#"["a-1.1", "a-1.1"]"#, "it named `a-1.1` twice"),
        ] {
            let said = read(bad).unwrap_err();
            assert!(said.starts_with(why), "{bad}: {said}");
        }
    }
}
