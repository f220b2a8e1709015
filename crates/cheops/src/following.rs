//! Following an operation that was submitted: each site's reply as it arrives, and in the end
//! whether what was asked happened.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anstyle::Style;
use cheops_api::{Lines, Reply, ReplyStatus, SiteReply, SubmitEvent, Wait};

use crate::failure::{Failure, Verdict};
use crate::grid::one_line;
use crate::interrupt::EndSignals;
use crate::look::{ACCENT, BAD, BOLD, DIM, GOOD, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::shell::joined;
use crate::text::{columns, counted, cut, hanging, listed, pasted, printable};
use crate::time::span;

/// More of what a command printed is rarely read.
const MAX_OUTPUT_LINES: usize = 10;
/// How often the status line says how long it has been.
const TICK: Duration = Duration::from_millis(200);
/// What is printed in less time needs no status line.
const SOON: Duration = Duration::from_millis(400);

/// Prints what is heard until all is said.
pub(crate) async fn follow(
    mut events: Lines<SubmitEvent>,
    wait: Wait,
    started: Instant,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let mut tally = ReplyTally::new(wait);
    let mut signals = EndSignals::listen()?;
    loop {
        let event = tokio::select! {
            event = next(&mut events, &tally, started, output) => event?,
            () = signals.come() => {
                tally.goes_on(output.width).into_iter().for_each(|line| output.aside(line));
                return Ok(Verdict::Interrupted);
            }
        };
        let Some(event) = event else { break };
        match output.format {
            Format::Json => output.json_line(&event)?,
            Format::Table => {
                for line in tally.told(&event, started.elapsed(), output.room) {
                    output.line(line)?;
                }
                for warning in warnings(&event, output.width) {
                    output.aside(warning);
                }
            }
        }
        tally.hear(event);
    }
    if tally.ending.is_none() {
        return Err(Failure::away("the agent stopped before all was said")
            .hint("what was accepted goes on; ask again once the agent is back"));
    }
    if output.format == Format::Table {
        for remark in tally.remarks(output.width) {
            output.aside(styled(DIM, remark));
        }
    }
    Ok(tally.verdict())
}

/// What is accepted and probably not meant.
fn warnings(event: &SubmitEvent, width: usize) -> Vec<String> {
    let SubmitEvent::Accepted { warnings, .. } = event else { return Vec::new() };
    let told = warnings.iter().map(|warning| hanging("warning: ", &printable(warning), width));
    told.map(|text| text.replacen("warning:", &styled(WARN, "warning:"), 1)).collect()
}

/// The next event; while it does not come, the status line says who is awaited.
async fn next(
    events: &mut Lines<SubmitEvent>,
    tally: &ReplyTally,
    started: Instant,
    output: &mut VerbOutput,
) -> Result<Option<SubmitEvent>, Failure> {
    let mut next = std::pin::pin!(events.next());
    loop {
        tokio::select! {
            event = &mut next => return Ok(event?),
            () = tokio::time::sleep(TICK) => {
                let elapsed = started.elapsed();
                if elapsed > SOON {
                    output.status(&tally.status(elapsed));
                }
            }
        }
    }
}

/// What was heard so far.
#[derive(Debug)]
struct ReplyTally {
    wait: Wait,
    accepted: Option<Accepted>,
    replies: BTreeMap<String, ReplyStatus>,
    ending: Option<FollowEnding>,
}

#[derive(Debug)]
struct Accepted {
    operation: String,
    resource: String,
    sites: Vec<String>,
    site: String,
    config_replaced: bool,
}

#[derive(Debug)]
enum FollowEnding {
    Done,
    TimedOut,
}

impl ReplyTally {
    fn new(wait: Wait) -> Self {
        Self { wait, accepted: None, replies: BTreeMap::new(), ending: None }
    }

    fn hear(&mut self, event: SubmitEvent) {
        match event {
            SubmitEvent::Accepted { operation, resource, sites, site, config_replaced, .. } => {
                self.accepted =
                    Some(Accepted { operation, resource, sites, site, config_replaced });
            }
            SubmitEvent::Reply(SiteReply { site, reply, .. }) => {
                self.replies.insert(site, reply.status);
            }
            SubmitEvent::Done => self.ending = Some(FollowEnding::Done),
            SubmitEvent::TimedOut { .. } => self.ending = Some(FollowEnding::TimedOut),
        }
    }

    /// Sites that are waited for and have not replied.
    fn awaited(&self) -> Vec<&str> {
        let Some(accepted) = &self.accepted else { return Vec::new() };
        let sites = accepted.sites.iter().map(String::as_str);
        let is_awaited = |site: &str| match self.wait {
            Wait::All => true,
            Wait::Local => site == accepted.site,
            Wait::None => false,
        };
        sites.filter(|site| is_awaited(site) && !self.replies.contains_key(*site)).collect()
    }

    fn status(&self, elapsed: Duration) -> String {
        let awaited = self.awaited();
        let time = span(elapsed);
        match (&self.accepted, awaited.as_slice()) {
            (None, _) => format!("submitting … {time}"),
            (Some(_), []) => format!("waiting … {time}"),
            (Some(_), sites) => format!("waiting for {} … {time}", listed(sites)),
        }
    }

    /// What to tell somebody who does not want to wait any longer.
    fn goes_on(&self, width: usize) -> Vec<String> {
        let Some(Accepted { operation, resource, .. }) = &self.accepted else {
            return vec!["stopped before the agent accepted it; nothing was submitted".to_owned()];
        };
        let who = match self.awaited().as_slice() {
            [] => String::new(),
            [only] => format!("; {only} has not replied yet"),
            sites => format!("; {} have not replied yet", listed(sites)),
        };
        let id = joined(std::slice::from_ref(resource));
        vec![
            hanging(
                "no longer waiting: ",
                &format!("`{operation}` is accepted and goes on{who}"),
                width,
            ),
            styled(DIM, hanging("look: ", &format!("cheops resource {id}"), width)),
        ]
    }

    fn verdict(&self) -> Verdict {
        if self.replies.values().any(|status| *status != ReplyStatus::Ok) {
            return Verdict::Problems;
        }
        match &self.ending {
            Some(FollowEnding::Done) if self.awaited().is_empty() => Verdict::Fine,
            _ => Verdict::Missing,
        }
    }

    fn told(&self, event: &SubmitEvent, elapsed: Duration, width: usize) -> Vec<String> {
        match event {
            SubmitEvent::Accepted { operation, site, .. } => {
                let at = styled(DIM, cut(&format!("accepted at {site}"), width.saturating_sub(2)));
                let fits = columns(operation) + columns(site) + 13 <= width;
                let between = if fits { " " } else { "\n  " };
                vec![format!("{}{between}{at}", styled(ACCENT, operation))]
            }
            SubmitEvent::Reply(said) => {
                let sites = self.accepted.iter().flat_map(|accepted| &accepted.sites);
                let longest = sites.chain([&said.site]).map(|site| columns(site)).max();
                reply_told(said, elapsed, longest.unwrap_or_default(), width)
            }
            SubmitEvent::Done => Vec::new(),
            SubmitEvent::TimedOut { missing } => {
                let mark = styled(WARN, "…");
                missing
                    .iter()
                    .map(|site| {
                        let site = cut(site, width.saturating_sub(11));
                        format!("{mark} {} {}", styled(BOLD, site), styled(WARN, "no reply"))
                    })
                    .collect()
            }
        }
    }

    /// What to do about what did not happen, and what happened beside.
    fn remarks(&self, width: usize) -> Vec<String> {
        let Some(accepted) = &self.accepted else { return Vec::new() };
        let Accepted { operation, resource, .. } = accepted;
        let id = joined(std::slice::from_ref(resource));
        let at = |status| -> Vec<&String> {
            self.replies.iter().filter(|(_, said)| **said == status).map(|(site, _)| site).collect()
        };
        let mut remarks = Vec::new();
        if accepted.config_replaced {
            let resource = printable(resource);
            remarks.push(hanging("", &format!("the config of `{resource}` is replaced"), width));
        }
        if !at(ReplyStatus::Superseded).is_empty() {
            let why = format!("cheops explain {id}");
            remarks.push(hanging("another operation took its place: ", &why, width));
        }
        for site in at(ReplyStatus::InDoubt) {
            remarks.push("settle it:".to_owned());
            let settle = format!("cheops settle {id} {operation} skip --site {site}");
            remarks.extend(pasted(&settle, "or: rerun", width));
        }
        if !at(ReplyStatus::Ko).is_empty() {
            remarks.push("what can be done about it: cheops status".to_owned());
        }
        if let Some(FollowEnding::TimedOut) = &self.ending {
            remarks.push(hanging("the work goes on: ", &format!("cheops resource {id}"), width));
        }
        remarks
    }
}

/// A status in the words for people.
pub(crate) fn label(status: ReplyStatus) -> &'static str {
    match status {
        ReplyStatus::Ok => "OK",
        ReplyStatus::Ko => "failed",
        ReplyStatus::Superseded => "overridden",
        ReplyStatus::InDoubt => "unknown result",
        ReplyStatus::Partial => "in part",
    }
}

