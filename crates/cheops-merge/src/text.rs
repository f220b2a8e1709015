//! Texts: which lines and words an edit changes, and how loro is told.

use loro::LoroDoc;

use crate::change::TextRun;
use crate::diff::{DiffStep, MOST_RUNS, steps};
use crate::errors::NotADocument;

/// The name of loro's container.
pub(crate) const CONTAINER: &str = "text";

/// Loro keeps what is inserted at once in one piece, and to change something within takes as long as it is.
const PIECE: usize = 1024;

/// Bytes as a text, if they are one.
pub(crate) fn parse(bytes: &[u8]) -> Result<&str, NotADocument> {
    std::str::from_utf8(bytes).map_err(|error| NotADocument::NotText { at: error.valid_up_to() })
}

/// What makes `old` into `new`: lines first, and words where lines changed. A word that is typed is
/// inserted whole, and so is everything between two words that stay.
pub(crate) fn runs(old: &str, new: &str) -> Vec<TextRun> {
    let mut runs = TextRuns::default();
    let lines = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    each_change(&lines.0, &lines.1, |part| match part {
        Part::Kept(kept) => runs.keep(&kept.concat()),
        Part::Changed(old, new) => {
            let (old, new) = (old.concat(), new.concat());
            let words = (words(&old), words(&new));
            each_change(&words.0, &words.1, |part| match part {
                Part::Kept(kept) => runs.keep(&kept.concat()),
                Part::Changed(old, new) => runs.change(&old.concat(), &new.concat()),
            });
        }
    });
    if runs.0.len() > MOST_RUNS / 2 { replaced(old, new) } else { runs.0 }
}

/// Everything from the first to the last difference at once.
fn replaced(old: &str, new: &str) -> Vec<TextRun> {
    let mut runs = TextRuns::default();
    let (before, behind) = common_ends(old, new);
    runs.keep(&old[..before]);
    runs.replace(&old[before..old.len() - behind], &new[before..new.len() - behind]);
    runs.keep(&old[old.len() - behind..]);
    runs.0
}

/// How many bytes are the same at the beginning, and how many of the others at the end.
fn common_ends(old: &str, new: &str) -> (usize, usize) {
    let equal = |(one, other): &(char, char)| one == other;
    let width = |(c, _): (char, char)| c.len_utf8();
    let before: usize = old.chars().zip(new.chars()).take_while(equal).map(width).sum();
    let behind = old[before..].chars().rev().zip(new[before..].chars().rev());
    (before, behind.take_while(equal).map(width).sum())
}

enum Part<'a, 'b> {
    Kept(&'b [&'a str]),
    Changed(&'b [&'a str], &'b [&'a str]),
}

fn each_change(old: &Vec<&str>, new: &Vec<&str>, mut f: impl FnMut(Part<'_, '_>)) {
    let (mut x, mut y) = (0, 0);
    for (kept, deleted, inserted) in joined(old, &steps(old, new)) {
        if deleted + inserted > 0 {
            f(Part::Changed(&old[x..x + deleted], &new[y..y + inserted]));
        }
        (x, y) = (x + deleted, y + inserted);
        if kept > 0 {
            f(Part::Kept(&old[x..x + kept]));
        }
        (x, y) = (x + kept, y + kept);
    }
}

/// How many go, how many come, and how many then stay, over and over. What would stay between two
/// replaced parts and has no word in it is replaced with them: a sentence that is written anew is one
/// insertion, not one for each gap that both have, into which another site's could come.
fn joined(old: &[&str], steps: &[DiffStep]) -> Vec<(usize, usize, usize)> {
    let mut parts: Vec<(usize, usize, usize)> = Vec::new();
    let mut at = 0;
    let mut changed = (0, 0);
    for (i, step) in steps.iter().enumerate() {
        match *step {
            DiffStep::Delete(count) => {
                changed.0 += count;
                at += count;
            }
            DiffStep::Insert(count) => changed.1 += count,
            DiffStep::Keep(count) => {
                let has_word =
                    old[at..at + count].iter().any(|token| token.contains(char::is_alphanumeric));
                let between = changed.0 > 0 && changed.1 > 0 && i + 2 < steps.len();
                if between && !has_word && replaces(&steps[i + 1..]) {
                    changed = (changed.0 + count, changed.1 + count);
                } else {
                    parts.push((count, changed.0, changed.1));
                    changed = (0, 0);
                }
                at += count;
            }
        }
    }
    parts.push((0, changed.0, changed.1));
    parts
}

fn replaces(steps: &[DiffStep]) -> bool {
    matches!(steps, [DiffStep::Delete(_), DiffStep::Insert(_), ..])
}

