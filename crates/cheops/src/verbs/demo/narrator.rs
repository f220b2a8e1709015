//! Tells the story: to people in words, tables and a drawing; to programs as JSON, a beat a line.

use std::io;
use std::time::Duration;

use anstyle::Style;
use serde_json::json;

use super::beat::{Beat, Converged, Explained, HandedIn, Here, Length, Moment, Opening};
use super::beat::{Outcome, Replied, SiteReply, SiteState};
use super::map;
use crate::failure::Verdict;
use crate::look::{ACCENT, BAD, BOLD, DIM, GOOD, WARN, painted, styled};
use crate::output::{Format, Output};
use crate::text::{listed, table, table_lines, wrapped};

/// How long one can look at a scene, or at a long part of one, before the next begins.
const PAUSE: Duration = Duration::from_millis(2_500);

/// Words that mean something wherever they stand in a table.
const STATUSES: [(&str, Style); 6] = [
    ("OK", GOOD),
    ("KO", BAD),
    ("SUPERSEDED", WARN),
    ("IN-DOUBT", BAD),
    ("PARTIAL", WARN),
    ("(down)", BAD),
];

/// Whether there are pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    Unhurried,
    Fast,
}

/// Tells beats.
pub(super) struct Narrator<'o> {
    output: &'o mut Output,
    pace: Pace,
    /// Whether the last line was empty, so that two never follow each other.
    spaced: bool,
}

impl<'o> Narrator<'o> {
    pub(super) fn new(output: &'o mut Output, pace: Pace) -> Self {
        Self { output, pace, spaced: false }
    }

    pub(super) fn tell(&mut self, beat: &Beat) -> io::Result<()> {
        if self.output.format == Format::Json {
            return self.output.json_line(beat);
        }
        if self.pace == Pace::Unhurried && pauses_before(beat) {
            std::thread::sleep(PAUSE);
        }
        let text = told(beat, self.output.width);
        let text = if self.spaced { text.trim_start_matches('\n') } else { &text };
        self.spaced = text.ends_with('\n');
        self.output.line(text)
    }

    /// The last word.
    pub(super) fn end(&mut self, verdict: Verdict) -> io::Result<()> {
        let fine = verdict == Verdict::Fine;
        if self.output.format == Format::Json {
            return self.output.json_line(&json!({ "beat": "end", "ok": fine }));
        }
        match fine {
            false => self.output.line(styled(BAD, "\nThe sites did not agree as they should.")),
            true => self.output.line(format!(
                "\nNext: {} shows the rules that decided here,\n      {} what a scope means.",
                styled(ACCENT, "cheops matrix check --profile file"),
                styled(ACCENT, "cheops scope 'image: paris & lyon'"),
            )),
        }
    }
}

fn pauses_before(beat: &Beat) -> bool {
    match beat {
        Beat::Scene { .. } => true,
        Beat::Opening(opening) => opening.length == Length::Short,
        Beat::Replies { .. } | Beat::Explained(_) => true,
        _ => false,
    }
}

fn told(beat: &Beat, width: usize) -> String {
    match beat {
        Beat::Opening(opening) => self::opening(opening, width),
        Beat::Scene { number, title, at_ms } => scene(*number, title, *at_ms, width),
        Beat::Says { text } => paragraph(text, width),
        Beat::Map { links } => format!("\n{}\n", map::drawn(links)),
        Beat::HandedIn(handed) => handed_in(handed),
        Beat::Unheard { site, others, since_ms } => {
            let others = listed(others);
            remark(&format!("{site} has not heard {others} for {}", seconds(*since_ms)))
        }
        Beat::Changed { site, after_ms, holds } => {
            let after = format!("+{}", seconds(*after_ms));
            format!("{after:>11}  {site:<7} now holds {}", styled(BOLD, holds))
        }
        Beat::States { sites, .. } => states(sites, width),
        Beat::Converged(converged) => self::converged(converged),
        Beat::Replies { sites, operations, .. } => replies(sites, operations, width),
        Beat::Explained(explained) => self::explained(explained, width),
        Beat::Killed { site, at_ms, moment } => killed(site, *at_ms, *moment),
        Beat::Restarted { site, at_ms, after_ms } => {
            let (at, after) = (seconds(*at_ms), seconds(*after_ms));
            format!("{at:>11}  {site}'s agent runs again, {after} later, from its disk")
        }
        Beat::Outcome(outcome) => self::outcome(outcome, width),
    }
}

fn opening(opening: &Opening, width: usize) -> String {
    let Opening { what, resource, profile, meaning, seed, .. } = opening;
    let sites = listed(&opening.sites);
    let (title, setting) = match opening.length {
        Length::Full => (
            format!("Cheops: three sites, one {what}, and a cut"),
            format!(
                "This is a simulation: the engines at {sites} are the real ones; time, network, \
                 disks and shell commands are simulated (seed {seed})."
            ),
        ),
        Length::Short => (format!("The same with a {what}"), String::new()),
    };
    let rules = format!(
        "`{resource}` lives on {sites}. Its conflicts are settled by the profile `{profile}`: \
         {meaning}."
    );
    let paragraphs = [setting, rules].into_iter().filter(|text| !text.is_empty());
    let paragraphs: Vec<_> = paragraphs.map(|text| paragraph(&text, width)).collect();
    format!("\n{}\n{}", styled(BOLD, title), paragraphs.join("\n"))
}

fn scene(number: usize, title: &str, at_ms: u64, width: usize) -> String {
    let time = seconds(at_ms);
    let head = format!("── {number}. {title} ");
    let fill = width.saturating_sub(head.chars().count() + time.chars().count() + 1);
    let rule = "─".repeat(fill);
    format!("\n{}{}", styled(ACCENT.bold(), head), styled(DIM, format!("{rule} {time}")))
}

