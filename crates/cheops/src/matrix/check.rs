//! `cheops matrix check`: is a matrix what its author meant?

use std::path::PathBuf;

use cheops_core::config::{
    Config, ConfigErrors, ConfigPlace, ConfigProblem, Parsed, Profile, Warning,
};
use clap::Args;
use serde::Serialize;

use super::document::{self, NamedText};
use super::pairs::{self, ShownPair};
use super::profiles;
use super::snippet::{self, Gravity};
use crate::failure::{Failure, Verdict};
use crate::look::{BAD, GOOD, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::text::{counted, printable};

const AFTER_HELP: &str = r#"A matrix, in JSON:
  {"ResolutionMatrix": [
    {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
    {"Before": "inc", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "inc", "After": "inc", "Result": "take-both"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}

A file can build on a profile: in YAML, `Profile: redis` and what differs.

Examples:
  cheops matrix check redis.json
  cheops matrix show redis | cheops matrix check -
  cheops matrix check --profile kubernetes

Exit code 1 if the matrix cannot be used; warnings leave it at 0."#;

/// Validate a matrix and print what it means for every pair of types
///
/// Prints, for every two operations, what happens if one was made after the other, and if neither
/// knew of the other: who stays, and in which order.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// The matrix, in JSON or YAML; `-` reads standard input
    #[arg(required_unless_present = "profile")]
    file: Option<PathBuf>,
    /// A built-in profile in place of a file
    #[arg(long, value_name = "NAME", conflicts_with = "file", value_parser = profiles::names())]
    profile: Option<String>,
}

pub(super) fn run(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    match (&arguments.file, &arguments.profile) {
        (Some(file), _) => check(&document::read(file)?, output),
        (None, Some(name)) => accept_profile(profiles::named(name)?, output),
        (None, None) => Err(Failure::caller("there is nothing to check")),
    }
}

fn check(document: &NamedText, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    match Config::parse(&document.text) {
        Ok(parsed) => accept(&document.name, &parsed, Some(document), output),
        Err(errors) => refuse(document, errors.problems(), output),
    }
}

fn accept_profile(profile: &Profile, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let config = profile.config.clone();
    let warnings = config.validate().unwrap_or_default();
    let name = format!("profile {}", profile.name);
    accept(&name, &Parsed { config, warnings }, None, output)
}

/// What there is to say of a matrix, for programs.
#[derive(Serialize)]
struct MatrixReport {
    ok: bool,
    source: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Finding>,
    warnings: Vec<Finding>,
    pairs: Vec<ShownPair>,
}

/// One problem or warning, for programs.
#[derive(Serialize)]
struct Finding {
    path: String,
    line: Option<u64>,
    column: Option<u64>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Finding {
    fn new(place: &ConfigPlace, message: String, remedy: Option<String>) -> Self {
        let (line, column) = place.at.map(|at| (at.line, at.column)).unzip();
        Self { path: place.path.clone(), line, column, message, remedy }
    }
}

impl From<&ConfigProblem> for Finding {
    fn from(problem: &ConfigProblem) -> Self {
        let ConfigProblem { place, fault } = problem;
        Self::new(place, fault.to_string(), Some(fault.remedy()))
    }
}

impl From<&Warning> for Finding {
    fn from(warning: &Warning) -> Self {
        Self::new(&warning.place, warning.doubt.to_string(), None)
    }
}

fn accept(
    name: &str,
    parsed: &Parsed,
    document: Option<&NamedText>,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let rows = parsed.config.table();
    if output.format == Format::Json {
        output.json(&MatrixReport {
            ok: true,
            source: name.to_owned(),
            problems: Vec::new(),
            warnings: parsed.warnings.iter().map(Finding::from).collect(),
            pairs: rows.iter().map(ShownPair::from).collect(),
        })?;
        return Ok(Verdict::Fine);
    }
    for warning in parsed.warnings.iter() {
        warn(warning, document, output);
    }
    if !rows.is_empty() {
        output.line(pairs::told(&rows, output.width))?;
        output.line("")?;
    }
    output.line(conclusion(name, parsed, rows.len()))?;
    Ok(Verdict::Fine)
}

fn conclusion(name: &str, parsed: &Parsed, pairs: usize) -> String {
    let types = counted(parsed.config.kinds().len(), "type");
    let warnings = match parsed.warnings.len() {
        0 => String::new(),
        count => format!(", {}", styled(WARN, counted(count, "warning"))),
    };
    let pairs = counted(pairs, "pair");
    format!("{}: {}, {types}, {pairs}{warnings}", printable(name), styled(GOOD, "ok"))
}

/// What is doubtful, and after the last semicolon what to do about it or what it leads to.
fn warn(warning: &Warning, document: Option<&NamedText>, output: &mut VerbOutput) {
    let nowhere = NamedText { name: String::new(), text: String::new() };
    let doubt = warning.doubt.to_string();
    let (message, help) = match doubt.rsplit_once("; ") {
        Some((message, help)) => (message, Some(help)),
        None => (doubt.as_str(), None),
    };
    let document = document.unwrap_or(&nowhere);
    let width = output.width;
    output.aside(snippet::told(Gravity::Warning, message, help, &warning.place, document, width));
    output.aside("");
}

fn refuse(
    document: &NamedText,
    problems: &[ConfigProblem],
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    if output.format == Format::Json {
        output.json(&MatrixReport {
            ok: false,
            source: document.name.clone(),
            problems: problems.iter().map(Finding::from).collect(),
            warnings: Vec::new(),
            pairs: Vec::new(),
        })?;
        return Ok(Verdict::Problems);
    }
    tell(document, problems, output);
    let count = styled(BAD, counted(problems.len(), "problem"));
    output.aside(format!("{}: {count}, so it cannot be used", printable(&document.name)));
    Ok(Verdict::Problems)
}

fn tell(document: &NamedText, problems: &[ConfigProblem], output: &mut VerbOutput) {
    for ConfigProblem { place, fault } in problems {
        let (message, remedy) = (fault.to_string(), fault.remedy());
        let remedy = Some(remedy.as_str());
        let told = snippet::told(Gravity::Error, &message, remedy, place, document, output.width);
        output.aside(told);
        output.aside("");
    }
}

/// The matrix, for a verb that is about something else: problems are failures of that verb.
pub(super) fn usable(
    document: &NamedText,
    target: Option<&str>,
    output: &mut VerbOutput,
) -> Result<Config, Failure> {
    Config::parse_about(&document.text, target).map(|parsed| parsed.config).map_err(|errors| {
        refused(document, errors, output)
            .hint("`cheops matrix check FILE` says what a matrix means")
    })
}

/// A document that cannot be used, for a verb that is about something else.
pub(super) fn refused(
    document: &NamedText,
    errors: ConfigErrors,
    output: &mut VerbOutput,
) -> Failure {
    let count = counted(errors.problems().len(), "problem");
    let failure = Failure::caller(format!("`{}` has {count}, so it cannot be used", document.name));
    match output.format {
        Format::Table => {
            tell(document, errors.problems(), output);
            failure
        }
        Format::Json => failure.because(errors),
    }
}
