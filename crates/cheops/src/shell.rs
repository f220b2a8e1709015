//! Command lines: words that stay words, and files that come along.

use std::path::{Path, PathBuf};

use cheops_api::Upload;
use clap::Args;

use crate::failure::Failure;

/// Words that would begin something in a shell's grammar.
const RESERVED: [&str; 20] = [
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for",
    "in", "function", "select", "time", "coproc", "repeat", "foreach", "end",
];
/// Longer names are not file names.
const MAX_PATH_CHARS: usize = 4096;

/// What to run, in one of two spellings.
#[derive(Debug, Args)]
pub(crate) struct CommandArguments {
    /// The command line as one text, run by `sh` at each site
    #[arg(long = "command", value_name = "TEXT", conflicts_with = "words")]
    text: Option<String>,
    /// The same after `--`: one argument is a command line, several are its words
    #[arg(last = true, value_name = "COMMAND")]
    words: Vec<String>,
}

impl CommandArguments {
    /// The command line, if one is given.
    pub(crate) fn line(&self) -> Result<Option<String>, Failure> {
        let line = match (&self.text, self.words.as_slice()) {
            (Some(text), _) => text.clone(),
            (None, []) => return Ok(None),
            (None, [only]) => only.clone(),
            (None, words) => joined(words),
        };
        if line.trim().is_empty() {
            return Err(Failure::caller("the command is empty"));
        }
        Ok(Some(line))
    }

    /// The command line, which must be given.
    pub(crate) fn required(&self, example: &str) -> Result<String, Failure> {
        self.line()?.ok_or_else(|| Failure::caller("there is no command").hint(example))
    }
}

/// Words as a command line that a shell takes apart into the same words.
pub(crate) fn joined(words: &[String]) -> String {
    let mut line = String::new();
    for (n, word) in words.iter().enumerate() {
        if n > 0 {
            line.push(' ');
        }
        if is_plain(word) && (n > 0 || !RESERVED.contains(&word.as_str())) {
            line.push_str(word);
        } else {
            line.push('\'');
            line.push_str(&word.replace('\'', r"'\''"));
            line.push('\'');
        }
    }
    line
}

/// Whether a shell takes the word as it stands, wherever it stands.
fn is_plain(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/@:+=-,%".contains(c);
    // `A=b` before a command would be a variable.
    let is_variable = word
        .split_once('=')
        .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    !word.is_empty() && word.chars().all(plain) && !is_variable
}

/// A command line and the files that it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Packed {
    /// The command line, with the name of each file in place of its path.
    pub(crate) command: String,
    /// The files.
    pub(crate) files: Vec<Upload>,
    /// Placeholders that look like paths, and name no file.
    pub(crate) doubtful: Vec<String>,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathTarget {
    /// A file, which can be sent.
    File,
    /// Nothing that can be sent.
    Nothing,
}

/// What stands there on this machine.
pub(crate) fn on_disk(path: &Path) -> PathTarget {
    if path.is_file() { PathTarget::File } else { PathTarget::Nothing }
}

/// Finds `{path}` in a command. Where the path leads to a file, the file comes along, and its name
/// takes the path's place; anything else is left alone.
pub(crate) fn packed(command: &str, look: impl Fn(&Path) -> PathTarget) -> Packed {
    let parts = parts(command);
    let found = |path: &str| look(Path::new(path)) == PathTarget::File;
    // What is left alone must not be taken for a file by the agent.
    let left_alone = parts.iter().filter_map(|part| match part {
        CommandPart::Braced(path) if !found(path) => Some((*path).to_owned()),
        _ => None,
    });
    let mut taken: Vec<String> = left_alone.collect();
    let mut packed = Packed::default();
    for part in parts {
        match part {
            CommandPart::Text(text) => packed.command.push_str(text),
            CommandPart::Braced(path) if found(path) => {
                let name = packed.name_for(path, &mut taken);
                packed.command.push_str(&format!("{{{name}}}"));
            }
            CommandPart::Braced(other) => {
                if looks_like_a_path(other) && !packed.doubtful.iter().any(|said| said == other) {
                    packed.doubtful.push(other.to_owned());
                }
                packed.command.push_str(&format!("{{{other}}}"));
            }
        }
    }
    packed
}

impl Packed {
    /// The placeholder of that file: the last part of its path, if that is free.
    fn name_for(&mut self, path: &str, taken: &mut Vec<String>) -> String {
        if let Some(known) = self.files.iter().find(|file| file.path == Path::new(path)) {
            return known.name.clone();
        }
        let last = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let last: String =
            last.unwrap_or_default().chars().map(|c| if plain(c) { c } else { '_' }).collect();
        let mut name = last.clone();
        let mut n = 2;
        while name.is_empty() || taken.contains(&name) {
            name = format!("{n}-{last}");
            n += 1;
        }
        taken.push(name.clone());
        self.files.push(Upload { name: name.clone(), path: PathBuf::from(path) });
        name
    }
}

