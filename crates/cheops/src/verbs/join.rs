//! `cheops join`: a site becomes one of a mesh, from a token to an agent that runs. What was done is
//! there when it is run again: nothing is asked of the other side twice that it would refuse.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cheops_agent::config::{AgentConfig, PeerConfig, TemplateSettings};
use cheops_agent::mesh::{self, JoinError, JoinToken, Joined, JoinerKey, durable};
use clap::Args;

use super::agent;
use super::up::{SitePlace, write_config};
use crate::failure::{Failure, Verdict};
use crate::look::{DIM, styled};
use crate::output::VerbOutput;

const AFTER_HELP: &str = "\
Nothing is said to the other side before it has proven that it is of the mesh that the token names. What
is made is the identity NAME.pem and the config NAME.toml; then the agent runs in the foreground. The same
command starts it again, and goes on where it was interrupted.

Examples:
  cheops join cheops1.…@paris.example:8078
  cheops join - < token                   # it does not show in the list of processes
  cheops join cheops1.…@10.0.0.1:8078 --dir /srv/cheops --advertise lyon.example";

/// For how long others that join at the same time are waited for.
const PATIENCE: Duration = Duration::from_secs(30);
const ASK_EVERY: Duration = Duration::from_millis(500);
/// A token is far shorter.
const LONGEST_INPUT: u64 = 4096;

/// Join a mesh, as the site that a token invites
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// What `cheops invite` printed; `-` reads it from standard input
    #[arg(value_name = "TOKEN")]
    token: String,
    #[command(flatten)]
    place: SitePlace,
}

pub(crate) fn run(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let token = token(&arguments.token)?;
    let place = &arguments.place;
    place.make()?;
    let key_file = place.dir.join(format!("join-{}.key", token.id));
    let config = match joined_before(&place.dir, &token) {
        Some(config) => config,
        None => join(&token, place, &key_file, output)?,
    };
    // It is in the identity by now.
    match fs::remove_file(&key_file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed(&key_file, "removed")(error));
        }
        _ => {}
    }
    agent::run(&agent::Arguments::of(config), output)
}

fn token(text: &str) -> Result<JoinToken, Failure> {
    let mut read = String::new();
    let text = match text {
        "-" => {
            let input = io::stdin().take(LONGEST_INPUT).read_to_string(&mut read);
            input.map_err(|error| {
                Failure::caller("the token cannot be read from standard input").because(error)
            })?;
            &read
        }
        text => text,
    };
    text.parse().map_err(|error: mesh::BadJoinToken| {
        Failure::caller("that does not invite anybody")
            .because(error)
            .hint("`cheops invite NAME` at a site with the mesh's authority makes a token")
    })
}

/// Says in a config by which invitation it came to be.
fn remark(token: &JoinToken) -> String {
    format!("Joined with invitation {}.", token.id)
}

/// The config that this token was turned into, if it was.
fn joined_before(dir: &Path, token: &JoinToken) -> Option<PathBuf> {
    let remark = format!("# {}", remark(token));
    let mut files = fs::read_dir(dir).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    files.find(|path| {
        let is_config = path.extension().is_some_and(|extension| extension == "toml");
        let text = is_config.then(|| fs::read_to_string(path).ok()).flatten();
        text.is_some_and(|text| text.lines().next() == Some(&remark))
    })
}

fn join(
    token: &JoinToken,
    place: &SitePlace,
    key_file: &Path,
    output: &mut VerbOutput,
) -> Result<PathBuf, Failure> {
    let advertise = place.advertised()?;
    place.check_free()?;
    // On the disk before anybody hears of it: whoever is interrupted asks again with the same key.
    let key = key(key_file)?;
    let said = advertise.map(|advertise| advertise.to_string());
    let joined = ask(token, &key, said, place.listen.port())?;
    let identity = place.dir.join(format!("{}.pem", joined.site));
    keep_identity(&identity, &joined, &key)?;
    let config = place.dir.join(format!("{}.toml", joined.site));
    write_config(
        &config,
        &AgentConfig::template_with(&joined.site, &settings(token, place, &joined)?),
    )?;
    let told =
        format!("`{}` is a site of the mesh; its config is `{}`", joined.site, config.display());
    output.aside(styled(DIM, told));
    Ok(config)
}

