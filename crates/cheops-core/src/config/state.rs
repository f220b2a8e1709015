//! A resource's whole state: what the profiles read and write it by, and of what.

use super::StateCommands;
use crate::ids::ID_PLACEHOLDER;

/// The same commands, about that target: they find it in the variable `target`, and in `volatile`, line by
/// line, what each site fills in by itself.
pub(super) fn about(commands: &StateCommands, target: &str, volatile: &[String]) -> StateCommands {
    let about = |command: &str| match volatile {
        [] => with_target(command, target),
        some => with_target(&format!("volatile={}; {command}", quoted(&some.join("\n"))), target),
    };
    StateCommands { read: about(&commands.read), write: about(&commands.write) }
}

/// The same of what speaks of no target.
pub(super) fn without_target(commands: &StateCommands, volatile: &[String]) -> StateCommands {
    let volatile = quoted(&volatile.join("\n"));
    let about = |command: &str| format!("volatile={volatile}; {command}");
    StateCommands { read: about(&commands.read), write: about(&commands.write) }
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

/// A text as it is; that there is no file is the same as an empty one. It is written aside and then
/// renamed, so that nobody ever sees half of it; mode and owner stay as they were.
pub(super) const DOCUMENT: (&str, &str) = (
    r#"if [ -f "$target" ]; then cat -- "$target"; elif [ -e "$target" ]; then echo "$target is not a file" >&2; exit 1; fi"#,
    r#"new=$target.cheops-$$; { [ ! -f "$target" ] || cp -p -- "$target" "$new"; } && cat > "$new" && mv -f -- "$new" "$target" || { rm -f -- "$new"; exit 1; }"#,
);

/// A key by its type and its values, in the words and quotes of `redis-cli`, sorted where Redis keeps no
/// order: unlike `DUMP`, equal values give equal bytes, and a person can read the difference. Which server
/// it is, the variable `REDIS_CLI` of the agent's environment may say (`redis-cli -h cache`).
pub(super) const REDIS: (&str, &str) = (
    r#"cli() { ${REDIS_CLI:-redis-cli} -e --no-raw "$@"; }; plain() { sed 's/^ *[0-9]*) //'; }; kind=$(cli TYPE "$target") || exit 1; case $kind in none) state=;; string) state=$(cli GET "$target");; set) state=$(cli SMEMBERS "$target");; list) state=$(cli LRANGE "$target" 0 -1);; hash) state=$(cli HGETALL "$target");; zset) state=$(cli ZRANGE "$target" 0 -1 WITHSCORES);; *) echo "a $kind of Redis cannot be read" >&2; exit 1;; esac || exit 1; echo "$kind"; case $kind in none) ;; string) printf '%s\n' "$state";; list) printf '%s\n' "$state" | plain;; set) printf '%s\n' "$state" | plain | LC_ALL=C sort;; hash) printf '%s\n' "$state" | plain | paste -d ' ' - - | LC_ALL=C sort;; zset) printf '%s\n' "$state" | plain | paste -d ' ' - - | sed 's/^\(".*"\) \("[^"]*"\)$/\2 \1/' | LC_ALL=C sort;; esac"#,
    r#"IFS= read -r kind || exit 1; case $kind in none) verb=;; string) verb=SET;; set) verb=SADD;; list) verb=RPUSH;; hash) verb=HSET;; zset) verb=ZADD;; *) echo "this is not the state of a key of Redis" >&2; exit 1;; esac; key=$(printf '%s' "$target" | sed 's/[\\"]/\\&/g'); { printf 'MULTI\nDEL "%s"\n' "$key"; while IFS= read -r value; do printf '%s "%s" %s\n' "$verb" "$key" "$value"; done; echo EXEC; } | ${REDIS_CLI:-redis-cli} -e > /dev/null"#,
);

/// What is read by a program of Python: JSON, with its members in order and without what each site fills in by
/// itself, by pointers of which a `*` stands for every element; anything else byte by byte.
macro_rules! canonical {
    () => {
        r#"canonical() { python3 -c '
import json, sys
data = sys.stdin.buffer.read()
def drop(value, path):
    name = path[0].replace("~1", "/").replace("~0", "~")
    if isinstance(value, dict):
        keys = [name] if name in value else []
    elif isinstance(value, list):
        keys = range(len(value)) if name == "*" else [int(name)] if name.isdigit() and int(name) < len(value) else []
    else:
        keys = []
    for key in list(keys):
        if path[1:]:
            drop(value[key], path[1:])
        elif isinstance(value, dict):
            del value[key]
try:
    value = json.loads(data)
except ValueError:
    sys.stdout.buffer.write(b"body\n" + data)
    sys.exit()
for pointer in sys.argv[1].split("\n"):
    if pointer:
        drop(value, pointer[1:].split("/"))
text = json.dumps(value, sort_keys=True, ensure_ascii=False, indent=1)
sys.stdout.buffer.write(b"json\n" + text.encode() + b"\n")' "$1"; }; "#
    };
}

/// Says which program is missing, if one is.
macro_rules! needs {
    ($tools:literal) => {
        concat!(
            "for tool in ",
            $tools,
            r#"; do command -v "$tool" > /dev/null || { echo "$tool is not installed here, and the state is read and written by it" >&2; exit 1; }; done; "#
        )
    };
}

/// A resource of a service by its address: what `GET` gives, or that there is none. It is written by `PUT`, or,
/// where that makes nothing, by `POST` to what is above it, and then has to be there; and taken away by `DELETE`.
/// How requests are made, the variable `CURL` of the agent's environment may say (`curl -H "X-Token: …"`).
pub(super) const HTTP: (&str, &str) = (
    concat!(
        needs!("curl python3"),
        canonical!(),
        r#"body=$(mktemp) || exit 1; trap 'rm -f -- "$body"' EXIT; status=$(${CURL:-curl} -sS -o "$body" -w '%{http_code}' --url "$target") || exit 1; case $status in 404|410) echo absent;; 2??) canonical "${volatile-}" < "$body";; *) echo "GET $target was answered $status" >&2; exit 1;; esac"#
    ),
    concat!(
        needs!("curl"),
        r#"IFS= read -r kind || exit 1; body=$(mktemp) || exit 1; trap 'rm -f -- "$body"' EXIT; cat > "$body" || exit 1; cli() { ${CURL:-curl} -sS -o /dev/null -w '%{http_code}' "$@"; }; case $kind in json) type=application/json;; body) type=application/octet-stream;; absent) status=$(cli -X DELETE --url "$target") || exit 1; case $status in 2??|404|410) exit 0;; *) echo "DELETE $target was answered $status" >&2; exit 1;; esac;; *) echo "this is not the state of a resource of a service" >&2; exit 1;; esac; status=$(cli -X PUT -H "Content-Type: $type" --data-binary @"$body" --url "$target") || exit 1; case $status in 2??) exit 0;; 404|405|410|501) ;; *) echo "PUT $target was answered $status" >&2; exit 1;; esac; above=${target%/*}; status=$(cli -X POST -H "Content-Type: $type" --data-binary @"$body" --url "$above") || exit 1; case $status in 2??) ;; *) echo "POST $above was answered $status" >&2; exit 1;; esac; status=$(cli --url "$target") || exit 1; case $status in 2??) ;; *) echo "POST $above made something else than $target: does it take the id that it is given?" >&2; exit 1;; esac"#
    ),
);

/// An object of Kubernetes, such as `deployment/web`, without what the server fills in, or that there is none.
/// Which cluster it is, the variable `KUBECTL` of the agent's environment may say (`kubectl -n shop`).
pub(super) const KUBERNETES: (&str, &str) = (
    concat!(
        needs!("python3"),
        canonical!(),
        r#"object=$(${KUBECTL:-kubectl} get --ignore-not-found -o json "$target") || exit 1; if [ -z "$object" ]; then echo absent; else printf '%s\n' "$object" | canonical "/status
/metadata/uid
/metadata/resourceVersion
/metadata/generation
/metadata/creationTimestamp
/metadata/managedFields
/metadata/selfLink
/metadata/annotations/deployment.kubernetes.io~1revision
${volatile-}"; fi"#
    ),
    r#"IFS= read -r kind || exit 1; cli() { ${KUBECTL:-kubectl} "$@"; }; case $kind in absent) cli delete --ignore-not-found "$target";; json) there=$(cli get --ignore-not-found -o name "$target") || exit 1; if [ -n "$there" ]; then cli replace -f -; else cli create -f -; fi;; *) echo "this is not the state of an object of Kubernetes" >&2; exit 1;; esac"#,
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
            ("{Profile: http, Volatile: [/id]}", None),
            ("{Profile: file, Target: x, State: null}", None),
            ("{State: {Read: cat x, Write: cat > x}}", Some("cat x")),
            ("{Target: x, State: {Read: \"cat $target\", Write: w}}", Some("target='x'")),
            ("{Snapshot: cat x, Restore: cat > x}", Some("cat x")),
            (
                "{Profile: http, Target: 'http://a/b', Volatile: [/id, \"/it's\"]}",
                Some("target='http://a/b'; volatile='/id\n/it'\\''s'; "),
            ),
            ("{Profile: kubernetes, Target: deployment/web}", Some("target='deployment/web'; ")),
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
            ("{Volatile: [/id]}", "there is `Volatile` but no `State`"),
            ("{Profile: http, Target: a, Volatile: /id}", "a list of JSON pointers"),
            ("{Profile: http, Target: a, Volatile: [id]}", "a JSON pointer"),
        ] {
            let errors = Config::parse(document).unwrap_err().to_string();
            assert!(errors.contains(expected), "{document}: {errors}");
        }
    }
}
