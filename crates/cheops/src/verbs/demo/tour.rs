//! What to try in a demo that runs.

use super::stage::{Site, Stage};
use crate::agent::USUAL_ADDRESS;
use crate::failure::Failure;
use crate::look::{ACCENT, BOLD, DIM, styled};
use crate::output::Output;

pub(super) fn print(stage: &Stage, output: &mut Output) -> Result<(), Failure> {
    let names: Vec<String> = stage.sites.iter().map(|site| site.name.to_string()).collect();
    let everywhere = names.join(" & ");
    let (Some(first), Some(second)) = (stage.sites.first(), stage.sites.get(1)) else {
        return Ok(());
    };
    output.line("")?;
    for line in stage.overview() {
        output.line(line)?;
    }
    // The first site is where commands go that say nothing else.
    let at = |site: &Site| match site.api == USUAL_ADDRESS {
        true => String::new(),
        false => format!(" --agent {}", site.api),
    };
    let steps = [
        (
            "Make a file at every site, and look at it",
            vec![
                format!(
                    "cheops exec{} --id motd --sites '{everywhere}' --type set --profile file -- 'echo hello > motd.txt'",
                    at(first)
                ),
                format!("cheops show{} --id motd -- cat motd.txt", at(second)),
            ],
        ),
        (
            "Cut all links; every site goes on alone",
            vec![
                "cheops demo cut".to_owned(),
                format!(
                    "cheops exec{} --id motd --type add --wait local -- 'echo left >> motd.txt'",
                    at(first)
                ),
                format!(
                    "cheops exec{} --id motd --type set --wait local -- 'echo middle > motd.txt'",
                    at(second)
                ),
                format!("cheops sites{}", at(first)),
            ],
        ),
        (
            "Heal; all sites agree, and say why",
            vec![
                "cheops demo heal".to_owned(),
                format!("cheops show{} --id motd -- cat motd.txt", at(first)),
                format!("cheops explain{} motd", at(second)),
            ],
        ),
        (
            "The same with a REST service",
            vec![
                format!(
                    "cheops http{} --id greeting --sites '{everywhere}' --type put --profile http --service kv PUT /kv/greeting --body hello",
                    at(first)
                ),
                format!("curl {}/kv/greeting", second.service),
            ],
        ),
        ("Watch what happens, live", vec![format!("cheops watch{}", at(first))]),
    ];
    for (what, commands) in steps {
        output.line("")?;
        output.line(styled(BOLD, what))?;
        for command in commands {
            output.line(format!("  {}", styled(ACCENT, command)))?;
        }
    }
    output.line("")?;
    output.line(styled(DIM, "Paste these into another terminal. Ctrl-C ends everything here."))?;
    if let Some(folder) = not_in_path() {
        output.line(styled(DIM, "So that it finds the program, first:"))?;
        output.line(format!("  {}", styled(ACCENT, format!("export PATH=\"{folder}:$PATH\""))))?;
    }
    Ok(())
}

/// The folder of this program, if a shell would not look there.
fn not_in_path() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_known = std::env::split_paths(&path).any(|known| known == folder);
    (!is_known).then(|| folder.display().to_string())
}
