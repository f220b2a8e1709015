//! Placeholders in commands: `{name}` for the path of a file, `__ID__` for the resource's id.
//!
//! An id may hold any character, and who names a resource need not be who runs the command: an id
//! such as `$(reboot)` must stay a name. Ids that some shell could read as code, that would be taken
//! for options, or lead out of a directory, stand in no command at all:
//! [`cheops_core::model::id_can_stand_in`]. What is left, and the paths of files, replaces its
//! placeholder as it stands where it is plain; else by way of the shell variable that holds it,
//! quoted as its place in the command asks for, since shells never read the value of a variable as
//! code.

use std::borrow::Cow;

/// What a placeholder becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Insert {
    /// This text; every character of it is plain.
    Plain(String),
    /// The value of a shell variable, then this text, of plain characters.
    Variable(&'static str, String),
}

impl Insert {
    /// A value that the shell variable of that name holds too.
    pub(super) fn of(value: &str, variable: &'static str) -> Self {
        if is_plain(value) {
            Self::Plain(value.to_owned())
        } else {
            Self::Variable(variable, String::new())
        }
    }

    /// The same with plain text after it.
    pub(super) fn then(&self, text: &str) -> Self {
        match self {
            Self::Plain(value) => Self::Plain(format!("{value}{text}")),
            Self::Variable(variable, rest) => Self::Variable(variable, format!("{rest}{text}")),
        }
    }

    fn write(&self, quoted: Quoted, into: &mut String) {
        match self {
            Self::Plain(text) => into.push_str(text),
            Self::Variable(name, rest) => {
                let (before, after) = match quoted {
                    Quoted::Not => ("\"", "\""),
                    Quoted::Double => ("", ""),
                    Quoted::Single => ("'\"", "\"'"),
                };
                into.push_str(&format!("{before}${{{name}}}{after}{rest}"));
            }
        }
    }
}

/// Whether a shell takes a text as it stands, inside any quotes and outside of them.
pub(super) fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/@:+=-,%".contains(c);
    !text.is_empty() && text.chars().all(plain)
}

#[derive(Clone, Copy)]
enum Quoted {
    Not,
    Single,
    Double,
}

/// The command with its placeholders filled in, in one pass: what is put in is not read again.
pub(super) fn fill<'c>(command: &'c str, inserts: &[(String, Insert)]) -> Cow<'c, str> {
    if !inserts.iter().any(|(placeholder, _)| command.contains(placeholder.as_str())) {
        return Cow::Borrowed(command);
    }
    let mut filled = String::with_capacity(command.len() + 64);
    let mut quoted = Quoted::Not;
    let mut rest = command;
    while let Some(next) = rest.chars().next() {
        let here = inserts.iter().filter(|(placeholder, _)| rest.starts_with(placeholder.as_str()));
        // The longest, should one be the beginning of another.
        if let Some((placeholder, insert)) = here.max_by_key(|(placeholder, _)| placeholder.len()) {
            insert.write(quoted, &mut filled);
            rest = &rest[placeholder.len()..];
            continue;
        }
        let mut length = next.len_utf8();
        quoted = match (quoted, next) {
            (Quoted::Not, '\'') => Quoted::Single,
            (Quoted::Not, '"') => Quoted::Double,
            (Quoted::Single, '\'') | (Quoted::Double, '"') => Quoted::Not,
            (Quoted::Not | Quoted::Double, '\\') => {
                // The quote after it is a letter like others.
                length += usize::from(rest[1..].starts_with(['"', '\'', '\\']));
                quoted
            }
            _ => quoted,
        };
        filled.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    Cow::Owned(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(command: &str, id: &str) -> String {
        let path = Insert::Plain("/f/a.txt".to_owned());
        let inserts =
            [("__ID__".to_owned(), Insert::of(id, "CHEOPS_RESOURCE")), ("{a}".to_owned(), path)];
        fill(command, &inserts).into_owned()
    }

    #[test]
    fn plain_ids_stand_as_they_are_and_others_come_from_their_variable() {
        let cases = [
            ("echo __ID__", "x-1", "echo x-1"),
            ("cat /tmp/__ID__.txt '__ID__'", "x", "cat /tmp/x.txt 'x'"),
            ("cat {a} > __ID__", "x", "cat /f/a.txt > x"),
            ("cat {b} {a", "x", "cat {b} {a"),
            ("echo __ID__", "a b", "echo \"${CHEOPS_RESOURCE}\""),
            ("echo \"<__ID__>\"", "$(x)", "echo \"<${CHEOPS_RESOURCE}>\""),
            ("echo '<__ID__>'", "'", "echo '<'\"${CHEOPS_RESOURCE}\"'>'"),
            ("/tmp/__ID__.txt", "a b", "/tmp/\"${CHEOPS_RESOURCE}\".txt"),
            ("echo \\\" __ID__", "a b", "echo \\\" \"${CHEOPS_RESOURCE}\""),
            ("echo \"\\\"__ID__\"", "a b", "echo \"\\\"${CHEOPS_RESOURCE}\""),
            ("echo é__ID__", "__ID__x y", "echo é\"${CHEOPS_RESOURCE}\""),
            ("__ID__", "{a}", "\"${CHEOPS_RESOURCE}\""),
            ("\\", "{a}", "\\"),
            ("x\\__ID__\\", "y", "x\\y\\"),
        ];
        for (command, id, expected) in cases {
            assert_eq!(filled(command, id), expected, "{command} {id}");
        }
    }

    #[test]
    fn a_home_directory_is_not_looked_up_for_an_id() {
        assert_eq!(filled("cat __ID__", "~root/x"), "cat \"${CHEOPS_RESOURCE}\"");
    }

    #[test]
    fn what_is_put_in_is_not_read_again() {
        let inserts = [
            ("{a}".to_owned(), Insert::Plain("{b}".to_owned())),
            ("{b}".to_owned(), Insert::Plain("no".to_owned())),
        ];
        assert_eq!(fill("{a}", &inserts), "{b}");
    }
}