fn key(file: &Path) -> Result<JoinerKey, Failure> {
    let unusable = |error| {
        Failure::caller(format!("the key in `{}` cannot be used", file.display())).because(error)
    };
    match fs::read_to_string(file) {
        Ok(text) => JoinerKey::from_pem(&text).map_err(unusable),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = JoinerKey::new().map_err(unusable)?;
            let written = durable::write_new(file, key.to_pem().as_bytes(), 0o600);
            written.map_err(failed(file, "written"))?;
            Ok(key)
        }
        Err(error) => Err(failed(file, "read")(error)),
    }
}

fn ask(
    token: &JoinToken,
    key: &JoinerKey,
    advertise: Option<String>,
    port: u16,
) -> Result<Joined, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::ours("the runtime could not be started").because(error))?;
    let began = Instant::now();
    loop {
        match runtime.block_on(mesh::join(token, key, advertise.clone(), port)) {
            Err(JoinError::Busy) if began.elapsed() < PATIENCE => std::thread::sleep(ASK_EVERY),
            Err(error) => return Err(refused(error)),
            Ok(joined) => return Ok(joined),
        }
    }
}

/// One that is there from an interrupted attempt is replaced, and no other.
fn keep_identity(path: &Path, joined: &Joined, key: &JoinerKey) -> Result<(), Failure> {
    let known = fs::read_to_string(path).unwrap_or_default();
    let written = match known.contains(&key.to_pem()) {
        true => durable::replace(path, joined.identity.as_bytes(), 0o600),
        false => durable::write_new(path, joined.identity.as_bytes(), 0o600),
    };
    written.map_err(failed(path, "written"))
}

fn settings(
    token: &JoinToken,
    place: &SitePlace,
    joined: &Joined,
) -> Result<TemplateSettings, Failure> {
    let bad = |why: String| {
        Failure::away("the answer of the site with the authority cannot be used").because(why)
    };
    // The one that it called, at the address that was good for calling it; it tells of the others.
    let inviter = joined.mesh.sites.first().map(|known| known.site.clone());
    let inviter = inviter.ok_or_else(|| bad("it does not say who it is".to_owned()))?;
    let peer = PeerConfig { site: inviter, address: token.address.parse().map_err(bad)? };
    Ok(TemplateSettings {
        remark: remark(token),
        identity: format!("{}.pem", joined.site),
        authority: None,
        api: Some(place.api),
        listen: Some(place.listen),
        advertise: Some(joined.address.parse().map_err(bad)?),
        peers: vec![peer],
    })
}

fn failed<'a>(path: &'a Path, doing: &'static str) -> impl FnOnce(io::Error) -> Failure + 'a {
    move |error| {
        Failure::caller(format!("`{}` could not be {doing}", path.display())).because(error)
    }
}

fn refused(error: JoinError) -> Failure {
    const CANNOT: &str = "this site could not join";
    match error {
        JoinError::NoAnswer { .. } | JoinError::NoAddress { .. } => Failure::away(CANNOT)
            .because(error)
            .hint("its UDP port must be open to this machine; the token still serves"),
        JoinError::Busy => Failure::away(CANNOT).because(error).hint("try again in a moment"),
        JoinError::Failed(_) => {
            Failure::away(CANNOT).because(error).hint("its agent's log says more; the token serves")
        }
        JoinError::OfAnotherMesh { .. } => Failure::caller(CANNOT).because(error).hint(
            "ask whoever sent the token whether it is right; somebody may be in the way between here \
             and there",
        ),
        JoinError::Refused(_) => Failure::caller(CANNOT)
            .because(error)
            .hint("`cheops invite NAME` makes another token, `cheops invite --list` tells of this one"),
        other => Failure::caller(CANNOT).because(other),
    }
}
