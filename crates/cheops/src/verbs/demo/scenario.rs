//! What users do in the demo. The application is the simulator's: each shell command stands beside
//! the simulator's command that does the same.

/// Who does what to which resource.
#[derive(Debug)]
pub(super) struct Scenario {
    /// What the resource is, in a word or two.
    pub(super) what: &'static str,
    /// The resource's id.
    pub(super) resource: &'static str,
    /// The profile that resolves it.
    pub(super) profile: &'static str,
    /// What that profile means here, in a sentence.
    pub(super) meaning: &'static str,
    /// One operation per site: first in sequence, then again while cut off.
    pub(super) operations: [Action; 3],
    /// The outcomes that the technical report has for these: in sequence, and after the cut.
    pub(super) published: Published,
    /// An operation during which the second site is killed.
    pub(super) interrupted: Action,
    /// An operation at the first site while the second is down.
    pub(super) meanwhile: Action,
    /// How a state is shown.
    pub(super) shown: fn(&str) -> String,
}

/// What a user does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Action {
    /// The operation's type.
    pub(super) kind: &'static str,
    /// What the user types.
    pub(super) shell: &'static str,
    /// What does the same to the simulated application.
    pub(super) simulated: &'static str,
}

/// What comes of the operations, as shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Published {
    pub(super) in_sequence: &'static str,
    pub(super) after_the_cut: &'static str,
}

const fn action(kind: &'static str, shell: &'static str, simulated: &'static str) -> Action {
    Action { kind, shell, simulated }
}

/// The report's file experiment, table 6.
pub(super) static FILE: Scenario = Scenario {
    what: "file",
    resource: "notes",
    profile: "file",
    meaning: "`>` replaces what was there and wins over a concurrent `>>`; appends add up",
    operations: [
        action("add", "echo left >> notes", "append left\n"),
        action("set", "echo middle > notes", "set middle\n"),
        action("add", "echo right >> notes", "append right\n"),
    ],
    published: Published { in_sequence: "middle, right", after_the_cut: "middle" },
    interrupted: action("add", "echo encore >> notes", "append encore\n"),
    meanwhile: action("add", "echo finale >> notes", "append finale\n"),
    shown: lines,
};

/// The report's Redis experiment, table 5.
pub(super) static REDIS: Scenario = Scenario {
    what: "number in Redis",
    resource: "visits",
    profile: "redis",
    meaning: "`set` replaces what was there and wins over a concurrent `incrby`; increments add up",
    operations: [
        action("set", "redis-cli set visits 29", "set 29"),
        action("inc", "redis-cli incrby visits 13", "inc 13"),
        action("inc", "redis-cli incrby visits -12", "inc -12"),
    ],
    published: Published { in_sequence: "30", after_the_cut: "29" },
    interrupted: action("inc", "redis-cli incrby visits 5", "inc 5"),
    meanwhile: action("inc", "redis-cli incrby visits 8", "inc 8"),
    shown: as_it_is,
};

impl Scenario {
    /// Everything that users do in it.
    pub(super) fn actions(&self) -> impl Iterator<Item = &Action> {
        self.operations.iter().chain([&self.interrupted, &self.meanwhile])
    }
}

fn lines(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(", ")
}

fn as_it_is(text: &str) -> String {
    text.to_owned()
}