/// `deploy.yaml`, `/etc/hosts`, and not `print $1` or `a,b`.
fn looks_like_a_path(text: &str) -> bool {
    let ends_like_a_file = Path::new(text)
        .extension()
        .is_some_and(|end| end.to_str().is_some_and(|end| end.starts_with(char::is_alphabetic)));
    let has_odd = text.chars().any(|c| c.is_whitespace() || "$;,|&<>()*?\"'".contains(c));
    !has_odd && (text.contains('/') || ends_like_a_file)
}

/// A command, taken apart.
enum CommandPart<'c> {
    /// Anything.
    Text(&'c str),
    /// What stands between `{` and `}`.
    Braced(&'c str),
}

fn parts(command: &str) -> Vec<CommandPart<'_>> {
    let mut parts = Vec::new();
    let mut text_from = 0;
    let mut open: Option<usize> = None;
    for (at, c) in command.char_indices() {
        match c {
            // `${name}` is the shell's own.
            '{' => open = (!command[..at].ends_with('$')).then_some(at),
            '\n' => open = None,
            '}' => {
                let Some(from) = open.take() else { continue };
                let inner = &command[from + 1..at];
                if !inner.is_empty() && inner.chars().count() <= MAX_PATH_CHARS {
                    parts.push(CommandPart::Text(&command[text_from..from]));
                    parts.push(CommandPart::Braced(inner));
                    text_from = at + 1;
                }
            }
            _ => {}
        }
    }
    parts.push(CommandPart::Text(&command[text_from..]));
    parts
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn words_are_quoted_only_where_a_shell_would_read_more_into_them() {
        for (given, want) in [
            (&["redis-cli", "set", "x", "29"][..], "redis-cli set x 29"),
            (&["echo", "a b", "", "it's"], r"echo 'a b' '' 'it'\''s'"),
            (&["echo", "$HOME", "*", "~"], "echo '$HOME' '*' '~'"),
            (&["A=b", "env"], "'A=b' env"),
            (&["ls", "--color=never"], "ls --color=never"),
            (&["if", "if"], "'if' if"),
            (&["kubectl", "apply", "-f", "{deploy.yaml}"], "kubectl apply -f '{deploy.yaml}'"),
        ] {
            assert_eq!(joined(&words(given)), want);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
        #[test]
        fn quoted_words_come_out_of_a_real_shell_as_they_went_in(
            given in prop::collection::vec("[ -~éß\n\t]{0,12}", 0..6),
        ) {
            let mut line = words(&["printf", r"%s\0"]);
            line.push("end".to_owned());
            line.extend(given.iter().cloned());
            let ran = Command::new("sh").arg("-c").arg(joined(&line)).output().unwrap();
            let mut want: Vec<u8> = b"end\0".to_vec();
            for word in &given {
                want.extend(word.as_bytes());
                want.push(0);
            }
            prop_assert_eq!(ran.stdout, want);
        }
    }

    fn check(command: &str, want: &str, files: &[(&str, &str)], doubtful: &[&str]) {
        let there = ["deploy.yaml", "a/deploy.yaml", "b/deploy.yaml", "my file", "x"];
        let look = |path: &Path| {
            if there.iter().any(|known| Path::new(known) == path) {
                PathTarget::File
            } else {
                PathTarget::Nothing
            }
        };
        let packed = packed(command, look);
        assert_eq!(packed.command, want, "{command}");
        let sent: Vec<(&str, &str)> = packed
            .files
            .iter()
            .map(|file| (file.name.as_str(), file.path.to_str().unwrap()))
            .collect();
        assert_eq!(sent, files, "{command}");
        assert_eq!(packed.doubtful, doubtful, "{command}");
    }

    #[test]
    fn files_named_in_braces_come_along() {
        let deploy = ("deploy.yaml", "deploy.yaml");
        check("apply -f {deploy.yaml}", "apply -f {deploy.yaml}", &[deploy], &[]);
        check("cat '{my file}'", "cat '{my_file}'", &[("my_file", "my file")], &[]);
        check("{x}{x}", "{x}{x}", &[("x", "x")], &[]);
        check(
            "{a/deploy.yaml} {b/deploy.yaml} {a/deploy.yaml}",
            "{deploy.yaml} {2-deploy.yaml} {deploy.yaml}",
            &[("deploy.yaml", "a/deploy.yaml"), ("2-deploy.yaml", "b/deploy.yaml")],
            &[],
        );
    }

    #[test]
    fn other_braces_are_left_alone_and_told_of_if_they_look_like_paths() {
        for plain in
            ["awk '{print $1}'", "echo ${HOME} ${x}", "{ a; b; }", "a{b,c}", "{", "}{}", ""]
        {
            check(plain, plain, &[], &[]);
        }
        check(
            "cat {dploy.yaml} {/etc/nope}",
            "cat {dploy.yaml} {/etc/nope}",
            &[],
            &["dploy.yaml", "/etc/nope"],
        );
        check("{{x}}", "{{x}}", &[("x", "x")], &[]);
    }

    #[test]
    fn a_file_is_not_named_like_something_left_alone() {
        check(
            "cat {2.txt} {b/deploy.yaml}",
            "cat {2.txt} {deploy.yaml}",
            &[("deploy.yaml", "b/deploy.yaml")],
            &["2.txt"],
        );
    }
}
