//! The document an operator writes: from a tree of values to entries, types and commands.
//!
//! Reading goes on after a mistake, so that all of them are reported. What could not be read is
//! left out of the result, which then is of no further use but to find more mistakes in.

mod hooks;
mod samples;

pub(super) use self::hooks::HookEntry;
pub(super) use self::samples::read_samples;
use super::check::command_fault;
use super::place::{ConfigPlace, LineColumn};
use super::problem::{ConfigFault, ConfigProblem};
use super::profiles::{Profile, names, profile};
use super::spelling::{self, CONCURRENTS, RESULTS, same_key};
use super::tree::{TreeNode, TreeValue};
use super::{Concurrent, MAX_ENTRIES, Rule};
use crate::ids::OperationType;

pub(super) const MATRIX: &str = "ResolutionMatrix";
pub(super) const TYPES: &str = "Types";
pub(super) const SNAPSHOT: &str = "Snapshot";
pub(super) const RESTORE: &str = "Restore";
pub(super) const STATE: &str = "State";
pub(super) const READ: &str = "Read";
pub(super) const WRITE: &str = "Write";
pub(super) const TARGET: &str = "Target";
pub(super) const VOLATILE: &str = "Volatile";
pub(super) const HOOKS: &str = "Hooks";

/// What a document says.
#[derive(Default)]
pub(super) struct ConfigDocument {
    pub(super) profile: Option<&'static Profile>,
    pub(super) entries: Vec<DocumentEntry>,
    pub(super) types: Vec<TypeEntry>,
    pub(super) read: StateCommand,
    pub(super) write: StateCommand,
    /// What the application calls the resource.
    pub(super) target: Option<(String, ConfigPlace)>,
    /// What of its state each site fills in by itself, as JSON pointers.
    pub(super) volatile: Option<(Vec<String>, ConfigPlace)>,
    pub(super) hooks: Vec<HookEntry>,
}

/// One entry of the matrix.
#[derive(Clone)]
pub(super) struct DocumentEntry {
    pub(super) place: ConfigPlace,
    pub(super) before: OperationType,
    pub(super) after: OperationType,
    pub(super) rule: Rule,
    pub(super) concurrent: Option<Concurrent>,
}

/// What is said of one type.
pub(super) struct TypeEntry {
    pub(super) kind: OperationType,
    pub(super) undo: Setting<String>,
    pub(super) idempotent: Setting<bool>,
    pub(super) assigns: Setting<bool>,
    pub(super) check: Setting<String>,
    pub(super) decompose: Setting<String>,
    pub(super) decompose_at: Option<ConfigPlace>,
}

/// One of the two commands for a resource's whole state, under whichever of its names it was given.
pub(super) struct StateCommand {
    pub(super) command: Setting<String>,
    pub(super) key: &'static str,
    pub(super) at: Option<LineColumn>,
}

impl Default for StateCommand {
    fn default() -> Self {
        Self { command: Setting::Unsaid, key: STATE, at: None }
    }
}

/// A key that may be absent, so that a profile's word holds, or null, so that it does not.
#[derive(Default)]
pub(super) enum Setting<T> {
    #[default]
    Unsaid,
    Off,
    Is(T),
}

impl<T> Setting<T> {
    /// What holds, given what held before.
    pub(super) fn over(self, base: Option<T>) -> Option<T> {
        match self {
            Self::Unsaid => base,
            Self::Off => None,
            Self::Is(value) => Some(value),
        }
    }
}

/// Reads a document, and says what is wrong with it.
pub(super) fn read(root: &TreeNode) -> (ConfigDocument, Vec<ConfigProblem>) {
    let mut reader = DocumentReader { problems: Vec::new() };
    let document = reader.document(root).unwrap_or_default();
    (document, reader.problems)
}

/// A value of an object, and its place.
struct Field<'n> {
    node: &'n TreeNode,
    place: ConfigPlace,
}

struct DocumentReader {
    problems: Vec<ConfigProblem>,
}

impl DocumentReader {
    fn document(&mut self, root: &TreeNode) -> Option<ConfigDocument> {
        let keys = [MATRIX, TYPES, STATE, TARGET, VOLATILE, SNAPSHOT, RESTORE, "Profile", HOOKS];
        let place = ConfigPlace { path: String::new(), at: root.at };
        let [matrix, types, state, target, volatile, snapshot, restore, profile, hooks] =
            self.fields(&Field { node: root, place }, keys)?;
        let (read, write) = self.state(state, snapshot, restore);
        Some(ConfigDocument {
            profile: profile.and_then(|field| self.profile(&field)),
            entries: matrix.map(|field| self.matrix(&field)).unwrap_or_default(),
            types: types.map(|field| self.types(&field)).unwrap_or_default(),
            read,
            write,
            target: target.and_then(|field| self.target(&field)),
            volatile: volatile.and_then(|field| self.volatile(&field)),
            hooks: hooks.map(|field| self.hooks(&field)).unwrap_or_default(),
        })
    }

