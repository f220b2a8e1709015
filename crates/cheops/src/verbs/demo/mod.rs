//! `cheops demo`: three sites, a cut, conflicting operations, the heal, and why it ended so.
//!
//! The engines are the real ones; time, network, disks and the application are the simulator's.
//! A [`story`] plays scenes on a [`stage`] and hands out [`beat`]s, which are plain data read off
//! the engines; the [`narrator`] prints them. Nothing that is printed about sites is written down
//! anywhere else.

mod beat;
mod map;
mod narrator;
mod readings;
mod scenario;
mod stage;
mod story;

use clap::{Args, ValueEnum};

use self::beat::{Beat, Length};
use self::narrator::{Narrator, Pace};
use self::scenario::Scenario;
use self::stage::Halted;
use crate::failure::{Failure, Verdict};
use crate::output::Output;

const AFTER_HELP: &str = "\
Examples:
  cheops demo
  cheops demo --scenario redis --seed 7
  cheops demo --fast --output json    one JSON object per line

Exit code 1 if the sites do not agree in the end.";

/// Watch three sites disagree and come to agree
///
/// A narrated simulation: three sites change one resource, the links between them are cut, each
/// goes on alone, the links come back, and all agree on one outcome and on why. The engines are
/// real; time, network and the application are simulated, so it takes no time and harms nothing.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Where chance begins: the same seed tells the same story
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Without pauses
    #[arg(long)]
    fast: bool,
    /// Only this one; else the file in full, then Redis in short
    #[arg(long, value_enum)]
    scenario: Option<Choice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// Users write to a file with `>` and `>>`
    File,
    /// Users set and increment a number in Redis
    Redis,
}

impl Arguments {
    fn programme(&self) -> Vec<(&'static Scenario, Length)> {
        match self.scenario {
            None => vec![(&scenario::FILE, Length::Full), (&scenario::REDIS, Length::Short)],
            Some(Choice::File) => vec![(&scenario::FILE, Length::Full)],
            Some(Choice::Redis) => vec![(&scenario::REDIS, Length::Full)],
        }
    }
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Verdict, Failure> {
    let pace = match output.watched && !arguments.fast {
        true => Pace::Unhurried,
        false => Pace::Fast,
    };
    let mut narrator = Narrator::new(output, pace);
    let mut verdict = Verdict::Fine;
    for (scenario, length) in arguments.programme() {
        let mut tell = |beat: Beat| narrator.tell(&beat).map_err(Failure::from);
        if !story::play(scenario, length, arguments.seed, &mut tell)? {
            verdict = Verdict::Problems;
        }
    }
    narrator.end(verdict)?;
    Ok(verdict)
}

impl From<Halted> for Failure {
    fn from(halted: Halted) -> Self {
        Self::ours("the simulation stopped")
            .because(halted)
            .hint("please report this, with the seed: the same seed shows it again")
    }
}
