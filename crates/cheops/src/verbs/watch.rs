//! `cheops watch`: changes as they happen, over broken connections too.

use std::time::Duration;

use cheops_api::{Change, Client, ClientError, NumberedChange};
use clap::Args;

use super::history::told_beside;
use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::following::{detail, label, style_of};
use crate::grid::one_line;
use crate::handing::check_resource;
use crate::look::{ACCENT, BAD, BOLD, DIM, GOOD, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::text::{counted, cut, printable};
use crate::time::{moment, now_ms, span};

const AFTER_HELP: &str = "\
Goes on until it is interrupted. After a broken connection it goes on where it was: nothing is
missed and nothing told twice, as long as the agent still keeps what happened meanwhile.

Examples:
  cheops watch
  cheops watch counter
  cheops watch --after 0 --output json | jq .event";

/// How long to wait before the agent is tried again: longer each time, up to a second.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The status of a place in the feed that is not kept any more.
const GONE: u16 = 410;

/// Follow changes live: operations, replies, sites that come and go
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Only changes of this resource
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Begin after the change of this number; 0 begins with the oldest that is kept
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let id = arguments.id.as_deref();
    id.map_or(Ok(()), check_resource)?;
    agent::with(agent, async |client| watch(&client, id, arguments.after, output).await)
}

async fn watch(
    client: &Client,
    id: Option<&str>,
    mut after: Option<u64>,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let mut changes = client.changes(id, after).await?;
    loop {
        let ended = loop {
            match changes.next().await {
                Ok(Some(change)) if after.is_some_and(|last| change.id <= last) => {}
                Ok(Some(change)) => {
                    after = Some(change.id);
                    tell(&change, output)?;
                    if output.is_closed() {
                        return Ok(Verdict::Fine);
                    }
                }
                Ok(None) => break None,
                Err(error @ ClientError::Broken { .. }) => return Err(error.into()),
                Err(error) => break Some(error),
            }
        };
        let why = ended.map(|error| format!(": {error}")).unwrap_or_default();
        output.aside(styled(DIM, format!("the agent is gone{why}; trying again")));
        changes = again(client, id, &mut after, output).await?;
        output.aside(styled(DIM, "the agent is back"));
    }
}

/// Tries until the agent is back.
async fn again(
    client: &Client,
    id: Option<&str>,
    after: &mut Option<u64>,
    output: &mut VerbOutput,
) -> Result<cheops_api::Changes, Failure> {
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        match client.changes(id, *after).await {
            Ok(changes) => return Ok(changes),
            Err(ClientError::Refused(problem)) if problem.status == GONE => {
                let remark = "some changes are missing: the agent does not keep them any more";
                output.aside(styled(WARN, remark));
                *after = None;
            }
            Err(ClientError::Refused(problem)) if (400..500).contains(&problem.status) => {
                return Err(ClientError::Refused(problem).into());
            }
            Err(_not_yet) => {}
        }
    }
}

fn tell(change: &NumberedChange, output: &mut VerbOutput) -> Result<(), Failure> {
    match output.format {
        Format::Json => output.json_line(change)?,
        Format::Table => {
            output.line(line(change, now_ms(), output.room))?;
        }
    }
    Ok(())
}

/// What changed and when, in a line. It may be long ago: told late, or asked for with `--after`.
fn line(change: &NumberedChange, now_ms: u64, width: usize) -> String {
    let time = styled(DIM, moment(&change.at, now_ms) + "Z");
    format!("{time}  {}", told(&change.change, width))
}

/// What changed, in a line.
fn told(change: &Change, width: usize) -> String {
    let bold = |text: &str| styled(BOLD, printable(text));
    let name = |text: &str| styled(ACCENT, printable(text));
    // The rest of a line after what has colours: cut off so that the line stays one.
    let rest = |text: &str| cut(&one_line(text), width / 2);
    match change {
        Change::Operation { resource, operation, kind, summary, .. } => {
            format!("{}  {} {kind}: {}", bold(resource), name(operation), rest(summary))
        }
        Change::Reply { resource, operation, site, beside: Some(beside), .. } => {
            let said = told_beside(operation, site, beside, width / 2);
            format!("{}  {said}", bold(resource))
        }
        Change::Reply { resource, operation, site, reply, beside: None } => {
            let status = styled(style_of(reply.status), label(reply.status));
            let detail = detail(reply);
            let output = if detail.is_empty() { &reply.output } else { &detail };
            let said = format!("{} {status}  {}", bold(site), rest(output));
            format!("{}  {} {}", bold(resource), name(operation), said.trim_end())
        }
        Change::PartialError { resource, operation } => {
            let what = styled(BAD, "failed at some sites and not at others");
            format!("{}  {} {what}", bold(resource), name(operation))
        }
        Change::Settled { resource, operation } => {
            format!("{}  {} {}", bold(resource), name(operation), styled(DIM, "every site replied"))
        }
        Change::InDoubt { resource, operation } => {
            let what = styled(WARN, "has an unknown result here: it may or may not have happened");
            format!("{}  {} {what}", bold(resource), name(operation))
        }
        Change::Diverged { resource, why } => {
            format!("{}  {}: {}", bold(resource), styled(BAD, "diverged"), one_line(why))
        }
        Change::Differs { resource } => {
            let what = styled(BAD, "sites differ");
            format!("{}  {what}: `cheops diff {resource}` shows where", bold(resource))
        }
        Change::Warning { resource, why } => {
            format!("{}  {}", bold(resource), styled(WARN, one_line(why)))
        }
        Change::Converged { resource } => {
            format!("{}  {}", bold(resource), styled(GOOD, "in sync"))
        }
        Change::SiteDown { site } => format!("{} {}", bold(site), styled(WARN, "is not connected")),
        Change::SiteUp { site } => format!("{} {}", bold(site), styled(GOOD, "is connected")),
        Change::SiteLostDisk { site } => {
            format!("{} {}", bold(site), styled(WARN, "came back without its memory"))
        }
        Change::StrangeClock { resource, operation, ahead_ms } => {
            let ahead = span(Duration::from_millis(*ahead_ms));
            let what = styled(WARN, format!("is stamped {ahead} ahead of this site's clock"));
            format!("{}  {} {what}", bold(resource), name(operation))
        }
        Change::Pruned { resource, entries } => {
            let what = styled(DIM, format!("{entries} entries that nobody needs were forgotten"));
            format!("{}  {what}", bold(resource))
        }
        Change::LeftOut { resource, decisions } => {
            let what = counted(decisions.len(), "overridden operation");
            let what = styled(DIM, format!("why {what} lost: `cheops history`"));
            format!("{}  {what}", bold(resource))
        }
        Change::Malformed { site, why } => {
            let what = styled(WARN, "sent something that cannot be");
            format!("{} {what}: {}", bold(site), one_line(why))
        }
        Change::SetApart { site, key } => {
            let what = styled(BAD, "signed two entries that cannot both be its word");
            format!("{} {what}, and is set apart (key {})", bold(site), one_line(key))
        }
        Change::SharedIdentity { site, seen } => {
            let what = styled(BAD, "is two agents at once");
            format!("{} {what}: {}", bold(site), one_line(seen))
        }
        // Never told to who does not ask for it, as this does not.
        Change::Standing { resource } => format!("{}  stands otherwise", bold(resource)),
        Change::Asked { resource, principal, site, what } => {
            let about = resource.as_deref().map(|it| format!("{}  ", bold(it))).unwrap_or_default();
            format!("{about}{} at {}: {}", rest(principal), bold(site), rest(what))
        }
    }
}

