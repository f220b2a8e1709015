//! What the figures of two programs say of each other. Nothing here is measured: figures come in,
//! and what may be said of them comes out.

use serde::Serialize;

use crate::figure::{Figure, Measure, Of};
use crate::report::{Table, number};
use crate::stats::median;

/// What the median ratio has to be off from 1, at the least, to be a difference.
const NOISE: f64 = 0.05;
/// Of fewer turns, all are on one side of 1 too often by chance: of two, every second time.
const ENOUGH_TURNS: usize = 3;

/// When a difference is said to be one, for those who read what is printed.
pub(crate) const RULE: &str = "A difference: in every turn new/old is on the same side of 1, and \
    its median is more than 5 % off from 1. All else is the same within noise.";

/// What one part measured in one turn, with each program.
pub(crate) struct TurnFigures {
    pub(crate) new: Vec<Figure>,
    pub(crate) old: Vec<Figure>,
}

/// The same figure in one turn with each program.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct FigurePair {
    new: f64,
    old: f64,
}

impl FigurePair {
    /// Nothing measured on one side leaves nothing to divide.
    fn ratio(self) -> Option<f64> {
        (self.new > 0.0 && self.old > 0.0).then(|| self.new / self.old)
    }
}

/// New by old, over the turns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Ratio {
    median: f64,
    lowest: f64,
    highest: f64,
}

impl Ratio {
    /// None, unless every turn has one.
    fn of(turns: &[FigurePair]) -> Option<Self> {
        let ratios: Vec<f64> = turns.iter().map(|turn| turn.ratio()).collect::<Option<_>>()?;
        Some(Self {
            lowest: ratios.iter().copied().reduce(f64::min)?,
            highest: ratios.iter().copied().reduce(f64::max)?,
            median: median(ratios),
        })
    }

    fn differs(self) -> bool {
        (self.lowest > 1.0 || self.highest < 1.0) && (self.median - 1.0).abs() > NOISE
    }
}

/// What may be said of the new program beside the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Difference {
    Faster,
    Slower,
    Less,
    More,
    SameWithinNoise,
    /// A figure that no program has a part in differs.
    MachineDiffered,
    TooFewTurns,
    NothingToCompare,
}

impl Difference {
    /// By [`RULE`].
    fn of(measure: Measure, of: Of, turns: &[FigurePair]) -> Self {
        let Some(ratio) = Ratio::of(turns) else { return Self::NothingToCompare };
        if turns.len() < ENOUGH_TURNS {
            return Self::TooFewTurns;
        }
        match (of, measure, ratio.median > 1.0) {
            _ if !ratio.differs() => Self::SameWithinNoise,
            (Of::Machine, ..) => Self::MachineDiffered,
            (Of::Program, Measure::Rate, true) | (Of::Program, Measure::Time, false) => {
                Self::Faster
            }
            (Of::Program, Measure::Rate, false) | (Of::Program, Measure::Time, true) => {
                Self::Slower
            }
            (Of::Program, Measure::Amount, true) => Self::More,
            (Of::Program, Measure::Amount, false) => Self::Less,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Less => "less",
            Self::More => "more",
            Self::SameWithinNoise => "same within noise",
            Self::MachineDiffered => "the machine differed",
            Self::TooFewTurns => "too few turns",
            Self::NothingToCompare => "nothing to compare",
        }
    }
}

/// One figure of both programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Line {
    name: String,
    measure: Measure,
    of: Of,
    /// Medians of the turns.
    new: f64,
    old: f64,
    ratio: Option<Ratio>,
    verdict: Difference,
    turns: Vec<FigurePair>,
}

/// All figures that every turn has of both programs.
pub(crate) fn compare(turns: &[TurnFigures]) -> Vec<Line> {
    let figures = turns.first().map(|turn| turn.new.as_slice()).unwrap_or_default();
    figures.iter().filter_map(|figure| line(figure, turns)).collect()
}

fn line(figure: &Figure, turns: &[TurnFigures]) -> Option<Line> {
    let value = |figures: &[Figure]| {
        figures.iter().find(|other| other.name == figure.name).map(|other| other.value)
    };
    let pair =
        |turn: &TurnFigures| Some(FigurePair { new: value(&turn.new)?, old: value(&turn.old)? });
    let turns: Vec<FigurePair> = turns.iter().map(pair).collect::<Option<_>>()?;
    let middle = |side: fn(&FigurePair) -> f64| median(turns.iter().map(side).collect());
    Some(Line {
        name: figure.name.clone(),
        measure: figure.measure,
        of: figure.of,
        new: middle(|turn| turn.new),
        old: middle(|turn| turn.old),
        ratio: Ratio::of(&turns),
        verdict: Difference::of(figure.measure, figure.of, &turns),
        turns,
    })
}