    /// The commands for the whole state: `State`, or its two keys by the names they had before.
    fn state(
        &mut self,
        state: Option<Field<'_>>,
        snapshot: Option<Field<'_>>,
        restore: Option<Field<'_>>,
    ) -> (StateCommand, StateCommand) {
        let Some(state) = state else {
            let read = self.state_command(SNAPSHOT, snapshot);
            return (read, self.state_command(RESTORE, restore));
        };
        for older in [snapshot, restore].into_iter().flatten() {
            let key = older.place.path.clone();
            self.report(&older.place, ConfigFault::Repeated { key, first: STATE.to_owned() });
        }
        if matches!(state.node.value, TreeValue::Nothing) {
            let off = |key| StateCommand { command: Setting::Off, key, at: state.node.at };
            return (off(READ), off(WRITE));
        }
        let Some([read, write]) = self.fields(&state, [READ, WRITE]) else {
            return Default::default();
        };
        (self.state_command(READ, read), self.state_command(WRITE, write))
    }

    fn state_command(&mut self, key: &'static str, field: Option<Field<'_>>) -> StateCommand {
        let at = field.as_ref().and_then(|field| field.node.at);
        StateCommand { command: self.command(field), key, at }
    }

    fn target(&mut self, field: &Field<'_>) -> Option<(String, ConfigPlace)> {
        let text = self.text(field)?;
        let fault = match text {
            "" => Some(ConfigFault::EmptyCommand),
            _ => command_fault(text),
        };
        match fault {
            Some(fault) => {
                self.report(&field.place, fault);
                None
            }
            None => Some((text.to_owned(), field.place.clone())),
        }
    }

    fn volatile(&mut self, field: &Field<'_>) -> Option<(Vec<String>, ConfigPlace)> {
        let TreeValue::List(nodes) = &field.node.value else {
            self.wrong_kind(field, "a list of JSON pointers such as `/updated_at`");
            return None;
        };
        let mut pointers = Vec::new();
        for (i, node) in nodes.iter().enumerate() {
            let field = Field { node, place: field.place.index(i, node.at) };
            let Some(text) = self.text(&field) else { continue };
            if let Some(fault) = command_fault(text) {
                self.report(&field.place, fault);
            } else if !text.starts_with('/') || text.contains('\n') {
                self.wrong_kind(&field, "a JSON pointer such as `/updated_at`");
            } else {
                pointers.push(text.to_owned());
            }
        }
        Some((pointers, field.place.clone()))
    }