#[cfg(test)]
mod tests {
    use cheops_api::{Reply, ReplyStatus};
    use expect_test::expect;

    use super::*;
    use crate::grid::bare;

    #[test]
    fn a_change_is_told_with_the_time_at_which_it_happened() {
        let change = NumberedChange {
            id: 7,
            at: "2023-11-14T22:13:20.123Z".to_owned(),
            change: Change::SiteDown { site: "lyon".to_owned() },
        };
        let the_same_day = 1_700_000_000_000;
        for (now_ms, expected) in [
            (the_same_day, "22:13:20Z  lyon is not connected\n"),
            (the_same_day + 86_400_000, "2023-11-14 22:13:20Z  lyon is not connected\n"),
        ] {
            assert_eq!(bare(&[line(&change, now_ms, 80)]), expected);
        }
    }

    #[test]
    fn each_change_is_a_line() {
        let reply = |status, by: Option<&str>, output: &str| Reply {
            status,
            by: by.map(str::to_owned),
            done: None,
            of: None,
            exit_code: None,
            http_status: None,
            limit_ms: None,
            output: output.to_owned(),
            truncated: false,
            time: String::new(),
        };
        let (resource, operation, site) =
            ("counter".to_owned(), "paris-5f.7".to_owned(), "lyon".to_owned());
        let replied = |reply| Change::Reply {
            resource: "counter".to_owned(),
            operation: "paris-5f.7".to_owned(),
            site: "lyon".to_owned(),
            reply,
            beside: None,
        };
        let changes = [
            Change::Operation {
                resource: resource.clone(),
                operation: operation.clone(),
                site: "paris".to_owned(),
                kind: "set".to_owned(),
                summary: "redis-cli set x 29".to_owned(),
                time: String::new(),
                asked_by: None,
            },
            replied(reply(ReplyStatus::Ok, None, "a\nb\n")),
            replied(reply(ReplyStatus::Superseded, Some("lyon-2.1"), "")),
            Change::PartialError { resource: resource.clone(), operation: operation.clone() },
            Change::Settled { resource: resource.clone(), operation: operation.clone() },
            Change::InDoubt { resource: resource.clone(), operation: operation.clone() },
            Change::Diverged { resource: resource.clone(), why: "no way back".to_owned() },
            Change::Converged { resource: resource.clone() },
            Change::SiteDown { site: site.clone() },
            Change::SiteUp { site: site.clone() },
            Change::SiteLostDisk { site: site.clone() },
            Change::StrangeClock { resource: resource.clone(), operation, ahead_ms: 7_200_000 },
            Change::Pruned { resource, entries: 12 },
            Change::Malformed { site, why: "more entries than the limit".to_owned() },
        ];
        let lines: Vec<String> = changes.iter().map(|change| told(change, 80)).collect();
        expect![[r#"
            counter  paris-5f.7 set: redis-cli set x 29
            counter  paris-5f.7 lyon OK  a ⏎ b
            counter  paris-5f.7 lyon overridden  lyon-2.1 took its place
            counter  paris-5f.7 failed at some sites and not at others
            counter  paris-5f.7 every site replied
            counter  paris-5f.7 has an unknown result here: it may or may not have happened
            counter  diverged: no way back
            counter  in sync
            lyon is not connected
            lyon is connected
            lyon came back without its memory
            counter  paris-5f.7 is stamped 2 h ahead of this site's clock
            counter  12 entries that nobody needs were forgotten
            lyon sent something that cannot be: more entries than the limit
        "#]]
        .assert_eq(&bare(&lines));
    }
}
