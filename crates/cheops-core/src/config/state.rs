//! A resource's whole state: what the profiles read and write it by, and of what.

use super::StateCommands;
use crate::ids::ID_PLACEHOLDER;

/// The same commands, about that target: they find it in the variable `target`.
pub(super) fn about(commands: &StateCommands, target: &str) -> StateCommands {
    StateCommands {
        read: with_target(&commands.read, target),
        write: with_target(&commands.write, target),
    }
}

/// The same command, with that target in the variable `target`.
pub(super) fn with_target(command: &str, target: &str) -> String {
    format!("target={}; {command}", quoted(target))
}

/// The text as one word of a shell. The resource's id is left outside the quotes, so that it is filled
/// in as everywhere else.
fn quoted(text: &str) -> String {
    let parts = text.split(ID_PLACEHOLDER).map(|part| match part {
        "" => String::new(),
        part => format!("'{}'", part.replace('\'', r"'\''")),
    });
    parts.collect::<Vec<_>>().join(ID_PLACEHOLDER)
}

/// A file, byte by byte, or that there is none. It is written aside and then renamed, so that nobody
/// ever sees half of it; mode and owner stay as they were.
pub(super) const FILE: (&str, &str) = (
    r#"if [ -f "$target" ]; then echo file && cat -- "$target"; elif [ -e "$target" ]; then echo "$target is not a file" >&2; exit 1; else echo absent; fi"#,
    r#"IFS= read -r kind || exit 1; new=$target.cheops-$$; case $kind in file) { [ ! -f "$target" ] || cp -p -- "$target" "$new"; } && cat > "$new" && mv -f -- "$new" "$target" || { rm -f -- "$new"; exit 1; };; absent) rm -f -- "$target";; *) echo "this is not the state of a file" >&2; exit 1;; esac"#,
);

/// A key by its type and its values, in the words and quotes of `redis-cli`, sorted where Redis keeps no
/// order: unlike `DUMP`, equal values give equal bytes, and a person can read the difference. Which server
/// it is, the variable `REDIS_CLI` of the agent's environment may say (`redis-cli -h cache`).
pub(super) const REDIS: (&str, &str) = (
    r#"cli() { ${REDIS_CLI:-redis-cli} -e --no-raw "$@"; }; plain() { sed 's/^ *[0-9]*) //'; }; kind=$(cli TYPE "$target") || exit 1; case $kind in none) state=;; string) state=$(cli GET "$target");; set) state=$(cli SMEMBERS "$target");; list) state=$(cli LRANGE "$target" 0 -1);; hash) state=$(cli HGETALL "$target");; zset) state=$(cli ZRANGE "$target" 0 -1 WITHSCORES);; *) echo "a $kind of Redis cannot be read" >&2; exit 1;; esac || exit 1; echo "$kind"; case $kind in none) ;; string) printf '%s\n' "$state";; list) printf '%s\n' "$state" | plain;; set) printf '%s\n' "$state" | plain | LC_ALL=C sort;; hash) printf '%s\n' "$state" | plain | paste -d ' ' - - | LC_ALL=C sort;; zset) printf '%s\n' "$state" | plain | paste -d ' ' - - | sed 's/^\(".*"\) \("[^"]*"\)$/\2 \1/' | LC_ALL=C sort;; esac"#,
    r#"IFS= read -r kind || exit 1; case $kind in none) verb=;; string) verb=SET;; set) verb=SADD;; list) verb=RPUSH;; hash) verb=HSET;; zset) verb=ZADD;; *) echo "this is not the state of a key of Redis" >&2; exit 1;; esac; key=$(printf '%s' "$target" | sed 's/[\\"]/\\&/g'); { printf 'MULTI\nDEL "%s"\n' "$key"; while IFS= read -r value; do printf '%s "%s" %s\n' "$verb" "$key" "$value"; done; echo EXEC; } | ${REDIS_CLI:-redis-cli} -e > /dev/null"#,
);

#[cfg(test)]
mod tests {
    use super::super::Config;

    fn read_command(document: &str) -> Option<String> {
        let config = Config::parse(document).unwrap().config;
        config.state.map(|both| both.read)
    }

    #[test]
    fn a_profile_has_a_state_only_of_a_target_and_that_is_one_word_whatever_it_is() {
        for (document, expected) in [
            ("Profile: file", None),
            ("{Profile: file, Target: /srv/motd}", Some("target='/srv/motd'")),
            ("{Profile: file, Target: \"it's; rm -rf /\"}", Some(r"target='it'\''s; rm -rf /'")),
            ("{Profile: file, Target: /srv/__ID__.txt}", Some("target='/srv/'__ID__'.txt'")),
            ("{Profile: redis, Target: __ID__}", Some("target=__ID__")),
            ("{Profile: file, Target: x, State: null}", None),
            ("{State: {Read: cat x, Write: cat > x}}", Some("cat x")),
            ("{Target: x, State: {Read: \"cat $target\", Write: w}}", Some("target='x'")),
            ("{Snapshot: cat x, Restore: cat > x}", Some("cat x")),
        ] {
            if document.contains("State: null") {
                let errors = Config::parse(document).unwrap_err().to_string();
                assert!(errors.contains("there is `Target` but no `State`"), "{errors}");
                continue;
            }
            let command = read_command(document);
            let begins = |with: &str| command.as_deref().is_some_and(|it| it.starts_with(with));
            assert!(expected.map_or(command.is_none(), begins), "{document}: {command:?}");
        }
    }

    #[test]
    fn what_is_said_twice_or_by_half_is_refused() {
        for (document, expected) in [
            (
                "{State: {Read: a, Write: b}, Snapshot: c}",
                "`Snapshot` is given already, as `State`",
            ),
            ("{State: {Read: a}}", "there is `Read` but no `Write`"),
            ("{State: {Write: a}}", "there is `Write` but no `Read`"),
            ("{Snapshot: a}", "there is `Snapshot` but no `Restore`"),
            ("{Target: /srv/x}", "there is `Target` but no `State`"),
            ("{Profile: file, Target: \"\"}", "is empty"),
            ("{Profile: file, Target: [a]}", "found a list"),
        ] {
            let errors = Config::parse(document).unwrap_err().to_string();
            assert!(errors.contains(expected), "{document}: {errors}");
        }
    }
}
