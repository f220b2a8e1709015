//! `cheops open`: a link that lets a browser in.

use clap::Args;
use serde_json::json;

use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::look::{DIM, GOOD, styled};
use crate::output::{Format, VerbOutput};

const AFTER_HELP: &str = "\
The browser gets a cookie that lets it in for twelve hours, with the rights of whoever made the link.

Examples:
  cheops open
  cheops open --agent unix:/run/cheops/api.sock
  firefox \"$(cheops open --output json | jq -r .url)\"";

/// Print a link that opens the agent's page in a browser, once
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {}

pub(crate) fn run(
    _arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let (address, link) =
        agent::with(agent, async |client| Ok((client.address(), client.login_link().await?)))?;
    // Whoever reached the agent by an address will reach its page there as well.
    let url = match address.starts_with("http") {
        true => format!("{address}{}", link.path),
        false => link.url,
    };
    match output.format {
        Format::Json => output.json(&json!({ "url": url, "seconds": link.seconds }))?,
        Format::Table => {
            output.line(styled(GOOD, url))?;
            let told = match link.seconds {
                Some(seconds) => {
                    format!("It serves once, within {} minutes. Keep it to yourself.", seconds / 60)
                }
                None => "The page is open to anyone on that machine: the agent asks for no token."
                    .to_owned(),
            };
            output.aside(styled(DIM, told));
        }
    }
    Ok(Verdict::Fine)
}
