//! `cheops site`: who is part of the mesh.

use clap::{Args, Subcommand};

use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::output::{Format, VerbOutput};

const AFTER_HELP: &str = "\
Only an agent that has the mesh's authority can put a site out, such as that of `cheops up`.

Examples:
  cheops site remove lyon --dead --yes";

/// Put a site out of the mesh
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: SiteVerb,
}

#[derive(Debug, Subcommand)]
enum SiteVerb {
    /// Put a site out that is lost for good: all sites refuse it, and nobody can have its name again
    Remove {
        /// The site's name
        #[arg(value_name = "NAME")]
        site: String,
        /// It is lost, with whatever only it knew
        #[arg(long, required = true)]
        dead: bool,
        /// Do it; without this, only what it means is told
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let SiteVerb::Remove { site, dead, yes } = &arguments.what;
    if !yes {
        let sites = agent::with(agent, async |client| Ok(client.sites().await?))?;
        let shared = sites.sites.iter().find(|known| known.site == *site).map(|known| known.shared);
        let shared = shared.ok_or_else(|| {
            Failure::caller(format!("the agent knows no site `{site}`"))
                .hint("`cheops sites` lists those it knows")
        })?;
        return Err(Failure::caller(format!("`{site}` would be put out for good"))
            .because(format!(
                "it shares {shared} resources with {}; what only `{site}` knows is lost, all sites \
                 refuse it, and nobody can have its name again",
                sites.me
            ))
            .hint("`--yes` does it; `cheops mesh revoke` refuses its identity only"));
    }
    agent::with(agent, async |client| Ok(client.remove_site(site, *dead).await?))?;
    match output.format {
        Format::Json => output.json(&serde_json::json!({ "removed": site }))?,
        Format::Table => output.line(format!("{site} is removed from the mesh"))?,
    }
    Ok(Verdict::Fine)
}
