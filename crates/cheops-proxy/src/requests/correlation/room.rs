//! Who gives room when there is none.

use std::collections::HashMap;
use std::hash::Hash;

/// What has to go so that only so many stay: the oldest of those who hold the most, as many that
/// nobody who gave some is left with less than another who did.
pub(super) fn surplus<H: Hash + Eq, A: Ord, K>(
    held: impl Iterator<Item = (H, A, K)>,
    stay: usize,
) -> Vec<K> {
    let mut by_holder: HashMap<H, Vec<(A, K)>> = HashMap::new();
    for (holder, age, what) in held {
        by_holder.entry(holder).or_default().push((age, what));
    }
    let mut lists: Vec<Vec<(A, K)>> = by_holder.into_values().collect();
    let counts: Vec<usize> = lists.iter().map(Vec::len).collect();
    let mut share = share(&counts, stay);
    if share == 0 {
        // More holders than places: the oldest of all go.
        lists = vec![lists.into_iter().flatten().collect()];
        share = stay;
    }
    let gone = lists.into_iter().flat_map(|mut list| {
        list.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let many = list.len().saturating_sub(share);
        list.into_iter().take(many).map(|(_, what)| what)
    });
    gone.collect()
}

/// How many each may hold at the most.
fn share(counts: &[usize], stay: usize) -> usize {
    let held = |share: usize| counts.iter().map(|count| *count.min(&share)).sum::<usize>();
    let (mut fits, mut too_many) = (0, counts.iter().max().unwrap_or(&0) + 1);
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        if held(middle) <= stay { fits = middle } else { too_many = middle }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_who_holds_the_most_go() {
        let held = || {
            let many = (0..10).map(|n| ("many", n, format!("m{n}")));
            let few = (0..3).map(|n| ("few", n, format!("f{n}")));
            many.chain(few)
        };
        let mut gone = surplus(held(), 9);
        gone.sort();
        assert_eq!(gone, ["m0", "m1", "m2", "m3"]);
        assert_eq!(surplus(held(), 4).len(), 13 - 4);
        assert!(surplus(held(), 13).is_empty());
    }

    #[test]
    fn where_there_are_more_holders_than_places_the_oldest_of_all_go() {
        let mut gone = surplus((0..10).map(|n| (n, n, n)), 3);
        gone.sort_unstable();
        assert_eq!(gone, [0, 1, 2, 3, 4, 5, 6]);
    }
}
