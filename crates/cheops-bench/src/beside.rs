//! Two programs in turns, so that both meet the same machine.

use serde_json::{Value, json};

use crate::comparison::{RULE, TurnFigures, compare, table};
use crate::failure::BenchFailure;
use crate::report::{Report, Section};
use crate::{Bench, Measurement};

/// The programs, each with all that it needs.
pub(crate) struct Both {
    pub(crate) new: Bench,
    pub(crate) old: Bench,
    pub(crate) turns: u32,
}

impl Both {
    /// What is compared, for people.
    pub(crate) fn words(&self) -> String {
        format!(
            "new: {}\nold: {}\n{} turns of old and new; the figures are the medians of the turns.\n\
             {RULE}",
            self.new.program.path.display(),
            self.old.program.path.display(),
            self.turns
        )
    }

    /// What is compared, for programs.
    pub(crate) fn data(&self) -> Value {
        json!({
            "new": self.new.program.path.display().to_string(),
            "old": self.old.program.path.display().to_string(),
            "turns": self.turns,
            "rule": RULE,
        })
    }

    /// One part, old and new in turns.
    pub(crate) async fn measure(
        &self,
        what: Measurement,
        report: &mut Report,
    ) -> Result<Section, BenchFailure> {
        if what == Measurement::Store {
            return Ok(store_is_not_compared());
        }
        let (mut turns, mut wrong, mut title) = (Vec::new(), Vec::new(), "");
        for turn in 1..=self.turns {
            let old = self.side(what, &self.old, turn, "old", report).await?;
            let new = self.side(what, &self.new, turn, "new", report).await?;
            title = new.title;
            for (side, section) in [("old", &old), ("new", &new)] {
                wrong.extend(section.wrong.iter().map(|it| format!("turn {turn}, {side}: {it}")));
            }
            turns.push(TurnFigures { new: new.figures, old: old.figures });
        }
        let lines = compare(&turns);
        Ok(Section {
            tables: vec![table(&lines)],
            data: json!({ "lines": lines, "wrong": wrong }),
            notes: wrong,
            ..Section::new(what.name(), title)
        })
    }

    async fn side(
        &self,
        what: Measurement,
        bench: &Bench,
        turn: u32,
        side: &str,
        report: &mut Report,
    ) -> Result<Section, BenchFailure> {
        report.during(format!("turn {turn} of {}, {side}: ", self.turns));
        let measured = what.measure(bench, report).await;
        report.during(String::new());
        measured
            .map_err(|failure| BenchFailure::new(format!("turn {turn}, {side} program"), failure))
    }
}

fn store_is_not_compared() -> Section {
    let because = "it measures the library that is built into cheops-bench, and no program";
    Section {
        notes: vec![format!("not compared: {because}")],
        data: json!({ "not_compared": because }),
        ..Section::new(Measurement::Store.name(), crate::store::TITLE)
    }
}