/// The lines for people.
pub(crate) fn table(lines: &[Line]) -> Table {
    let mut table = Table::new(&["", "old", "new", "new/old", "lowest", "highest", "verdict"]);
    for line in lines {
        let ratio = |of: fn(Ratio) -> f64| line.ratio.map(of).map(number).unwrap_or_default();
        table.row(vec![
            line.name.clone(),
            number(line.old),
            number(line.new),
            ratio(|ratio| ratio.median),
            ratio(|ratio| ratio.lowest),
            ratio(|ratio| ratio.highest),
            line.verdict.words().to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// New by old of each turn, with an old figure that is another in each.
    fn pairs(ratios: &[f64]) -> Vec<FigurePair> {
        let olds = [100.0, 50.0, 200.0, 80.0, 10.0];
        ratios.iter().zip(olds).map(|(ratio, old)| FigurePair { new: ratio * old, old }).collect()
    }

    #[test]
    fn a_difference_is_one_if_all_turns_agree_and_the_median_is_far_enough_from_1() {
        use Difference::*;
        use Measure::*;
        let cases: &[(&str, Measure, Of, &[f64], Difference)] = &[
            ("all above", Rate, Of::Program, &[1.2, 1.1, 1.3], Faster),
            ("all below", Rate, Of::Program, &[0.63, 0.97, 0.9], Slower),
            ("a time that grew", Time, Of::Program, &[1.2, 1.1, 1.3], Slower),
            ("a time that shrank", Time, Of::Program, &[0.5, 0.9, 0.8], Faster),
            ("memory that grew", Amount, Of::Program, &[1.2, 1.1, 1.3], More),
            ("memory that shrank", Amount, Of::Program, &[0.5, 0.9, 0.8], Less),
            ("a turn that disagrees", Rate, Of::Program, &[2.0, 0.99, 3.0], SameWithinNoise),
            ("a turn without a difference", Rate, Of::Program, &[2.0, 1.0, 3.0], SameWithinNoise),
            ("all agree, by little", Rate, Of::Program, &[1.04, 1.01, 1.3], SameWithinNoise),
            ("all agree, little less", Rate, Of::Program, &[0.96, 0.99, 0.5], SameWithinNoise),
            (
                "many turns, one disagrees",
                Rate,
                Of::Program,
                &[2.0, 2.0, 2.0, 2.0, 0.9],
                SameWithinNoise,
            ),
            ("an even number of turns", Rate, Of::Program, &[1.1, 1.2, 1.01, 1.08], Faster),
            ("no program's figure", Rate, Of::Machine, &[0.5, 0.9, 0.8], MachineDiffered),
            ("a steady machine", Rate, Of::Machine, &[0.9, 1.1, 1.0], SameWithinNoise),
            ("one turn", Rate, Of::Program, &[9.0], TooFewTurns),
            ("two turns", Rate, Of::Program, &[9.0, 9.0], TooFewTurns),
            ("a turn without a figure", Rate, Of::Program, &[1.2, 0.0, 1.3], NothingToCompare),
            ("no turn at all", Rate, Of::Program, &[], NothingToCompare),
        ];
        for (what, measure, of, ratios, wanted) in cases {
            assert_eq!(Difference::of(*measure, *of, &pairs(ratios)), *wanted, "{what}");
        }
    }

    #[test]
    fn a_ratio_is_of_the_same_turn_and_not_of_the_medians() {
        // Both are ten times as fast in the second turn: that is the machine.
        let turns = [(11.0, 10.0), (110.0, 100.0), (22.0, 20.0)];
        let turns = turns.map(|(new, old)| FigurePair { new, old });
        let ratio = Ratio::of(&turns).unwrap();
        for of in [ratio.median, ratio.lowest, ratio.highest] {
            assert!((of - 1.1).abs() < 1e-9);
        }
    }

    #[test]
    fn figures_of_both_programs_become_lines_in_their_order() {
        let figures = |rate, time| {
            vec![
                Figure::new("asked", Measure::Rate, rate),
                Figure::new("took", Measure::Time, time),
            ]
        };
        let turn = |new, old| TurnFigures { new: figures(new, 1.0), old: figures(old, 2.0) };
        let lines = compare(&[turn(30.0, 10.0), turn(40.0, 20.0), turn(50.0, 30.0)]);
        let said: Vec<_> = lines
            .iter()
            .map(|line| (line.name.as_str(), line.old, line.new, line.verdict))
            .collect();
        let wanted =
            [("asked", 20.0, 40.0, Difference::Faster), ("took", 2.0, 1.0, Difference::Faster)];
        assert_eq!(said, wanted);
        assert_eq!(compare(&[]), []);
    }

    #[test]
    fn a_figure_that_one_program_lacks_is_not_compared() {
        let has = |name| vec![Figure::new(name, Measure::Rate, 1.0)];
        assert_eq!(compare(&[TurnFigures { new: has("this"), old: has("that") }]), []);
    }
}
