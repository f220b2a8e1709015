//! `__ID__` in commands, which stands for the resource's id.
//!
//! Whoever names a resource need not be who wrote the command. Quoting keeps an id from being read
//! as code; it does not keep one that begins with `-` from being taken for an option, nor one that
//! begins with `/`, or has `..` in it, from leading out of the directory of the commands, or the one
//! that a command puts before it. A `~` does no harm: nothing is expanded inside quotes.

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
/// When the id could be taken for an option, or lead out of a directory.
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
    let leads_out = id.split('/').any(|part| matches!(part, "." | ".."));
    leads_out.then_some("has a part `.` or `..` and could lead out of a directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_an_option_or_leads_out_of_a_directory_stands_in_no_command() {
        let cases = [
            ("x", true),
            ("image/7", true),
            ("v2/images/é", true),
            ("~root/x", true),
            ("a b; rm x", true),
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