/// Words, gaps, and every other character for itself.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut before = CharClass::Alone;
    for (at, c) in text.char_indices() {
        let class = CharClass::of(c);
        if at > start && (class == CharClass::Alone || class != before) {
            words.push(&text[start..at]);
            start = at;
        }
        before = class;
    }
    words.extend((start < text.len()).then(|| &text[start..]));
    words
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Word,
    Gap,
    Alone,
}

impl CharClass {
    fn of(c: char) -> Self {
        match c {
            ' ' | '\t' => Self::Gap,
            '_' => Self::Word,
            // Scripts without gaps between words: there each character stands for itself.
            '\u{0e00}'..='\u{0eff}' | '\u{2e80}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}' => {
                Self::Alone
            }
            // Accents and joiners belong to what is before them.
            '\u{0300}'..='\u{036f}' | '\u{200d}' | '\u{fe0f}' => Self::Word,
            _ if c.is_alphanumeric() => Self::Word,
            _ => Self::Alone,
        }
    }
}

#[derive(Default)]
struct TextRuns(Vec<TextRun>);

impl TextRuns {
    fn keep(&mut self, text: &str) {
        let count = text.chars().count() as u32;
        match self.0.last_mut() {
            _ if count == 0 => {}
            Some(TextRun::Keep(before, _)) => *before += count,
            _ => self.0.push(TextRun::Keep(count, Vec::new())),
        }
    }

    /// A word that only gets longer or shorter keeps what stays, and its marks. One that becomes another
    /// is replaced whole, lest two such changes make a third word.
    fn change(&mut self, old: &str, new: &str) {
        let (before, behind) = common_ends(old, new);
        if old.len().min(new.len()) == before + behind {
            self.keep(&old[..before]);
            self.replace(&old[before..old.len() - behind], &new[before..new.len() - behind]);
            self.keep(&old[old.len() - behind..]);
        } else {
            self.replace(old, new);
        }
    }

    /// What comes stands within what goes, if that is long enough: so it stays apart from what others
    /// put before or behind.
    fn replace(&mut self, old: &str, new: &str) {
        let mut goes = old.chars().count() as u32;
        if goes > 0 {
            let before = if new.is_empty() { goes } else { 1 };
            self.0.push(TextRun::Delete(before));
            goes -= before;
        }
        if !new.is_empty() {
            self.0.push(TextRun::Insert(new.to_owned(), Vec::new()));
        }
        if goes > 0 {
            self.0.push(TextRun::Delete(goes));
        }
    }
}

/// Do they stay within a text of so many characters, and change something?
pub(crate) fn check(runs: &[TextRun], length: usize) -> Result<(), &'static str> {
    if runs.len() > MOST_RUNS {
        return Err("it changes too many places");
    }
    let mut covered = 0usize;
    for run in runs {
        match run {
            TextRun::Keep(count, _) | TextRun::Delete(count) => {
                if *count == 0 {
                    return Err("it keeps or deletes nothing");
                }
                covered += *count as usize;
            }
            TextRun::Insert(text, _) => {
                if text.is_empty() {
                    return Err("it inserts nothing");
                }
            }
        }
    }
    if covered > length {
        return Err("it changes more than there is");
    }
    Ok(())
}

/// Has a plain text no marks?
pub(crate) fn check_plain(runs: &[TextRun]) -> Result<(), &'static str> {
    let plain = runs.iter().all(|run| match run {
        TextRun::Keep(_, changes) => changes.is_empty(),
        TextRun::Insert(_, marks) => marks.is_empty(),
        TextRun::Delete(_) => true,
    });
    if plain { Ok(()) } else { Err("it marks a plain text") }
}

/// Tells loro, from the last run to the first, so that places before them stay what they are. What is
/// inserted stands after what is deleted before it. The runs were checked.
pub(crate) fn apply(doc: &LoroDoc, runs: &[TextRun]) -> Result<(), loro::LoroError> {
    let text = doc.get_text(CONTAINER);
    let mut at: usize = runs
        .iter()
        .map(|run| match run {
            TextRun::Keep(count, _) | TextRun::Delete(count) => *count as usize,
            TextRun::Insert(..) => 0,
        })
        .sum();
    for run in runs.iter().rev() {
        match run {
            TextRun::Keep(count, _) => at -= *count as usize,
            TextRun::Delete(count) => {
                at -= *count as usize;
                text.delete(at, *count as usize)?;
            }
            TextRun::Insert(inserted, _) => {
                let mut at = at;
                let chars: Vec<char> = inserted.chars().collect();
                for piece in chars.chunks(PIECE) {
                    text.insert(at, &piece.iter().collect::<String>())?;
                    at += piece.len();
                }
            }
        }
    }
    Ok(())
}
