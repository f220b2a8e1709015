//! What is told of operations that are left out: why. The log keeps it beside them, for whoever reads the
//! history when the engine has forgotten them.

use super::context::Turn;
use super::ports::{Notice, PastDecision};
use super::resource::Resource;
use crate::model::{OperationId, Vector};
use crate::resolve::LeftOut;

/// So many decisions are told at once.
const AT_ONCE: usize = 128;

fn decision(operation: OperationId, left_out: LeftOut) -> PastDecision {
    let why = left_out.to_string();
    PastDecision { operation, by: left_out.by, why }
}

impl Resource {
    /// Tells why an operation lost, as this site says that it did.
    pub(super) fn tell_why_left_out(&self, operation: &OperationId, turn: &mut Turn<'_>) {
        if let Some(out) = self.programs.left_out_for(operation) {
            let (operation, by) = (operation.clone(), Some(out.by.clone()));
            let decisions = vec![PastDecision { operation, by, why: out.to_string() }];
            turn.notify(Notice::LeftOut(self.id.clone(), decisions));
        } else if let Some(left_out) = self.resolution.left_out(operation) {
            let decisions = vec![decision(operation.clone(), left_out)];
            turn.notify(Notice::LeftOut(self.id.clone(), decisions));
        }
    }

    /// Tells why what is up to there does not count, before it is forgotten: but for what was said to
    /// have lost, of which the reason was told then.
    pub(super) fn tell_what_is_left_out(&self, upto: &Vector, turn: &mut Turn<'_>) {
        let decided = self.resolution.left_out_upto(upto).into_iter();
        let untold = decided.filter(|(operation, _)| !self.own.superseded.contains(operation));
        let decided: Vec<_> = untold.map(|(id, left_out)| decision(id, left_out)).collect();
        for some in decided.chunks(AT_ONCE) {
            turn.notify(Notice::LeftOut(self.id.clone(), some.to_vec()));
        }
    }
}
