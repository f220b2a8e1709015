//! `cheops operation`: one operation with all that is kept of it.

use cheops_api::{OperationRecord, Payload, RecordedBody, Replaces, ReplyStatus, SiteReply};
use cheops_core::model::OperationId;
use clap::Args;

use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::following::{detail, label, output_told, style_of};
use crate::look::{ACCENT, BOLD, DIM, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::text::{hanging, printable};
use crate::time::{moment, now_ms};

const AFTER_HELP: &str = "\
Also of an operation that was overridden and is needed no more, for `retention` of `[audit]` in the agent's
config. Files and bodies of more than 64 KiB are not kept for that long.

Examples:
  cheops operation paris-5f.7
  cheops operation paris-5f.7 --site lyon --output json";

/// Show one operation: what it does, what sites said of it, and what came with it
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The operation, as `cheops resource` and `cheops history` name it
    #[arg(value_name = "OPERATION")]
    operation: String,
    /// As this site kept it; the agent's own if not given
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let Arguments { operation, site } = arguments;
    operation.parse::<OperationId>().map_err(|error| {
        Failure::caller(error.to_string()).hint("`cheops history ID` names those of a resource")
    })?;
    let record =
        agent::with(agent, async |client| Ok(client.recorded(operation, site.as_deref()).await?))?;
    match output.format {
        Format::Json => output.json(&record)?,
        Format::Table => {
            for line in told(&record, now_ms(), output.room) {
                output.line(line)?;
            }
        }
    }
    Ok(Verdict::Fine)
}

fn told(record: &OperationRecord, now_ms: u64, width: usize) -> Vec<String> {
    let operation = &record.operation;
    let by = operation.asked_by.as_ref().map(|by| format!(" by {}", printable(&by.principal)));
    let replaces = match operation.replaces {
        Replaces::Nothing => "",
        Replaces::Past => ", replaces all before it",
        Replaces::Force => ", forced: replaces all before it",
    };
    let mut lines = vec![
        format!(
            "{}  {} of {}{replaces}",
            styled(ACCENT, printable(&operation.id)),
            printable(&operation.kind),
            styled(BOLD, printable(&record.resource)),
        ),
        format!(
            "submitted at {}{}, {} UTC",
            operation.site,
            by.unwrap_or_default(),
            moment(&operation.time, now_ms)
        ),
    ];
    lines.push(match &operation.left_out {
        None => "applied: it is in the list".to_owned(),
        Some(left_out) => styled(WARN, hanging("overridden: ", &printable(&left_out.why), width)),
    });
    if record.pruned {
        let text = "no site needs it any more; it is kept for reading";
        lines.push(styled(DIM, text));
    }
    if !operation.parents.is_empty() {
        lines.push(styled(DIM, hanging("made on ", &operation.parents.join(", "), width)));
    }
    lines.push(String::new());
    lines.extend(does(&operation.payload, width));
    for body in &record.bodies {
        lines.push(String::new());
        lines.extend(body_told(body, width));
    }
    lines.extend(edits_told(record, width));
    lines.push(String::new());
    if record.said.is_empty() {
        lines.push(styled(DIM, "no site has replied yet"));
    }
    let said = record.said.iter().enumerate();
    // What a site says again is told once.
    let is_new = |(n, said): &(usize, &SiteReply)| {
        let before = record.said[..*n].iter().rev().find(|before| before.site == said.site);
        before.is_none_or(|before| {
            (before.reply.status, &before.reply.output) != (said.reply.status, &said.reply.output)
        })
    };
    lines.extend(said.filter(is_new).flat_map(|(_, said)| reply_told(said, now_ms, width)));
    if record.more_said {
        let text = format!("there may be later replies: cheops history {}", record.resource);
        lines.push(styled(DIM, text));
    }
    lines
}

