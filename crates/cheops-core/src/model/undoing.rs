//! That an operation is to be taken out, everywhere, or brought back, as somebody said at a site.
//!
//! It goes beside that site's reply to the operation, so whoever hears of it knows the operation. It must
//! be understood: sites that go by it and sites that do not would end with different lists.

use serde::{Deserialize, Serialize};

use super::{Entry, EntryBody, Extension, OperationId};

const NAME: &str = "undoes";
const BACK: &str = "back ";

/// What is to become of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undoing {
    /// Which.
    pub operation: OperationId,
    /// Whether it was taken out, and is to count again.
    pub back: bool,
}

impl Extension {
    /// What goes beside a reply to the operation.
    pub(crate) fn undoing(undoing: &Undoing) -> Self {
        let Undoing { operation, back } = undoing;
        let value = format!("{}{operation}", if *back { BACK } else { "" }).into_bytes();
        Self { name: NAME.to_owned(), must_understand: true, value }
    }
}

impl Entry {
    /// What is to become of the operation that it is a reply to, if it says so.
    pub fn undoes(&self) -> Option<Undoing> {
        let EntryBody::Reply(reply) = &self.body else { return None };
        let said = self.extra.iter().find(|extension| extension.name == NAME)?;
        let text = std::str::from_utf8(&said.value).ok()?;
        let (back, named) = match text.strip_prefix(BACK) {
            Some(named) => (true, named),
            None => (false, text),
        };
        let operation: OperationId = named.parse().ok()?;
        (operation == reply.operation).then_some(Undoing { operation, back })
    }
}