fn paragraph(text: &str, width: usize) -> String {
    wrapped(text, width.saturating_sub(2))
        .iter()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn handed_in(handed: &HandedIn) -> String {
    let HandedIn { at_ms, site, command, .. } = handed;
    let prompt = format!("{site}$ {command}");
    let answer = match (handed.here, handed.everywhere_after_ms) {
        (None, _) => styled(DIM, format!("accepted, on {site}'s disk")),
        (Some(Here { after_ms, status }), Some(all)) => {
            format!("{} in {after_ms} ms, all in {all} ms", word(status))
        }
        (Some(Here { after_ms, status }), None) => {
            format!("{} in {after_ms} ms, here", word(status))
        }
    };
    let prompt = painted(&format!("{prompt:<36}"), &[(command, BOLD)]);
    format!("{:>11}  {prompt} {answer}", seconds(*at_ms))
}

fn word(status: &str) -> String {
    painted(status, &STATUSES)
}

fn states(sites: &[SiteState], width: usize) -> String {
    let mut table = table(&["site", "holds", "operations that count, in order"], width - 4);
    for state in sites {
        let name = if state.up { state.site.clone() } else { format!("{} (down)", state.site) };
        table.add_row([name, state.holds.clone(), state.list.join(", ")]);
    }
    laid_out(&table)
}

fn converged(converged: &Converged) -> String {
    let Converged { after_ms, messages, bytes } = converged;
    let after = format!("+{}", seconds(*after_ms));
    let agreed = styled(GOOD, "all sites agree, and know it");
    format!("{after:>11}  {agreed}: {messages} messages, {bytes} bytes")
}

fn replies(sites: &[String], operations: &[Replied], width: usize) -> String {
    let mut header = vec!["operation"];
    header.extend(sites.iter().map(String::as_str));
    let mut table = table(&header, width - 4);
    for replied in operations {
        let mut row = vec![format!("{}\n{}", replied.operation, replied.command)];
        row.extend(replied.replies.iter().map(|reply| site_reply(reply.as_ref())));
        table.add_row(row);
    }
    let ran_before = operations.iter().any(|replied| {
        let ran = |reply: &Option<SiteReply>| matches!(reply, Some(said) if said.status == "OK");
        replied.left_out_by.is_some() && replied.replies.iter().any(ran)
    });
    let note = "OK beside SUPERSEDED: it ran there before the winner was known.";
    let note = if ran_before { format!("\n{}\n", remark(note)) } else { String::new() };
    format!("  What each site replied to what was done alone:\n{}{note}", laid_out(&table))
}

fn site_reply(reply: Option<&SiteReply>) -> String {
    match reply {
        None => "-".to_owned(),
        Some(SiteReply { status, superseded_by: Some(by) }) => format!("{status}\nby {by}"),
        Some(SiteReply { status, superseded_by: None }) => (*status).to_owned(),
    }
}

fn explained(explained: &Explained, width: usize) -> String {
    let mut table = table(&["", "operation", "type", "at (s)", "made on", "command"], width - 4);
    for one in &explained.operations {
        let mark = if one.counts { "*" } else { "" };
        let on = if one.made_on.is_empty() { "nothing".to_owned() } else { one.made_on.join(", ") };
        let on = if one.replaces { format!("{on}, replaces") } else { on };
        table.add_row([
            mark,
            &one.operation,
            &one.kind,
            &bare_seconds(one.at_ms),
            &on,
            &one.command,
        ]);
    }
    let because = explained
        .because
        .iter()
        .map(|why| format!("    {}", wrapped(why, width.saturating_sub(6)).join("\n      ")));
    let because: Vec<_> = because.collect();
    let (table, sites) = (laid_out(&table), listed(&explained.sites));
    format!("  Why, as {sites} explain it (* counts):\n{table}\n{}\n", because.join("\n"))
}

fn killed(site: &str, at_ms: u64, moment: Moment) -> String {
    let moment = match moment {
        Moment::WorkDoneNotNoted => "its command is done, and not noted yet",
        Moment::WorkNotDone => "before the command had done its work",
        Moment::Idle => "while it had nothing to do",
    };
    let killed = styled(BAD, format!("{site}'s agent is killed"));
    format!("{:>11}  {killed}: {moment}", seconds(at_ms))
}

fn outcome(outcome: &Outcome, width: usize) -> String {
    let Outcome { held, fresh_run, published, .. } = outcome;
    let text = match held.as_slice() {
        [state] if outcome.agrees() => {
            let found = if published.is_some() { ", as the technical report found" } else { "" };
            format!("All three hold `{state}`{found}.")
        }
        [state] => {
            let wanted = published.unwrap_or(fresh_run);
            format!("All three hold `{state}`, and should hold `{wanted}`.")
        }
        states => format!("The sites differ: {}.", listed(states)),
    };
    let style = if outcome.agrees() { GOOD } else { BAD };
    styled(style, paragraph(&text, width))
}

fn remark(text: &str) -> String {
    styled(DIM, format!("    {text}"))
}

/// A table, indented, with room around it.
fn laid_out(table: &comfy_table::Table) -> String {
    let lines = table_lines(table);
    let lines = lines.iter().map(|line| format!("    {}", painted(line, &STATUSES)));
    format!("\n{}\n", lines.collect::<Vec<_>>().join("\n"))
}

/// `1.234 s`.
fn seconds(ms: u64) -> String {
    format!("{} s", bare_seconds(ms))
}

fn bare_seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}
