//! What a demo plays by itself. It says what it expects, looks, and tells if that is not so.
//!
//! | file | what it plays |
//! | --- | --- |
//! | `files` | the technical report's file experiment |
//! | `collaborations` | requests to the sample application under each kind of scope |
//! | `web` | such requests: sent, and shown |

mod collaborations;
mod files;
mod web;

use std::time::Duration;

use cheops_api::Client;
use clap::ValueEnum;

use self::web::Web;
use super::cluster::DemoCluster;
use crate::failure::{Failure, Verdict};
use crate::look::{BAD, BOLD, DIM, GOOD, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::text::{counted, hanging, printable};

/// How long the sites may take to agree.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How many sites play.
pub(super) const SITES: u8 = 3;

/// What to play.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DemoPart {
    /// All there is
    All,
    /// The technical report's file experiment
    Files,
    /// The sample application under each kind of scope; needs Node
    Collaborations,
}

pub(super) async fn play(
    part: DemoPart,
    cluster: &mut DemoCluster,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let mut script = Script { cluster, output, web: Web::new(), broken: 0 };
    if part != DemoPart::Collaborations {
        files::play(&mut script).await?;
    }
    match (part, script.cluster.lacks.clone()) {
        (DemoPart::Files, _) => {}
        (_, None) => collaborations::play(&mut script).await?,
        (DemoPart::Collaborations, Some(lacks)) => return Err(Failure::caller(lacks)),
        (DemoPart::All, Some(lacks)) => {
            let said = format!("\nThe collaborations are not played: {lacks}");
            script.output.line(styled(WARN, said))?;
        }
    }
    Ok(match script.broken {
        0 => Verdict::Fine,
        broken => {
            let said = format!("\n{} did not come true", counted(broken, "claim"));
            script.output.line(styled(BAD, said))?;
            Verdict::Problems
        }
    })
}

struct Script<'a> {
    cluster: &'a mut DemoCluster,
    output: &'a mut VerbOutput,
    web: Web,
    /// How many claims did not come true.
    broken: usize,
}

impl Script<'_> {
    fn heading(&mut self, text: &str) -> Result<(), Failure> {
        if self.output.format == Format::Table {
            self.output.line(format!("\n{}", styled(BOLD, text)))?;
        }
        Ok(())
    }

    /// Says what should be so, and whether it is; if not, what is instead.
    fn claim(&mut self, what: &str, holds: bool, instead: &str) -> Result<(), Failure> {
        let width = self.output.width;
        let line = match holds {
            true => hanging("  ✓ ", what, width).replacen('✓', &styled(GOOD, '✓'), 1),
            false => {
                self.broken += 1;
                let text = format!("this is not so: {what}. Instead: {}", printable(instead));
                styled(BAD, hanging("  ✗ ", &text, width))
            }
        };
        Ok(self.output.line(line)?)
    }

    /// A claim that may take a while to come true. `look` says whether it has, and what it saw.
    async fn claim_soon(
        &mut self,
        what: &str,
        look: impl AsyncFn(&Self) -> Result<(bool, String), Failure>,
    ) -> Result<(), Failure> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let (holds, seen) = look(self).await?;
            if holds || tokio::time::Instant::now() > deadline {
                return self.claim(what, holds, &seen);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn client(&self, at: usize) -> Result<Client, Failure> {
        self.cluster.sites[at].client()
    }

    /// Cuts the link between two sites, or all links if nobody is named, and waits until the sites
    /// know.
    async fn cut(&mut self, between: &[usize]) -> Result<(), Failure> {
        let names: Vec<_> = between.iter().map(|at| self.cluster.sites[*at].name.clone()).collect();
        let links = self.cluster.set_cut(&names, true).map_err(Failure::ours)?;
        let what = match names.as_slice() {
            [one, other] => format!("  the link between {one} and {other} is cut"),
            _ => format!("  {} cut", counted(links, "link")),
        };
        self.output.line(styled(DIM, what))?;
        self.cluster.settled(PATIENCE).await
    }

    /// Heals all links, and waits until the sites know.
    async fn heal(&mut self) -> Result<(), Failure> {
        let links = self.cluster.set_cut(&[], false).map_err(Failure::ours)?;
        self.output.line(styled(DIM, format!("  {} healed", counted(links, "link"))))?;
        self.cluster.settled(PATIENCE).await
    }

    async fn until(
        &self,
        what: &str,
        holds: impl AsyncFn() -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let waiting = async {
            while !holds().await? {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            Ok(())
        };
        let late = || Err(Failure::ours(format!("it never came true that {what}")));
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| late())
    }
}
