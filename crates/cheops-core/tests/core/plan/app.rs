//! The application: a counter, a text, a set and a stock that refuses to go below zero. It knows
//! what really commutes and what really overwrites, and protests when it is asked for nonsense.

use std::collections::BTreeSet;

use cheops_core::model::OperationId;

/// One command, with the type that the config knows it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Set(i64),
    Inc(i64),
    Assign(char),
    Append(char),
    Clear,
    Add(u8),
    Remove(u8),
    Reset(i64),
    Deposit(i64),
    /// Refused if there is less in stock.
    Withdraw(i64),
    /// Adds what is in stock to the counter.
    Bill,
    /// Overwrites everything.
    Init(i64),
    /// A `set` that always fails.
    BadSet,
    /// An `init` that always fails.
    BadInit,
}

pub(crate) const KINDS: [&str; 12] = [
    "set", "inc", "assign", "append", "clear", "add", "remove", "reset", "deposit", "withdraw",
    "bill", "init",
];

impl Command {
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Set(_) | Self::BadSet => "set",
            Self::Inc(_) => "inc",
            Self::Assign(_) => "assign",
            Self::Append(_) => "append",
            Self::Clear => "clear",
            Self::Add(_) => "add",
            Self::Remove(_) => "remove",
            Self::Reset(_) => "reset",
            Self::Deposit(_) => "deposit",
            Self::Withdraw(_) => "withdraw",
            Self::Bill => "bill",
            Self::Init(_) | Self::BadInit => "init",
        }
    }

    pub(crate) fn always_fails(self) -> bool {
        matches!(self, Self::BadSet | Self::BadInit)
    }
}

/// Which part of the state a type writes; `init` writes all.
pub(crate) fn part(kind: &str) -> &'static str {
    match kind {
        "set" | "inc" | "bill" => "counter",
        "assign" | "append" => "text",
        "clear" | "add" | "remove" => "set",
        "reset" | "deposit" | "withdraw" => "stock",
        _ => "all",
    }
}

pub(crate) fn really_overwrites(kind: &str) -> bool {
    matches!(kind, "set" | "assign" | "clear" | "reset" | "init")
}

pub(crate) fn really_wipes(later: &str, earlier: &str) -> bool {
    really_overwrites(later) && (later == "init" || part(later) == part(earlier))
}

/// Whether two types give the same state and the same failures in either order, always.
pub(crate) fn really_commute(a: &str, b: &str) -> bool {
    match (a, b) {
        ("init", _) | (_, "init") => false,
        ("bill", other) | (other, "bill") => !matches!(part(other), "stock") && other != "set",
        ("add", "add") | ("remove", "remove") | ("inc", "inc") | ("deposit", "deposit") => true,
        _ => part(a) != part(b),
    }
}

pub(crate) fn really_idempotent(kind: &str) -> bool {
    really_overwrites(kind) || matches!(kind, "add" | "remove")
}

/// The state of one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    counter: i64,
    text: String,
    set: BTreeSet<u8>,
    stock: i64,
}

impl State {
    /// The state after the command, or `None` if it fails.
    fn after(&self, command: Command) -> Option<Self> {
        let mut next = self.clone();
        match command {
            Command::Set(n) => next.counter = n,
            Command::Inc(n) => next.counter += n,
            Command::Assign(c) => next.text = c.into(),
            Command::Append(c) => next.text.push(c),
            Command::Clear => next.set.clear(),
            Command::Add(n) => drop(next.set.insert(n)),
            Command::Remove(n) => drop(next.set.remove(&n)),
            Command::Reset(n) => next.stock = n,
            Command::Deposit(n) => next.stock += n,
            Command::Withdraw(n) if self.stock < n => return None,
            Command::Withdraw(n) => next.stock -= n,
            Command::Bill => next.counter += self.stock,
            Command::Init(n) => next = Self { counter: n, ..Self::default() },
            Command::BadSet | Command::BadInit => return None,
        }
        Some(next)
    }
}

/// What a fresh run of these commands gives.
pub(crate) fn fresh(commands: impl IntoIterator<Item = Command>) -> State {
    let run = |state: State, command| state.after(command).unwrap_or(state);
    commands.into_iter().fold(State::default(), run)
}

/// One instance, with the history of what changed it.
#[derive(Debug, Clone, Default)]
pub(crate) struct App {
    history: Vec<(OperationId, Command)>,
}

impl App {
    pub(crate) fn state(&self) -> State {
        fresh(self.history.iter().map(|(_, command)| *command))
    }

    /// Whether the operation's effect is there.
    pub(crate) fn has(&self, id: &OperationId) -> bool {
        self.last(id).is_some()
    }

    /// Runs a command; says whether it succeeded. An error is a mistake of the caller's.
    pub(crate) fn run(&mut self, id: &OperationId, command: Command) -> Result<bool, String> {
        if self.state().after(command).is_none() {
            return Ok(false);
        }
        match self.last(id) {
            Some(at) if !really_idempotent(command.kind()) => {
                Err(format!("{} takes effect twice", self.history[at].0))
            }
            // What came in between may have changed what it writes.
            Some(at)
                if !really_overwrites(command.kind())
                    && self.must_commute_after(at, "second run").is_ok() =>
            {
                Ok(true)
            }
            _ => {
                self.history.push((id.clone(), command));
                Ok(true)
            }
        }
    }

    /// Takes an operation back.
    pub(crate) fn undo(&mut self, id: &OperationId) -> Result<(), String> {
        let at = self.last(id).ok_or(format!("undo of {id}, whose effect is not there"))?;
        self.must_commute_after(at, "undo")?;
        self.history.remove(at);
        Ok(())
    }

    /// The run of the operation that is in effect.
    fn last(&self, id: &OperationId) -> Option<usize> {
        let at = self.history.iter().rposition(|(ran, _)| ran == id)?;
        let kind = self.history[at].1.kind();
        let mut later = self.history[at + 1..].iter();
        let is_wiped = later.any(|(_, later)| really_wipes(later.kind(), kind));
        (!is_wiped).then_some(at)
    }

    fn must_commute_after(&self, at: usize, what: &str) -> Result<(), String> {
        let (id, command) = &self.history[at];
        let mut after = self.history[at + 1..].iter();
        match after.find(|(_, other)| !really_commute(command.kind(), other.kind())) {
            Some((later, _)) => Err(format!("{what} of {id} though {later} came after it")),
            None => Ok(()),
        }
    }
}
