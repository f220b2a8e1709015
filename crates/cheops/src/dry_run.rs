//! `--dry-run`: what would come of something, told before anything is written.

use cheops_api::{Decision, DryRun, Forecast, Replaces, SiteForecast, TriedDecision, WouldFollow};

use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::grid::one_line;
use crate::look::{ACCENT, BAD, BOLD, DIM, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::text::{cut, hanging, listed, printable};

/// Asks the agent, and tells.
pub(crate) fn ask(
    id: &str,
    what: &DryRun,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let forecast = agent::with(agent, async |client| Ok(client.dry_run(id, what).await?))?;
    match output.format {
        Format::Json => output.json(&forecast)?,
        Format::Table => {
            for line in told(&forecast, what, output.room) {
                output.line(line)?;
            }
        }
    }
    let is_refused =
        |other: &SiteForecast| matches!(other.would, WouldFollow::Diverge | WouldFollow::Refuse);
    let fails = forecast.cannot_repair.is_some() || forecast.others.iter().any(is_refused);
    Ok(if fails { Verdict::Problems } else { Verdict::Fine })
}

/// What would be done, and where.
fn done(forecast: &Forecast, what: &DryRun) -> String {
    let sites = listed(&forecast.sites);
    let DryRun::Decide(TriedDecision { operation, decision, site: _ }) = what else {
        return format!("would go to {sites}");
    };
    let operation = printable(operation);
    match decision {
        Decision::Retry | Decision::Rerun => format!("{operation} would run again at {sites}"),
        Decision::Skip => format!("{sites} would go on as if {operation} had happened"),
        Decision::Dismiss => {
            format!("{operation} would be let be at {sites}; nothing would be run")
        }
        Decision::Undo => format!("{operation} would be taken out, or brought back, at {sites}"),
    }
}

fn told(forecast: &Forecast, what: &DryRun, width: usize) -> Vec<String> {
    let name = styled(BOLD, printable(&forecast.resource));
    let mut lines = vec![format!("{name}  as {} sees it; nothing was written", forecast.site)];
    lines.push(hanging("", &done(forecast, what), width));
    if forecast.new_resource {
        lines.push("it would be made: nothing is known of it here".to_owned());
    }
    if forecast.config_replaced {
        lines.push(styled(WARN, "another config would take the place of the one it has"));
    }
    match forecast.replaces {
        Replaces::Nothing => {}
        Replaces::Past => lines.push("would replace all before it".to_owned()),
        Replaces::Force => lines.push("would replace all before it, by force".to_owned()),
    }
    if !forecast.not_connected.is_empty() {
        let text = format!(
            "not connected now: {}; it would get there when it is",
            listed(&forecast.not_connected)
        );
        lines.push(styled(WARN, hanging("", &text, width)));
    }
    if let Some(why) = &forecast.cannot_repair {
        let text = format!("{} could not follow, and would diverge: {why}", forecast.site);
        lines.push(styled(BAD, hanging("", &printable(&text), width)));
    }
    lines.extend(said_elsewhere(forecast, width));
    lines.push(String::new());
    lines.push(styled(BOLD, "would be applied, in this order"));
    if forecast.list.is_empty() {
        lines.push(styled(DIM, "  nothing"));
    }
    for (n, operation) in (1..).zip(&forecast.list) {
        let is_new = forecast.operation.as_ref() == Some(&operation.id);
        let mark = if is_new { "new: " } else { "" };
        let id = if is_new { "this".to_owned() } else { printable(&operation.id) };
        let text = format!("{}: {}", operation.kind, one_line(&operation.summary));
        let room = width.saturating_sub(id.chars().count() + mark.len() + 7);
        lines.push(format!("  {n:2}. {mark}{} {}", styled(ACCENT, &id), cut(&text, room)));
    }
    if !forecast.overridden.is_empty() {
        lines.push(String::new());
        lines.push(styled(BOLD, "would be overridden"));
    }
    for decision in &forecast.overridden {
        let why = decision.sentence.split_once(": ").map_or("", |(_, why)| why);
        let (mut id, mut why) = (printable(&decision.operation), printable(why));
        if let Some(new) = &forecast.operation {
            why = why.replace(new.as_str(), "this");
            if *new == decision.operation {
                id = "this".to_owned();
            }
        }
        lines.push(format!("  {}", styled(ACCENT, id)));
        lines.push(styled(DIM, hanging("    ", &why, width)));
    }
    if !forecast.back.is_empty() {
        lines.push(String::new());
        lines.push(hanging("would count again: ", &forecast.back.join(", "), width));
    }
    lines
}

/// What the other sites would make of it: those that could not follow each with its reason.
fn said_elsewhere(forecast: &Forecast, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let would = |would| forecast.others.iter().filter(move |other| other.would == would);
    let why = |other: &SiteForecast| printable(other.why.as_deref().unwrap_or_default());
    for other in would(WouldFollow::Diverge) {
        let text = format!("{} could not follow, and would diverge: {}", other.site, why(other));
        lines.push(styled(BAD, hanging("", &text, width)));
    }
    for other in would(WouldFollow::Refuse) {
        let text = format!("{} would refuse it: {}", other.site, why(other));
        lines.push(styled(BAD, hanging("", &text, width)));
    }
    for other in would(WouldFollow::Unknown) {
        let text = format!("whether {} could follow is not known: {}", other.site, why(other));
        lines.push(styled(WARN, hanging("", &text, width)));
    }
    let follow: Vec<&str> = would(WouldFollow::Follow).map(|other| other.site.as_str()).collect();
    if !follow.is_empty() {
        lines.push(hanging("", &format!("{} could follow, too", listed(&follow)), width));
    }
    lines
}