    fn profile(&mut self, field: &Field<'_>) -> Option<&'static Profile> {
        let name = self.text(field)?;
        let found = profile(name);
        if found.is_none() {
            self.report(&field.place, ConfigFault::unknown("profile", name, &names()));
        }
        found
    }

    fn matrix(&mut self, field: &Field<'_>) -> Vec<DocumentEntry> {
        let TreeValue::List(nodes) = &field.node.value else {
            self.wrong_kind(field, "a list of entries");
            return Vec::new();
        };
        if nodes.len() > MAX_ENTRIES {
            let fault =
                ConfigFault::TooMany { what: "entries", found: nodes.len(), limit: MAX_ENTRIES };
            self.report(&field.place, fault);
        }
        let nodes = nodes.iter().take(MAX_ENTRIES).enumerate();
        nodes.filter_map(|(i, node)| self.entry(node, field.place.index(i, node.at))).collect()
    }

    fn entry(&mut self, node: &TreeNode, place: ConfigPlace) -> Option<DocumentEntry> {
        let keys = ["Before", "After", "Result", "Concurrent"];
        let field = Field { node, place };
        let [before, after, result, concurrent] = self.fields(&field, keys)?;
        let before = self.required("Before", before, &field.place, Self::kind);
        let after = self.required("After", after, &field.place, Self::kind);
        let rule = self.required("Result", result, &field.place, Self::rule);
        let concurrent = concurrent.and_then(|field| self.concurrent(&field));
        Some(DocumentEntry {
            before: before?,
            after: after?,
            rule: rule?,
            concurrent,
            place: field.place,
        })
    }

    fn rule(&mut self, field: &Field<'_>) -> Option<Rule> {
        let text = self.text(field)?;
        let rule = spelling::rule(text);
        if rule.is_none() {
            self.report(&field.place, ConfigFault::unknown("result", text, RESULTS));
        }
        rule
    }

    fn concurrent(&mut self, field: &Field<'_>) -> Option<Concurrent> {
        let text = self.text(field)?;
        let concurrent = spelling::concurrent(text);
        if concurrent.is_none() {
            self.report(&field.place, ConfigFault::unknown("choice", text, CONCURRENTS));
        }
        concurrent
    }

    fn types(&mut self, field: &Field<'_>) -> Vec<TypeEntry> {
        let TreeValue::Map(pairs) = &field.node.value else {
            self.wrong_kind(field, "an object with a key for each type");
            return Vec::new();
        };
        let mut types = Vec::new();
        for (key, node) in pairs {
            let place = field.place.key(&key.text, key.at);
            let kind = self.named(&key.text, &place);
            types.extend(self.handling(kind, &Field { node, place }));
        }
        types
    }

    fn handling(&mut self, kind: Option<OperationType>, field: &Field<'_>) -> Option<TypeEntry> {
        let keys = ["Undo", "Idempotent", "Assigns", "Check", "Decompose"];
        let [undo, idempotent, assigns, check, decompose] = self.fields(field, keys)?;
        let decompose_at = decompose.as_ref().map(|field| field.place.clone());
        let undo = self.command(undo);
        let (idempotent, assigns) = (self.flag(idempotent), self.flag(assigns));
        let (check, decompose) = (self.command(check), self.command(decompose));
        Some(TypeEntry { kind: kind?, undo, idempotent, assigns, check, decompose, decompose_at })
    }

    /// Reads one of a few words.
    fn word<T>(
        &mut self,
        field: &Field<'_>,
        what: &'static str,
        choices: &[&'static str],
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(field)?;
        let word = read(text);
        if word.is_none() {
            self.report(&field.place, ConfigFault::unknown(what, text, choices));
        }
        word
    }

    fn flag(&mut self, field: Option<Field<'_>>) -> Setting<bool> {
        let Some(field) = field else { return Setting::Unsaid };
        match field.node.value {
            TreeValue::Nothing => Setting::Off,
            TreeValue::Bool(flag) => Setting::Is(flag),
            _ => {
                self.wrong_kind(&field, "`true` or `false`");
                Setting::Unsaid
            }
        }
    }

    fn command(&mut self, field: Option<Field<'_>>) -> Setting<String> {
        let Some(field) = field else { return Setting::Unsaid };
        if matches!(field.node.value, TreeValue::Nothing) {
            return Setting::Off;
        }
        let text = self.text(&field);
        if let Some(fault) = text.and_then(command_fault) {
            self.report(&field.place, fault);
        }
        // It is given, if wrong: nobody should be told to add it.
        Setting::Is(text.unwrap_or_default().to_owned())
    }

    /// A type, also one of Cheops' own: a hook may wait for it.
    fn any_kind(&mut self, field: &Field<'_>) -> Option<OperationType> {
        let kind = OperationType::new(self.text(field)?);
        kind.map_err(|error| self.report(&field.place, ConfigFault::BadType(error))).ok()
    }

    /// A type that the config may say something about.
    fn kind(&mut self, field: &Field<'_>) -> Option<OperationType> {
        let text = self.text(field)?;
        self.named(text, &field.place)
    }

    fn named(&mut self, text: &str, place: &ConfigPlace) -> Option<OperationType> {
        let fault = match OperationType::new(text) {
            Ok(kind) if kind.is_reserved() => ConfigFault::ReservedType(kind),
            Ok(kind) => return Some(kind),
            Err(error) => ConfigFault::BadType(error),
        };
        self.report(place, fault);
        None
    }

    fn text<'n>(&mut self, field: &Field<'n>) -> Option<&'n str> {
        match &field.node.value {
            TreeValue::Text(text) => Some(text),
            TreeValue::Bool(_) | TreeValue::Number(_) => {
                self.wrong_kind(field, "text; put it in quotes");
                None
            }
            TreeValue::Nothing | TreeValue::List(_) | TreeValue::Map(_) => {
                self.wrong_kind(field, "text");
                None
            }
        }
    }

    /// Reads a field that must be there.
    fn required<'n, T>(
        &mut self,
        key: &'static str,
        field: Option<Field<'n>>,
        place: &ConfigPlace,
        read: impl Fn(&mut Self, &Field<'n>) -> Option<T>,
    ) -> Option<T> {
        if field.is_none() {
            self.report(place, ConfigFault::Missing { key });
        }
        field.and_then(|field| read(self, &field))
    }

    /// The values of an object by its keys, in the order asked for. Keys that are none of these
    /// are reported.
    fn fields<'n, const N: usize>(
        &mut self,
        object: &Field<'n>,
        keys: [&'static str; N],
    ) -> Option<[Option<Field<'n>>; N]> {
        let TreeValue::Map(pairs) = &object.node.value else {
            self.wrong_kind(object, "an object");
            return None;
        };
        let mut fields = [const { None }; N];
        let mut spelled = [""; N];
        for (key, node) in pairs {
            let Some(i) = keys.iter().position(|known| same_key(known, &key.text)) else {
                let place = object.place.key(&key.text, key.at);
                self.report(&place, ConfigFault::unknown("key", &key.text, &keys));
                continue;
            };
            if fields[i].is_some() {
                let place = object.place.key(&key.text, key.at);
                let (key, first) = (key.text.clone(), spelled[i].to_owned());
                self.report(&place, ConfigFault::Repeated { key, first });
                continue;
            }
            spelled[i] = &key.text;
            fields[i] = Some(Field { node, place: object.place.key(keys[i], node.at) });
        }
        Some(fields)
    }

    fn wrong_kind(&mut self, field: &Field<'_>, expected: &'static str) {
        self.report(&field.place, ConfigFault::wrong_kind(&field.node.value, expected));
    }

    fn report(&mut self, place: &ConfigPlace, fault: ConfigFault) {
        self.problems.push(ConfigProblem { place: place.clone(), fault });
    }
}