/// How good a status is.
pub(crate) fn style_of(status: ReplyStatus) -> Style {
    match status {
        ReplyStatus::Ok => GOOD,
        ReplyStatus::Ko => BAD,
        ReplyStatus::Superseded | ReplyStatus::InDoubt | ReplyStatus::Partial => WARN,
    }
}

/// One site's reply in a line, and what it printed.
fn reply_told(said: &SiteReply, elapsed: Duration, longest: usize, width: usize) -> Vec<String> {
    let SiteReply { site, reply, .. } = said;
    let style = style_of(reply.status);
    let mark = if reply.status == ReplyStatus::Ok { "✓" } else { "✗" };
    let (word, time) = (label(reply.status), span(elapsed));
    // Names that are too long stand in nobody's way.
    let longest = longest.min(width.saturating_sub(27).max(1));
    let name = cut(site, longest);
    let blanks = " ".repeat(longest.saturating_sub(columns(&name)));
    let mut head = format!(
        "{style}{mark}{style:#} {BOLD}{name}{BOLD:#}{blanks}  {style}{word:14}{style:#}  \
         {DIM}{time:>7}{DIM:#}"
    );
    let used = longest + 27;
    let detail = detail(reply);
    let text = printable(reply.output.trim_end());
    let fits = |text: &str| used + columns(&detail) + columns(text) + 4 <= width;
    if !detail.is_empty() {
        let is_beside = used + columns(&detail) + 2 <= width;
        let between = if is_beside { "  " } else { "\n    " };
        let detail = cut(&detail, width.saturating_sub(4));
        head.push_str(&format!("{between}{style}{detail}{style:#}"));
    }
    if text.is_empty() {
        return vec![head];
    }
    if !text.contains('\n') && fits(&text) && !reply.truncated {
        return vec![format!("{head}  {text}")];
    }
    let mut lines = vec![head];
    lines.extend(output_told(&text, reply.truncated, width));
    lines
}

