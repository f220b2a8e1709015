//! Documents that several sites edit: what comes of it, in whatever order the changes arrive.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod golden;
mod hostile;
mod json;
mod marks;
mod oracle;
mod orders;
mod text;

use cheops_merge::{Document, DocumentForm, WriterId};

/// A site's document; its writers are numbered by what is given here.
struct Site {
    document: Document,
    next: u64,
}

impl Site {
    fn new(form: DocumentForm, number: u64) -> Self {
        Self { document: Document::new(form), next: number << 32 }
    }

    /// Three sites that begin with the same content.
    fn three(form: DocumentForm, before: &str, edits: [&str; 3]) -> ([Self; 3], [Vec<u8>; 3]) {
        let mut sites = [1, 2, 3].map(|number| Self::new(form, number));
        let changes = std::array::from_fn(|i| sites[i].edit(before, edits[i]));
        (sites, changes)
    }

    /// Edits, and holds what it wanted to hold.
    fn edit(&mut self, before: &str, after: &str) -> Vec<u8> {
        self.next += 1;
        let writer = WriterId(scatter(self.next));
        let change = self.document.edit(before.as_bytes(), after.as_bytes(), writer).unwrap();
        if !change.is_empty() {
            assert_eq!(cheops_merge::writers(&change).unwrap(), [writer].into());
        }
        change
    }

    fn text(&self) -> String {
        String::from_utf8(self.document.content()).unwrap()
    }
}

/// As hashes do, so that sites win and lose ties in no order.
fn scatter(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995
}

/// What every site says, in any order of these changes.
fn merged(form: DocumentForm, changes: &[Vec<u8>]) -> String {
    let mut found = None;
    for turn in 0..changes.len() {
        let mut site = Site::new(form, 9);
        let mut order: Vec<_> = changes.iter().collect();
        order.rotate_left(turn);
        for change in order.iter().chain(order.iter().rev()) {
            site.document.merge(change).unwrap();
        }
        let text = site.text();
        assert_eq!(*found.get_or_insert_with(|| text.clone()), text);
    }
    found.unwrap_or_default()
}

/// What comes of three edits of one content.
fn three(form: DocumentForm, before: &str, edits: [&str; 3]) -> String {
    let (mut sites, changes) = Site::three(form, before, edits);
    let all = merged(form, &changes);
    for site in &mut sites {
        for change in &changes {
            site.document.merge(change).unwrap();
        }
        assert_eq!(site.text(), all);
    }
    all
}

/// What comes of two.
fn two(form: DocumentForm, before: &str, one: &str, other: &str) -> String {
    let mut sites = [Site::new(form, 1), Site::new(form, 2)];
    let changes = [sites[0].edit(before, one), sites[1].edit(before, other)];
    merged(form, &changes.into_iter().filter(|change| !change.is_empty()).collect::<Vec<_>>())
}
