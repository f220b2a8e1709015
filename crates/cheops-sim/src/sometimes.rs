//! What must really happen over a set of seeds. A simulation in which no link was ever cut proves
//! nothing, so whoever runs many seeds checks that none of these stayed at zero.

use std::collections::BTreeMap;

/// How often each thing happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sometimes(BTreeMap<&'static str, u64>);

/// What a run over many seeds must have seen.
pub const MUST_HAPPEN: &[&str] = &[
    "conflict: replaced in sequence",
    "conflict: last writer wins",
    "conflict: replacing one wins",
    "conflict: both kept, reversed",
    "conflict: forced",
    "conflict: circle",
    "conflict: failed everywhere, so void",
    "crash: before the commit",
    "crash: after the commit",
    "crash: between effects",
    "crash: while a command ran",
    "crash: clean restart",
    "disk: lost with the application",
    "disk: lost, application kept",
    "network: lost",
    "network: duplicated",
    "network: reordered",
    "network: one-way cut",
    "network: halves",
    "network: ring",
    "network: flapping",
    "network: all cut",
    "clock: strange stamp flagged",
    "site: seen down",
    "site: seen up again",
    "site: rejoined without its memory",
    "sync: asked",
    "sync: caught up in one message",
    "sync: relayed by a third site",
    "sync: pruned",
    "sync: base adopted by a site that lost its disk",
    "run: failed",
    "run: not yet",
    "run: again, from a replacing operation",
    "run: undone",
    "run: snapshot",
    "run: restored",
    "run: checked",
    "run: checked in vain",
    "run: in doubt, operator asked",
    "run: partial error",
    "run: diverged",
    "run: undecided",
    "standing: another site's divergence known",
    "standing: failed everywhere, and set right since",
    "failure: run again",
    "failure: let be",
    "undo: taken out",
    "undo: brought back",
    "undo: a concurrent one counts again",
    "edit: made",
    "edit: made again",
    "edit: merged",
    "edit: merged again",
    "program: asked",
    "program: left something out",
    "program: of no use",
    "program: disagrees",
    "history: told why before it was forgotten",
    "history: forgotten for a state",
    "history: begun with a state",
    "state: read",
    "state: changed behind our back",
    "state: differs",
    "warning: somebody should look",
    "state: verified",
    "service: cannot be reached",
    "service: carried out, answer lost",
    "service: refused",
    "service: says that it is so already",
    "service: body no longer kept",
    "service: made anew under another id",
    "service: id of an earlier incarnation counts",
    "service: thing without a name removed by hand",
    "service: deleted everywhere",
    "service: thing at several sites",
    "needs: waited",
    "needs: failed with what it needs",
    "user: answered by all",
    "user: timed out",
    "user: refused",
    "resource: config changed",
    "resource: converged",
    "operation: every site has replied",
    "liar: wrote in another's name",
    "liar: used up numbers",
    "liar: claimed the end of time",
    "liar: forged a reply",
    "liar: told two things under one name",
    "liar: replayed",
    "liar: sent too much",
    "liar: said that all may be forgotten",
    "liar: claimed to know everything",
    "liar: vouched for what never was",
    "liar: moved a resource",
    "liar: made a resource anew",
    "liar: needed what never was",
    "liar: sent what would wait for ever",
    "liar: filled its room",
    "liar: used one number on two resources",
    "liar: wrote in too many incarnations",
    "liar: counted in no more incarnations than it may",
    "liar: refused at the border",
    "liar: set apart",
];

impl Sometimes {
    /// It happened.
    pub fn saw(&mut self, what: &'static str) {
        debug_assert!(MUST_HAPPEN.contains(&what), "`{what}` is not on the list");
        *self.0.entry(what).or_default() += 1;
    }

    /// It happened elsewhere, too.
    pub fn join(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    /// How often that happened.
    pub fn count(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    /// What never did.
    pub fn missing(&self) -> Vec<&'static str> {
        MUST_HAPPEN.iter().copied().filter(|what| self.count(what) == 0).collect()
    }

    /// All of it, in the order of the list.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        MUST_HAPPEN.iter().map(|what| (*what, self.count(what)))
    }
}
