//! "Did you mean": the known words closest to one that is not known.

/// Longer words are not compared: nobody mistypes sixty characters, and the cost is quadratic.
const MAX_COMPARED_CHARS: usize = 64;

/// More suggestions than this help nobody.
const MAX_SUGGESTIONS: usize = 3;

/// The candidates a person most likely meant by `word`, the closest first.
pub(crate) fn closest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let Some(word) = comparable(word) else {
        return Vec::new();
    };
    let limit = typos_allowed(word.len());
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let distance = distance(&word, &comparable(candidate)?, limit)?;
            Some((distance, candidate))
        })
        .collect();
    near.sort_unstable();
    // A far match beside a near one is noise.
    let best = near.first().map_or(0, |(distance, _)| *distance);
    near.into_iter()
        .take_while(|(distance, _)| *distance <= best)
        .take(MAX_SUGGESTIONS)
        .map(|(_, candidate)| candidate.to_owned())
        .collect()
}

/// Lower case, so that a wrong case alone is no distance; `None` if too long to compare.
fn comparable(word: &str) -> Option<Vec<char>> {
    if word.len() > 4 * MAX_COMPARED_CHARS {
        return None;
    }
    let chars: Vec<char> = word.chars().map(|c| c.to_ascii_lowercase()).collect();
    (chars.len() <= MAX_COMPARED_CHARS).then_some(chars)
}

fn typos_allowed(length: usize) -> usize {
    match length {
        0..=2 => 1,
        3..=5 => 2,
        _ => 3,
    }
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`; `None` if
/// there are more than `limit`, or if hardly a letter would stay.
fn distance(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        // No row can get better than the two above it: stop as soon as both are too far.
        if row.iter().chain(&last).all(|cell| *cell > limit) {
            return None;
        }
        before_last = std::mem::replace(&mut last, row);
    }
    let distance = last[b.len()];
    (distance <= limit && 2 * distance < a.len().max(b.len()).max(3)).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITES: [&str; 6] = ["lyon", "nantes", "paris", "rennes", "site1", "site2"];

    #[test]
    fn typing_mistakes_lead_to_what_was_meant() {
        for (word, want) in [
            ("pariss", vec!["paris"]),
            ("Paris", vec!["paris"]),
            ("pairs", vec!["paris"]),
            ("lyn", vec!["lyon"]),
            ("sit1", vec!["site1"]),
            ("site3", vec!["site1", "site2"]),
            ("tokyo", vec![]),
            ("x", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(closest(word, SITES), want, "{word}");
        }
    }

    #[test]
    fn huge_words_are_not_compared() {
        let huge = "a".repeat(1 << 20);
        assert!(closest(&huge, SITES).is_empty());
        assert!(closest("paris", [huge.as_str()]).is_empty());
    }
}
