//! `cheops matrix profiles` and `cheops matrix show`: what comes with Cheops.

use cheops_core::config::{Profile, profile, profiles};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde::Serialize;

use crate::failure::{Failure, Verdict};
use crate::look::{ACCENT, DIM, styled};
use crate::output::{Format, VerbOutput};
use crate::text::{hanging, listed};

/// List the built-in profiles, and why each is as it is
#[derive(Debug, Args)]
pub(super) struct ListArguments {}

/// Print a profile's matrix as JSON, to use or to start from
#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// Which profile
    #[arg(value_name = "PROFILE", value_parser = names())]
    profile: String,
}

/// The profiles' names, so that a wrong one is a wrong argument, and shells complete them.
pub(super) fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(profiles().iter().map(|profile| PossibleValue::new(profile.name)))
}

/// The profile of that name.
pub(super) fn named(name: &str) -> Result<&'static Profile, Failure> {
    profile(name).ok_or_else(|| Failure::caller(format!("there is no profile `{name}`")))
}

/// One profile, for programs.
#[derive(Serialize)]
struct ListedProfile {
    name: &'static str,
    types: Vec<String>,
    why: &'static str,
}

impl From<&'static Profile> for ListedProfile {
    fn from(profile: &'static Profile) -> Self {
        let types = profile.config.kinds().iter().map(ToString::to_string).collect();
        Self { name: profile.name, types, why: profile.why }
    }
}

pub(super) fn list(output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let entries: Vec<ListedProfile> = profiles().iter().map(ListedProfile::from).collect();
    match output.format {
        Format::Json => output.json(&entries)?,
        Format::Table => {
            for entry in &entries {
                output.line(told(entry, output.width))?;
            }
            output.line(styled(DIM, "cheops matrix show PROFILE prints one as JSON"))?;
        }
    }
    Ok(Verdict::Fine)
}

fn told(entry: &ListedProfile, width: usize) -> String {
    let name = styled(ACCENT, entry.name);
    let types = styled(DIM, listed(&entry.types));
    format!("{name}  {types}\n{}\n", hanging("  ", entry.why, width))
}

pub(super) fn show(arguments: &ShowArguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    output.line(named(&arguments.profile)?.config.to_json())?;
    Ok(Verdict::Fine)
}
