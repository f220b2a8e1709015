//! `cheops settle`: the operator's word on an operation in doubt.

use cheops_api::Decision;
use cheops_core::model::OperationId;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::json;

use crate::agent;
use crate::failure::{Failure, Verdict};
use crate::handing::check_resource;
use crate::look::{ACCENT, styled};
use crate::output::{Format, Output};

const AFTER_HELP: &str = "\
An operation is in doubt at a site that stopped while it ran: it may or may not have happened.
Only that site can know; name it with `--site` if it is not the agent's own.

Examples:
  cheops settle counter paris-5f.7 skip      it happened, or should not: go on after it
  cheops settle counter paris-5f.7 rerun     it did not happen, or can happen twice: run it
  cheops show --id counter -- redis-cli get x";

/// Settle an operation that is in doubt at a site
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
    /// The operation, as `cheops resource` names it
    #[arg(value_name = "OPERATION")]
    operation: String,
    /// What to make of it
    #[arg(value_name = "DECISION", value_parser = decisions())]
    decision: Decision,
    /// Where it is in doubt; at the agent's own site if not given
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
}

fn decisions() -> impl TypedValueParser<Value = Decision> {
    let values = [
        PossibleValue::new("skip").help("go on as if it had happened"),
        PossibleValue::new("rerun").help("run it again"),
    ];
    PossibleValuesParser::new(values).map(|word| match word.as_str() {
        "rerun" => Decision::Rerun,
        _ => Decision::Skip,
    })
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &str,
    output: &mut Output,
) -> Result<Verdict, Failure> {
    let Arguments { id, operation, decision, site } = arguments;
    check_resource(id)?;
    operation.parse::<OperationId>().map_err(|error| {
        Failure::caller(error.to_string()).hint(format!("`cheops resource {id}` lists them"))
    })?;
    let site = site.as_deref();
    agent::with(agent, async |client| Ok(client.settle(id, operation, *decision, site).await?))?;
    match output.format {
        Format::Json => output.json(&json!({ "ok": true }))?,
        Format::Table => {
            let what = match decision {
                Decision::Skip => "is skipped",
                Decision::Rerun => "runs again",
            };
            output.line(format!("{} {what}", styled(ACCENT, operation)))?;
        }
    }
    Ok(Verdict::Fine)
}
