//! `cheops invite`: a token for another site; which are open, and taking them back.

use cheops_api::{InvitationState, Invite, SiteInvitation};
use clap::Args;

use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::grid::{Cell, Narrow, cell, grid, plain};
use crate::look::{BAD, BOLD, DIM, GOOD, PLAIN, styled};
use crate::output::{Format, VerbOutput};
use crate::time::{ago, now_ms};

const AFTER_HELP: &str = "\
A token serves once, for a day unless `--for` says otherwise, and is shown this once: carry it by a way
that nobody else can read. Only an agent that has the mesh's authority can invite, such as that of `cheops up`.

Examples:
  cheops invite lyon
  cheops invite lyon --for 2h --at paris.example:8078
  cheops invite --list
  cheops invite --revoke 1f0c9a77d2e4b650";

/// Make a token with which another site joins the mesh
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["site", "list", "revoke"]))]
pub(crate) struct Arguments {
    /// The name that the site will have
    #[arg(value_name = "NAME")]
    site: Option<String>,
    /// How long the token serves [default: 1d]
    #[arg(long = "for", value_name = "TIME", value_parser = serves, requires = "site")]
    serves: Option<u64>,
    /// Where the new site finds this one, if not where the others do
    #[arg(long, value_name = "HOST:PORT", requires = "site")]
    at: Option<String>,
    /// Give a site that is known already a new identity, for it lost its own
    #[arg(long, requires = "site")]
    again: bool,
    /// List the invitations that were made here
    #[arg(long)]
    list: bool,
    /// Take an invitation back
    #[arg(long, value_name = "ID")]
    revoke: Option<String>,
}

/// Reads `90s`, `30m`, `12h`, `7d`, as seconds.
fn serves(text: &str) -> Result<u64, String> {
    let wrong = || "a time is a whole number and `s`, `m`, `h` or `d`, such as `12h`".to_owned();
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).ok_or_else(wrong)
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    if let Some(id) = &arguments.revoke {
        return revoke(id, agent, output);
    }
    let Some(site) = &arguments.site else { return list(agent, output) };
    let invite = Invite {
        site: site.clone(),
        seconds: arguments.serves,
        at: arguments.at.clone(),
        again: arguments.again,
    };
    let invited = agent::with(agent, async |client| Ok(client.invite(&invite).await?))?;
    match output.format {
        Format::Json => output.json(&invited)?,
        Format::Table => {
            output.line(styled(GOOD, format!("cheops join {}", invited.token)))?;
            let told = format!(
                "Run this on the machine of {site}. It serves once, until {}; keep it to yourself until \
                 then. `cheops invite --revoke {}` takes it back.",
                invited.invitation.until, invited.invitation.id
            );
            output.aside(styled(DIM, told));
        }
    }
    Ok(Verdict::Fine)
}

fn revoke(id: &str, agent: &AgentTarget, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let revoked = agent::with(agent, async |client| Ok(client.revoke_invitation(id).await?))?;
    match output.format {
        Format::Json => output.json(&revoked)?,
        Format::Table => output.line(format!("the invitation of {} is revoked", revoked.site))?,
    }
    Ok(Verdict::Fine)
}

fn list(agent: &AgentTarget, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let all = agent::with(agent, async |client| Ok(client.invitations().await?))?;
    match output.format {
        Format::Json => output.json(&all)?,
        Format::Table if all.is_empty() => output.line("nobody was invited here")?,
        Format::Table => {
            for line in told(&all, now_ms(), output.room) {
                output.line(line)?;
            }
        }
    }
    Ok(Verdict::Fine)
}

fn told(all: &[SiteInvitation], now_ms: u64, width: usize) -> Vec<String> {
    let header = ["ID", "SITE", "STATE", "MADE", "UNTIL", "ASKED BY"];
    let rows: Vec<Vec<Cell>> = all.iter().map(|invitation| row(invitation, now_ms)).collect();
    grid(&header, &rows, width, Narrow::FirstApart)
}

fn row(invitation: &SiteInvitation, now_ms: u64) -> Vec<Cell> {
    let from = invitation.used_from.as_deref().unwrap_or("an unknown address");
    let (state, style) = match invitation.state {
        InvitationState::Open => ("open".to_owned(), GOOD),
        InvitationState::Used => (format!("used from {from}"), PLAIN),
        InvitationState::Expired => ("over".to_owned(), DIM),
        InvitationState::Revoked => ("revoked".to_owned(), DIM),
        InvitationState::Guessed => ("ended: wrong secrets were tried".to_owned(), BAD),
    };
    vec![
        cell(BOLD, &invitation.id),
        plain(&invitation.site),
        cell(style, state),
        plain(format!("{} ago", ago(&invitation.made, now_ms))),
        plain(&invitation.until),
        cell(DIM, &invitation.asked_by),
    ]
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::grid::bare;

    #[test]
    fn each_invitation_has_a_line() {
        let invitation = |id: &str, state| SiteInvitation {
            id: id.to_owned(),
            site: "lyon".to_owned(),
            state,
            made: "1970-01-01T00:00:00Z".to_owned(),
            until: "1970-01-02T00:00:00Z".to_owned(),
            ended: None,
            asked_by: "uid:1000".to_owned(),
            used_from: Some("10.0.0.2".to_owned()),
        };
        let all = [
            invitation("00000000000000a1", InvitationState::Open),
            invitation("00000000000000a2", InvitationState::Used),
        ];
        expect![[r#"
            ID                SITE  STATE               MADE        UNTIL                 ASKED BY
            00000000000000a1  lyon  open                10 min ago  1970-01-02T00:00:00Z  uid:1000
            00000000000000a2  lyon  used from 10.0.0.2  10 min ago  1970-01-02T00:00:00Z  uid:1000
        "#]]
        .assert_eq(&bare(&told(&all, 600_000, 100)));
    }

    #[test]
    fn a_token_serves_for_seconds_minutes_hours_or_days() {
        let read: Vec<_> = ["90s", "30m", "12h", "7d"].map(serves).into_iter().collect();
        assert_eq!(read, [Ok(90), Ok(1_800), Ok(43_200), Ok(604_800)]);
        for wrong in ["", "7", "d", "1.5h", "7 d", "é", "99999999999999999999d", "1y"] {
            assert!(serves(wrong).is_err(), "{wrong}");
        }
    }
}
