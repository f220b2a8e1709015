//! That an operation which failed is to be let be, as somebody said at a site.
//!
//! It goes beside a reply of that site, so that all sites hear of it; a version that does not know of it
//! passes it on, and goes on to call the operation failed.

use super::{Entry, EntryBody, Extension, OperationId};

const NAME: &str = "dismisses";

impl Extension {
    /// What goes beside a reply.
    pub(crate) fn dismissal(of: &OperationId) -> Self {
        let value = of.to_string().into_bytes();
        Self { name: NAME.to_owned(), must_understand: false, value }
    }
}

impl Entry {
    /// The operation that is to be let be, if it is a reply that says so.
    pub fn dismisses(&self) -> Option<OperationId> {
        let EntryBody::Reply(_) = &self.body else { return None };
        let said = self.extra.iter().find(|extension| extension.name == NAME)?;
        std::str::from_utf8(&said.value).ok()?.parse().ok()
    }
}
