//! `cheops show`: look at a resource at every site, side by side.

use std::time::Duration;

use cheops_api::{Show, ShowAnswer, ShowStatus, Shown};
use clap::Args;

use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::handing::{check_location, check_resource, milliseconds};
use crate::look::{BAD, BOLD, DIM, GOOD, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::shell::CommandArguments;
use crate::text::{listed, printable};
use crate::time::duration;

const AFTER_HELP: &str = "\
Sites that print the same share a block. Where they differ, lines are compared with the first
block: `+` stands before what is printed there and not here, `-` before what is missing.

Examples:
  cheops show --id counter -- redis-cli get x
  cheops show --id notes --sites 'paris & lyon' -- 'wc -l /srv/notes'

Exit codes:
  0  the command succeeded at every site asked
  1  it failed at a site, or, with `--exit-code`, the sites differ
  2  the command cannot be carried out as given
  3  the agent is out of reach, or a site did not answer in time";

/// Comparing longer outputs line by line takes too long.
const MAX_COMPARED_LINES: usize = 2000;

/// Run a reading command at every site of a resource; it becomes no operation
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The resource to look at
    #[arg(long, value_name = "ID")]
    id: String,
    /// Where to look; if not given, at every site that holds it
    #[arg(long, value_name = "SITES")]
    sites: Option<String>,
    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    timeout: Duration,
    /// Exit with 1 also where the sites differ
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    command: CommandArguments,
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let example = "give it after `--`, such as: cheops show --id x -- redis-cli get x";
    let command = arguments.command.required(example)?;
    check_resource(&arguments.id)?;
    if let Some(sites) = &arguments.sites {
        check_location(sites, output)?;
    }
    let show = Show {
        command,
        sites: arguments.sites.clone(),
        timeout_ms: milliseconds(arguments.timeout),
    };
    let answer = ask(&arguments.id, &show, agent, output)?;
    match verdict(&answer) {
        Verdict::Fine if arguments.exit_code && differ(&answer) => Ok(Verdict::Problems),
        verdict => Ok(verdict),
    }
}

/// Asks the sites, and prints what they show.
pub(super) fn ask(
    id: &str,
    show: &Show,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<ShowAnswer, Failure> {
    output.status("asking the sites …");
    let answer = agent::with(agent, async |client| Ok(client.show(id, show).await?))?;
    match output.format {
        Format::Json => output.json(&answer)?,
        Format::Table => {
            for line in told(&answer) {
                output.line(line)?;
            }
        }
    }
    Ok(answer)
}

/// Whether two sites showed different things.
pub(super) fn differ(answer: &ShowAnswer) -> bool {
    let shown = |block: &&Block<'_>| block.shown.status == ShowStatus::Ok;
    blocks(answer).iter().filter(shown).count() > 1
}

/// Whether some site showed more than it kept, so that what looks the same need not be.
pub(super) fn is_cut_off(answer: &ShowAnswer) -> bool {
    answer.sites.values().any(|shown| shown.truncated)
}

pub(super) fn verdict(answer: &ShowAnswer) -> Verdict {
    let has =
        |status: &[ShowStatus]| answer.sites.values().any(|shown| status.contains(&shown.status));
    if has(&[ShowStatus::Ko]) {
        Verdict::Problems
    } else if has(&[ShowStatus::Timeout, ShowStatus::Unreachable]) || answer.sites.is_empty() {
        Verdict::Missing
    } else {
        Verdict::Fine
    }
}

/// Sites that showed the same.
struct Block<'a> {
    sites: Vec<&'a str>,
    shown: &'a Shown,
}

/// The most common answer first; among equally common ones, by the sites' names.
fn blocks(answer: &ShowAnswer) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for (site, shown) in &answer.sites {
        match blocks.iter_mut().find(|block| block.shown == shown) {
            Some(block) => block.sites.push(site),
            None => blocks.push(Block { sites: vec![site], shown }),
        }
    }
    // An answer is a better thing to compare with than none.
    blocks.sort_by_key(|block| {
        (block.shown.status != ShowStatus::Ok, std::cmp::Reverse(block.sites.len()))
    });
    blocks
}

fn told(answer: &ShowAnswer) -> Vec<String> {
    let blocks = blocks(answer);
    let mut lines = Vec::new();
    let mut first: Option<&Shown> = None;
    for block in &blocks {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(head(block));
        lines.extend(body(block.shown, first));
        first = first.or((block.shown.status == ShowStatus::Ok).then_some(block.shown));
    }
    if differ(answer) {
        lines.push(String::new());
        lines.push(styled(WARN, "the sites differ"));
    } else if is_cut_off(answer) && answer.sites.len() > 1 {
        lines.push(String::new());
        lines.push(styled(WARN, "only what the sites kept is compared: the rest may differ"));
    }
    lines
}

