//! `cheops http`: submit an HTTP request as an operation.

use std::path::{Path, PathBuf};

use cheops_api::{Action, Body, Header, HttpAction, Upload};
use clap::Args;

use crate::agent::AgentTarget;
use crate::failure::{Failure, Verdict};
use crate::handing::Handing;
use crate::output::VerbOutput;

const AFTER_HELP: &str = r#"Examples:
  cheops http --id image-7 --sites 'paris & lyon' --type put --profile http \
      --service image PUT /v2/images/7 -H 'Content-Type: application/json' \
      --body '{"name": "debian"}'
  cheops http --id image-7 --type put --service image \
      PUT /v2/images/7/file --body @debian.img

Exit codes:
  0  it happened at every site waited for
  1  it failed at a site, its result is unknown there, or it was overridden
  2  the command cannot be carried out as given
  3  the agent is out of reach, or a site did not reply in time"#;

/// The name of the part that holds a body from a file.
const BODY_PART: &str = "body";

/// Send an HTTP request to a service of every site that holds a resource
///
/// Each site sends the request to its own instance of the service. Replies are printed as they
/// arrive, one line per site.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    handing: Handing,
    /// To which service of the application
    #[arg(long, value_name = "NAME")]
    service: String,
    /// A header to send; can be given several times
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<Header>,
    /// The body: a text, or `@` and the path of a file
    #[arg(long, value_name = "TEXT|@FILE")]
    body: Option<String>,
    /// `PUT`, `POST`, `PATCH`, `DELETE`, …
    #[arg(value_name = "METHOD", value_parser = method)]
    method: String,
    /// Path and query, such as `/v2/images/7`
    #[arg(value_name = "PATH", value_parser = path)]
    path: String,
}

fn header(text: &str) -> Result<Header, String> {
    let (name, value) =
        text.split_once(':').ok_or("a header reads `name: value`, such as `Accept: text/plain`")?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err(format!("`{name}` is not the name of a header"));
    }
    let value = value.trim();
    if value.chars().any(char::is_control) {
        return Err("the value has control characters".to_owned());
    }
    Ok(Header { name: name.to_owned(), value: value.to_owned() })
}

fn method(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic() || c == '-') {
        Ok(text.to_ascii_uppercase())
    } else {
        Err("a method is a word, such as `PUT`".to_owned())
    }
}

fn path(text: &str) -> Result<String, String> {
    if !text.starts_with('/') {
        return Err("a path begins with `/`; the service says where it is".to_owned());
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("a path has no blanks; write `%20`".to_owned());
    }
    Ok(text.to_owned())
}

/// A body, and the file it comes from, if it comes from one.
fn body(text: &str) -> Result<(Body, Option<Upload>), Failure> {
    let Some(path) = text.strip_prefix('@') else {
        return Ok((Body::Text(text.to_owned()), None));
    };
    if !Path::new(path).is_file() {
        return Err(Failure::caller(format!("there is no file `{path}`"))
            .hint("a body that begins with `@` names a file"));
    }
    let upload = Upload { name: BODY_PART.to_owned(), path: PathBuf::from(path) };
    Ok((Body::Part(BODY_PART.to_owned()), Some(upload)))
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let (body, file) = arguments.body.as_deref().map(body).transpose()?.unzip();
    let action = Action::Http(HttpAction {
        service: arguments.service.clone(),
        method: arguments.method.clone(),
        path: arguments.path.clone(),
        headers: arguments.headers.clone(),
        body,
    });
    let files: Vec<Upload> = file.flatten().into_iter().collect();
    arguments.handing.hand_in(agent, action, &files, output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_request_is_refused_before_anyone_is_asked() {
        assert_eq!(header("Accept:  text/plain ").unwrap().value, "text/plain");
        for bad in ["Accept", ": x", "a b: x", "a: x\ny"] {
            assert!(header(bad).is_err(), "{bad}");
        }
        assert_eq!(method("put").unwrap(), "PUT");
        assert!(method("P T").is_err() && method("").is_err());
        assert!(path("/a?b=c").is_ok() && path("a").is_err() && path("/a b").is_err());
    }
}