/// What was printed, indented; not all of it if it is long.
pub(crate) fn output_told(text: &str, truncated: bool, width: usize) -> Vec<String> {
    let all: Vec<&str> = text.lines().collect();
    let shown = all.iter().take(MAX_OUTPUT_LINES);
    let mut lines: Vec<String> = shown
        .map(|line| format!("    {}", cut(&one_line(line), width.saturating_sub(4))))
        .collect();
    if all.len() > MAX_OUTPUT_LINES {
        let more = counted(all.len() - MAX_OUTPUT_LINES, "more line");
        lines.push(styled(DIM, format!("    … {more}; `--output json` has them")));
    }
    if truncated {
        lines.push(styled(DIM, "    … and more that the site did not keep"));
    }
    lines
}

/// What the status does not say.
pub(crate) fn detail(reply: &Reply) -> String {
    match reply {
        Reply { status: ReplyStatus::Superseded, by: Some(by), .. } => {
            format!("{by} took its place")
        }
        Reply { status: ReplyStatus::InDoubt, .. } => "the site stopped while it ran".to_owned(),
        Reply { status: ReplyStatus::Partial, done: Some(done), of: Some(of), .. } => {
            format!("{done} of {of} steps")
        }
        Reply { http_status: Some(status), .. } => format!("HTTP {status}"),
        Reply { limit_ms: Some(limit), .. } => {
            format!("ended at its time limit of {}", span(Duration::from_millis(*limit)))
        }
        Reply { exit_code: Some(code), .. } if *code != 0 => format!("exit code {code}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::grid::bare;

    fn reply(status: ReplyStatus) -> Reply {
        Reply {
            status,
            by: None,
            done: None,
            of: None,
            exit_code: None,
            http_status: None,
            limit_ms: None,
            output: String::new(),
            truncated: false,
            time: "2026-01-02T03:04:05.678Z".to_owned(),
        }
    }

    fn said(site: &str, reply: Reply) -> SubmitEvent {
        SubmitEvent::Reply(SiteReply {
            site: site.to_owned(),
            operation: "paris-5f.7".to_owned(),
            reply,
        })
    }

    fn accepted() -> SubmitEvent {
        SubmitEvent::Accepted {
            operation: "paris-5f.7".to_owned(),
            resource: "my counter".to_owned(),
            sites: ["lyon", "nice", "paris"].map(str::to_owned).into(),
            site: "paris".to_owned(),
            config_replaced: false,
            warnings: Vec::new(),
        }
    }

    /// All that is printed, remarks last, and the verdict.
    fn played(wait: Wait, events: Vec<SubmitEvent>) -> (String, Verdict) {
        let mut tally = ReplyTally::new(wait);
        let mut lines = Vec::new();
        for (n, event) in (1..).zip(events) {
            lines.extend(tally.told(&event, Duration::from_millis(n * 7), 80));
            tally.hear(event);
        }
        lines.extend(tally.remarks(80));
        (bare(&lines), tally.verdict())
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_whatever_sites_are_called() {
        let long = "edge-cluster-東京-550e8400-e29b-41d4-a716-446655440000";
        for width in [60, 80, 120] {
            let mut tally = ReplyTally::new(Wait::All);
            let event = SubmitEvent::Accepted {
                operation: format!("{long}-5f.7"),
                resource: "550e8400-e29b-41d4-a716-446655440000".to_owned(),
                sites: vec![long.to_owned()],
                site: long.to_owned(),
                config_replaced: true,
                warnings: Vec::new(),
            };
            let mut lines = tally.told(&event, Duration::from_millis(1), width);
            tally.hear(event);
            let failed = Reply {
                exit_code: Some(1),
                output: "設\u{202e}定を\u{1b}[2J".repeat(20),
                ..reply(ReplyStatus::Ko)
            };
            let by = Some(format!("{long}-5f.8"));
            for reply in [
                failed,
                Reply { by, ..reply(ReplyStatus::Superseded) },
                reply(ReplyStatus::InDoubt),
            ] {
                let event = said(long, reply);
                lines.extend(tally.told(&event, Duration::from_millis(7), width));
                tally.hear(event);
            }
            let missing = SubmitEvent::TimedOut { missing: vec![long.to_owned()] };
            lines.extend(tally.told(&missing, Duration::from_millis(7), width));
            tally.hear(missing);
            lines.extend(tally.remarks(width));
            lines.extend(tally.goes_on(width));
            let text = bare(&lines);
            // A command that is pasted has its words whole.
            let is_wide = |line: &&str| columns(line) > width && !line.starts_with("      ");
            let wide: Vec<_> = text.lines().filter(is_wide).collect();
            assert!(wide.is_empty(), "{width}: {wide:?}\n{text}");
            assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text}");
        }
    }

    #[test]
    fn a_config_that_takes_the_place_of_another_is_not_passed_over() {
        let mut event = accepted();
        if let SubmitEvent::Accepted { config_replaced, .. } = &mut event {
            *config_replaced = true;
        }
        let (text, verdict) = played(Wait::None, vec![event, SubmitEvent::Done]);
        assert!(text.contains("the config of `my counter` is replaced\n"), "{text}");
        assert_eq!(verdict, Verdict::Fine);
    }

    #[test]
    fn whoever_does_not_want_to_wait_is_told_that_it_goes_on_and_where_to_look() {
        let mut tally = ReplyTally::new(Wait::All);
        assert!(bare(&tally.goes_on(80)).contains("nothing was submitted"));
        tally.hear(accepted());
        tally.hear(said("paris", reply(ReplyStatus::Ok)));
        expect![[r#"
            no longer waiting: `paris-5f.7` is accepted and goes on; lyon and nice have not
                               replied yet
            look: cheops resource 'my counter'
        "#]]
        .assert_eq(&bare(&tally.goes_on(80)));
    }

    #[test]
    fn what_is_probably_not_meant_is_told_at_once() {
        let mut event = accepted();
        if let SubmitEvent::Accepted { warnings, .. } = &mut event {
            warnings.push("the matrix does not list the type `incr`; did you mean `inc`?".into());
        }
        expect![[r#"
            warning: the matrix does not list the
                     type `incr`; did you mean
                     `inc`?
        "#]]
        .assert_eq(&bare(&warnings(&event, 40)));
        assert!(warnings(&SubmitEvent::Done, 40).is_empty());
    }

    #[test]
    fn replies_are_told_as_they_come() {
        let many: Vec<String> = (1..=12).map(|n| format!("line {n}")).collect();
        let (text, verdict) = played(
            Wait::All,
            vec![
                accepted(),
                said("paris", Reply { output: "29\n".to_owned(), ..reply(ReplyStatus::Ok) }),
                said(
                    "lyon",
                    Reply {
                        exit_code: Some(1),
                        output: many.join("\n"),
                        truncated: true,
                        ..reply(ReplyStatus::Ko)
                    },
                ),
                said(
                    "nice",
                    Reply { by: Some("lyon-2.1".to_owned()), ..reply(ReplyStatus::Superseded) },
                ),
                SubmitEvent::Done,
            ],
        );
        expect![[r#"
            paris-5f.7 accepted at paris
            ✓ paris  OK                14 ms  29
            ✗ lyon   failed            21 ms  exit code 1
                line 1
                line 2
                line 3
                line 4
                line 5
                line 6
                line 7
                line 8
                line 9
                line 10
                … 2 more lines; `--output json` has them
                … and more that the site did not keep
            ✗ nice   overridden        28 ms  lyon-2.1 took its place
            another operation took its place: cheops explain 'my counter'
            what can be done about it: cheops status
        "#]]
        .assert_eq(&text);
        assert_eq!(verdict, Verdict::Problems);
    }

    #[test]
    fn what_a_status_does_not_say_stands_beside_it() {
        let (text, verdict) = played(
            Wait::All,
            vec![
                accepted(),
                said("paris", reply(ReplyStatus::InDoubt)),
                said("lyon", Reply { done: Some(2), of: Some(5), ..reply(ReplyStatus::Partial) }),
                said(
                    "nice",
                    Reply {
                        http_status: Some(409),
                        output: "{\"error\": \"taken\"}".to_owned(),
                        ..reply(ReplyStatus::Ko)
                    },
                ),
                SubmitEvent::Done,
            ],
        );
        expect![[r#"
            paris-5f.7 accepted at paris
            ✗ paris  unknown result    14 ms  the site stopped while it ran
            ✗ lyon   in part           21 ms  2 of 5 steps
            ✗ nice   failed            28 ms  HTTP 409  {"error": "taken"}
            settle it:
              cheops settle 'my counter' paris-5f.7 skip --site paris    # or: rerun
            what can be done about it: cheops status
        "#]]
        .assert_eq(&text);
        assert_eq!(verdict, Verdict::Problems);
    }

    #[test]
    fn who_is_missing_is_named() {
        let (text, verdict) = played(
            Wait::All,
            vec![
                accepted(),
                said("paris", reply(ReplyStatus::Ok)),
                SubmitEvent::TimedOut { missing: vec!["lyon".to_owned(), "nice".to_owned()] },
            ],
        );
        expect![[r#"
            paris-5f.7 accepted at paris
            ✓ paris  OK                14 ms
            … lyon no reply
            … nice no reply
            the work goes on: cheops resource 'my counter'
        "#]]
        .assert_eq(&text);
        assert_eq!(verdict, Verdict::Missing);
    }

    #[test]
    fn all_is_well_only_if_everyone_waited_for_said_so() {
        let ok = |site| said(site, reply(ReplyStatus::Ok));
        let done = || SubmitEvent::Done;
        let verdict = |wait, events| played(wait, events).1;
        assert_eq!(
            verdict(Wait::All, vec![accepted(), ok("paris"), ok("lyon"), ok("nice"), done()]),
            Verdict::Fine
        );
        assert_eq!(verdict(Wait::All, vec![accepted(), ok("paris"), done()]), Verdict::Missing);
        assert_eq!(verdict(Wait::Local, vec![accepted(), ok("paris"), done()]), Verdict::Fine);
        assert_eq!(verdict(Wait::Local, vec![accepted(), ok("lyon"), done()]), Verdict::Missing);
        assert_eq!(verdict(Wait::None, vec![accepted(), done()]), Verdict::Fine);
    }

    #[test]
    fn the_status_line_names_who_is_awaited() {
        let mut tally = ReplyTally::new(Wait::All);
        assert_eq!(tally.status(Duration::from_secs(1)), "submitting … 1.0 s");
        tally.hear(accepted());
        tally.hear(said("paris", reply(ReplyStatus::Ok)));
        assert_eq!(tally.status(Duration::from_secs(3)), "waiting for lyon and nice … 3.0 s");
    }
}
