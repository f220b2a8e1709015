//! `__ID__` in commands, which stands for the resource's id.
//!
//! Whoever names a resource need not be who wrote the command. Quoting keeps an id from being read
//! as code by the shell that runs the command, and not by another that it hands its text to: `sh -c`,
//! `ssh`, `eval`, `awk`. Nobody can tell which texts those are. So only ids of characters that no
//! shell reads as code stand in for it, wherever it is; any other id is in `$CHEOPS_RESOURCE`. Nor may
//! an id begin with `-`, which would be taken for an option, or begin with `/` or have `..` in it,
//! which would lead out of the directory of the commands, or the one that a command puts before it.

use crate::ids::{ID_PLACEHOLDER, ResourceId};

/// Why an id cannot stand in a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the command says `__ID__`, and the id `{id}` {why}; use another id, or `\"$CHEOPS_RESOURCE\"` \
     where that does no harm"
)]
pub struct UnusableId {
    id: ResourceId,
    why: &'static str,
}

/// Whether the id can stand in for `__ID__` in that command, if it says so at all.
///
/// # Errors
///
/// When the id could be read as code, be taken for an option, or lead out of a directory.
pub fn id_can_stand_in(command: &str, id: &ResourceId) -> Result<(), UnusableId> {
    let why = command.contains(ID_PLACEHOLDER).then(|| fault(id.as_str())).flatten();
    why.map_or(Ok(()), |why| Err(UnusableId { id: id.clone(), why }))
}

fn fault(id: &str) -> Option<&'static str> {
    if id.starts_with('-') {
        return Some("begins with `-` and would be taken for an option");
    }
    if id.starts_with('/') {
        return Some("begins with `/` and would lead out of the directory of the commands");
    }
    // Also a single dot: the command may have another one beside it.
    if id.split('/').any(|part| matches!(part, "." | "..")) {
        return Some("has a part `.` or `..` and could lead out of a directory");
    }
    let is_harmless = |c: char| c.is_alphanumeric() || "._/@:+=,%-".contains(c);
    let is_code = !id.chars().all(is_harmless);
    is_code.then_some(
        "has characters other than letters, digits and `._/@:+=,%-`, which a shell could read as code",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_code_or_an_option_or_leads_out_of_a_directory_stands_in_no_command() {
        let cases = [
            ("x", true),
            ("image/7", true),
            ("v2/images/é", true),
            ("user@host:22/a=b,c+d%20", true),
            ("~root/x", false),
            ("a b", false),
            ("a;reboot", false),
            ("$(reboot)", false),
            ("`reboot`", false),
            ("'", false),
            ("*", false),
            ("..x", true),
            ("x..", true),
            ("a...b/.hidden", true),
            ("x-rf", true),
            ("-rf", false),
            ("--help", false),
            ("/v2/images/é", false),
            ("//tmp/x", false),
            ("/", false),
            ("../../etc/passwd", false),
            ("a/../b", false),
            ("a/..", false),
            ("..", false),
            (".", false),
            ("./a", false),
        ];
        for (id, usable) in cases {
            let id = ResourceId::new(id).unwrap();
            assert_eq!(id_can_stand_in("cat /srv/__ID__.txt", &id).is_ok(), usable, "{id}");
            assert_eq!(id_can_stand_in("cat \"$CHEOPS_RESOURCE\"", &id), Ok(()), "{id}");
        }
    }
}