fn does(payload: &Payload, width: usize) -> Vec<String> {
    match payload {
        Payload::Shell(shell) => {
            let text = hanging("  ", &printable(&shell.command), width);
            text.split('\n').map(str::to_owned).collect()
        }
        Payload::Http(request) => {
            let line = format!("{} {}{}", request.method, request.service, request.path);
            let mut lines = vec![hanging("  ", &printable(&line), width)];
            for header in &request.headers {
                let text = format!("{}: {}", header.name, header.value);
                lines.push(styled(DIM, hanging("  ", &printable(&text), width)));
            }
            lines
        }
    }
}

fn body_told(body: &RecordedBody, width: usize) -> Vec<String> {
    let mut lines = vec![format!("{}, {} bytes", styled(BOLD, printable(&body.name)), body.size)];
    match (&body.text, &body.base64, &body.missing) {
        (Some(text), ..) => lines.extend(output_told(&printable(text), false, width)),
        (None, Some(_), _) => {
            lines.push(styled(DIM, "    it is no text; `--output json` has it in base 64"));
        }
        (None, None, why) => {
            let why = why.as_deref().unwrap_or("it is not kept any more");
            lines.push(styled(DIM, hanging("    ", why, width)));
        }
    }
    lines
}

/// What it made of a document that is merged, and where that is merged.
fn edits_told(record: &OperationRecord, width: usize) -> Vec<String> {
    let Some(last) = record.edits.last() else { return Vec::new() };
    let operation = &record.operation;
    let merged = operation
        .replies
        .iter()
        .filter(|(site, reply)| **site != operation.site && reply.status == ReplyStatus::Ok);
    let merged: Vec<&str> = merged.map(|(site, _)| site.as_str()).collect();
    let what = match last.size {
        0 => "edit that changed nothing".to_owned(),
        size => format!("edit of {size} bytes"),
    };
    let merged = match merged.is_empty() {
        true => "merged nowhere else yet".to_owned(),
        false => format!("merged at {}", merged.join(", ")),
    };
    let mut lines = vec![String::new(), hanging("", &format!("{what}, {merged}"), width)];
    if record.edits.len() > 1 {
        let text = format!(
            "{} ran it {} times, and all that came of it is merged",
            operation.site,
            record.edits.len()
        );
        lines.push(styled(DIM, hanging("", &text, width)));
    }
    lines
}