fn head(block: &Block<'_>) -> String {
    let style = match block.shown.status {
        ShowStatus::Ok => GOOD,
        ShowStatus::Ko => BAD,
        ShowStatus::Timeout | ShowStatus::Unreachable => WARN,
    };
    let code = match block.shown.exit_code {
        Some(code) if code != 0 => format!(", exit code {code}"),
        _ => String::new(),
    };
    let word = match block.shown.status {
        ShowStatus::Ok => "OK",
        ShowStatus::Ko => "failed",
        ShowStatus::Timeout => "no answer in time",
        ShowStatus::Unreachable => "not connected",
    };
    let status = styled(style, format!("{word}{code}"));
    format!("{}: {status}", styled(BOLD, listed(&block.sites)))
}

fn body(shown: &Shown, first: Option<&Shown>) -> Vec<String> {
    let text = printable(shown.output.trim_end_matches('\n'));
    let here: Vec<&str> = text.lines().collect();
    let mut lines: Vec<String> = match first {
        Some(first) if shown.status == ShowStatus::Ok => {
            let other = printable(first.output.trim_end_matches('\n'));
            compared(&other.lines().collect::<Vec<_>>(), &here)
        }
        _ => here.iter().map(|line| format!("  {line}")).collect(),
    };
    if shown.truncated {
        lines.push(styled(DIM, "  … and more that the site did not keep"));
    }
    lines
}

/// What is here, marked where it is not what is there.
fn compared(there: &[&str], here: &[&str]) -> Vec<String> {
    if there.len().max(here.len()) > MAX_COMPARED_LINES {
        return here.iter().map(|line| format!("  {line}")).collect();
    }
    let common = common(there, here);
    let (mut at_there, mut at_here) = (0, 0);
    let mut lines = Vec::new();
    for (next_there, next_here) in common.into_iter().chain([(there.len(), here.len())]) {
        let missing = there[at_there..next_there].iter();
        lines.extend(missing.map(|line| styled(DIM, format!("- {line}"))));
        let added = here[at_here..next_here].iter();
        lines.extend(added.map(|line| styled(WARN, format!("+ {line}"))));
        lines.extend(here.get(next_here).map(|line| format!("  {line}")));
        (at_there, at_here) = (next_there + 1, next_here + 1);
    }
    lines
}

/// The places of a longest common subsequence.
fn common(a: &[&str], b: &[&str]) -> Vec<(usize, usize)> {
    let width = b.len() + 1;
    // How long it is for what is left of both.
    let mut longest = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut places = Vec::new();
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            places.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::grid::bare;

    fn shown(status: ShowStatus, exit_code: Option<i32>, output: &str) -> Shown {
        Shown { status, exit_code, output: output.to_owned(), truncated: false }
    }

    fn answer(sites: &[(&str, Shown)]) -> ShowAnswer {
        ShowAnswer {
            sites: sites.iter().map(|(site, shown)| ((*site).to_owned(), shown.clone())).collect(),
        }
    }

    #[test]
    fn sites_that_show_the_same_share_a_block() {
        let same = shown(ShowStatus::Ok, Some(0), "29\n");
        let answer = answer(&[("paris", same.clone()), ("lyon", same.clone()), ("nice", same)]);
        expect![[r#"
            lyon, nice and paris: OK
              29
        "#]]
        .assert_eq(&bare(&told(&answer)));
        assert_eq!(verdict(&answer), Verdict::Fine);
    }

    #[test]
    fn what_looks_the_same_and_is_not_all_that_was_shown_is_not_called_so() {
        let cut = Shown { truncated: true, ..shown(ShowStatus::Ok, Some(0), "29\n") };
        let answer = answer(&[("paris", cut.clone()), ("lyon", cut)]);
        assert!(is_cut_off(&answer) && !differ(&answer));
        let told = bare(&told(&answer));
        assert!(
            told.ends_with("only what the sites kept is compared: the rest may differ\n"),
            "{told}"
        );
    }

    #[test]
    fn differences_are_marked_against_the_most_common() {
        let same = shown(ShowStatus::Ok, Some(0), "left\nmiddle\nright\n");
        let answer = answer(&[
            ("angers", shown(ShowStatus::Ok, Some(0), "left\nmidle\nright\nmore\n")),
            ("lyon", same.clone()),
            ("paris", same),
            ("nice", shown(ShowStatus::Ko, Some(2), "cat: no such file")),
            ("oslo", shown(ShowStatus::Unreachable, None, "")),
        ]);
        expect![[r#"
            lyon and paris: OK
              left
              middle
              right

            angers: OK
              left
            - middle
            + midle
              right
            + more

            nice: failed, exit code 2
              cat: no such file

            oslo: not connected

            the sites differ
        "#]]
        .assert_eq(&bare(&told(&answer)));
        assert_eq!(verdict(&answer), Verdict::Problems);
    }

    #[test]
    fn a_site_that_does_not_answer_is_missing() {
        let silent = shown(ShowStatus::Timeout, None, "");
        let answer = answer(&[("paris", shown(ShowStatus::Ok, Some(0), "")), ("lyon", silent)]);
        assert_eq!(verdict(&answer), Verdict::Missing);
    }
}