fn reply_told(said: &SiteReply, now_ms: u64, width: usize) -> Vec<String> {
    let SiteReply { site, reply, .. } = said;
    let status = styled(style_of(reply.status), label(reply.status));
    let detail = detail(reply);
    let detail = if detail.is_empty() { detail } else { format!("  {}", printable(&detail)) };
    let time = styled(DIM, moment(&reply.time, now_ms));
    let mut lines = vec![format!("{time}  {}  {status}{detail}", styled(BOLD, site))];
    let output = printable(reply.output.trim_end());
    if !output.is_empty() {
        lines.extend(output_told(&output, reply.truncated, width));
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cheops_api::{Asker, File, LeftOut, Operation, RecordedEdit, Reply, ShellCommand};
    use expect_test::expect;

    use super::*;
    use crate::grid::bare;

    #[test]
    fn an_operation_is_told_with_its_output_and_files() {
        let file = File { name: "new.conf".to_owned(), size: 8, blob: "00".to_owned() };
        let record = OperationRecord {
            resource: "web".to_owned(),
            operation: Operation {
                id: "site1-1f.12".to_owned(),
                site: "site1".to_owned(),
                kind: "set".to_owned(),
                time: "1970-01-01T00:00:02Z".to_owned(),
                stamp: "2000+0".to_owned(),
                parents: vec!["site2-2.9".to_owned()],
                replaces: Replaces::Past,
                summary: "cp {new.conf} /etc/web.conf".to_owned(),
                payload: Payload::Shell(ShellCommand {
                    command: "cp {new.conf} /etc/web.conf".to_owned(),
                    files: vec![file],
                }),
                counts: false,
                left_out: Some(LeftOut {
                    why: "site2-2.10 was made after it and replaces all before it".to_owned(),
                    by: Some("site2-2.10".to_owned()),
                }),
                replies: BTreeMap::new(),
                asked_by: Some(Asker { principal: "uid:0".to_owned(), site: "site1".to_owned() }),
            },
            noted: "1970-01-01T00:00:02Z".to_owned(),
            pruned: true,
            bodies: vec![RecordedBody {
                name: "new.conf".to_owned(),
                size: 8,
                blob: "00".to_owned(),
                text: Some("a = 1\nb\n".to_owned()),
                base64: None,
                missing: None,
            }],
            edits: Vec::new(),
            said: vec![SiteReply {
                site: "site1".to_owned(),
                operation: "site1-1f.12".to_owned(),
                reply: Reply {
                    status: ReplyStatus::Ko,
                    by: None,
                    done: None,
                    of: None,
                    exit_code: Some(1),
                    http_status: None,
                    limit_ms: None,
                    output: "cp: no room\n".to_owned(),
                    truncated: false,
                    time: "1970-01-01T00:00:03Z".to_owned(),
                },
            }],
            more_said: false,
        };
        expect![[r#"
            site1-1f.12  set of web, replaces all before it
            submitted at site1 by uid:0, 00:00:02 UTC
            overridden: site2-2.10 was made after it and replaces all before it
            no site needs it any more; it is kept for reading
            made on site2-2.9

              cp {new.conf} /etc/web.conf

            new.conf, 8 bytes
                a = 1
                b

            00:00:03  site1  failed  exit code 1
                cp: no room
        "#]]
        .assert_eq(&bare(&told(&record, 9_000, 80)));
    }

    fn replied(status: ReplyStatus) -> Reply {
        Reply {
            status,
            by: None,
            done: None,
            of: None,
            exit_code: Some(0),
            http_status: None,
            limit_ms: None,
            output: String::new(),
            truncated: false,
            time: "1970-01-01T00:00:03Z".to_owned(),
        }
    }

    #[test]
    fn an_edit_is_told_with_its_size_and_where_it_is_merged() {
        let edit = |size| RecordedEdit { made_by: "7".to_owned(), size, base64: String::new() };
        let told_of = |edits: Vec<RecordedEdit>, replies: &[(&str, ReplyStatus)]| {
            let replied =
                |(site, status): &(&str, ReplyStatus)| ((*site).to_owned(), replied(*status));
            let record = OperationRecord {
                resource: "notes".to_owned(),
                operation: Operation {
                    id: "site1-1f.12".to_owned(),
                    site: "site1".to_owned(),
                    kind: "edit".to_owned(),
                    time: "1970-01-01T00:00:02Z".to_owned(),
                    stamp: "2000+0".to_owned(),
                    parents: Vec::new(),
                    replaces: Replaces::Nothing,
                    summary: String::new(),
                    payload: Payload::Shell(ShellCommand {
                        command: "sed -i s/a/b/ notes".to_owned(),
                        files: Vec::new(),
                    }),
                    counts: true,
                    left_out: None,
                    replies: replies.iter().map(replied).collect(),
                    asked_by: None,
                },
                noted: "1970-01-01T00:00:02Z".to_owned(),
                pruned: false,
                bodies: Vec::new(),
                edits,
                said: Vec::new(),
                more_said: false,
            };
            bare(&edits_told(&record, 80))
        };
        let (ok, ko) = (ReplyStatus::Ok, ReplyStatus::Ko);
        for (edits, replies, expected) in [
            (vec![], &[("site1", ko)][..], "\n"),
            (vec![edit(61)], &[("site1", ok)], "\nedit of 61 bytes, merged nowhere else yet\n"),
            (
                vec![edit(61)],
                &[("site1", ok), ("site2", ok), ("site3", ok)],
                "\nedit of 61 bytes, merged at site2, site3\n",
            ),
            (
                vec![edit(0)],
                &[("site1", ok), ("site2", ok)],
                "\nedit that changed nothing, merged at site2\n",
            ),
            (
                vec![edit(61), edit(62)],
                &[("site1", ok), ("site2", ok)],
                "\nedit of 62 bytes, merged at site2\n\
                 site1 ran it 2 times, and all that came of it is merged\n",
            ),
        ] {
            assert_eq!(told_of(edits, replies), expected);
        }
    }
}
