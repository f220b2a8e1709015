//! A small drawing of three sites and the links between them.

use super::beat::Link;
use crate::look::{BAD, BOLD, painted};

/// How long the line between the upper two sites is.
const BAR: usize = 24;

/// The sites at three corners, each link with its round trip, or cut.
pub(super) fn drawn(links: &[Link]) -> String {
    let [ab, ac, bc] = links else { return String::new() };
    let [a, b] = &ab.between;
    let c = &ac.between[1];
    let bar = format!(" {} ", label(ab));
    let bar = if ab.cut { format!("{bar:╌^BAR$}") } else { format!("{bar:─^BAR$}") };
    let (left, right) = (stroke(ac, '╲'), stroke(bc, '╱'));
    let (ac, bc) = (label(ac), label(bc));
    let lines = [
        format!("{a:>10} {bar} {b}"),
        format!("{left:>11}{right:>26}"),
        format!("{:13}{ac}{bc:>width$}", "", width = 22 - ac.chars().count()),
        format!("{left:>18}{right:>12}"),
        format!("{:12}{c:^24}", "").trim_end().to_owned(),
    ];
    let names = [a, b, c].map(|name| (name.as_str(), BOLD));
    lines.map(|line| painted(&painted(&line, &[("cut", BAD)]), &names)).join("\n")
}

fn stroke(link: &Link, line: char) -> char {
    if link.cut { '·' } else { line }
}

fn label(link: &Link) -> String {
    match (link.cut, link.round_trip_ms) {
        (true, _) => "cut".to_owned(),
        (false, Some(ms)) => format!("{ms} ms"),
        (false, None) => "? ms".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn plain(cut: bool) -> String {
        let link = |a: &str, b: &str, ms| Link {
            between: [a.to_owned(), b.to_owned()],
            round_trip_ms: Some(ms),
            cut,
        };
        let links =
            [link("paris", "lyon", 7), link("paris", "nantes", 9), link("lyon", "nantes", 13)];
        // The first line holds the left margin, which the comparison would take away.
        format!("map\n{}", anstream::adapter::strip_str(&drawn(&links)))
    }

    #[test]
    fn links_show_their_round_trip() {
        expect![[r#"
            map
                 paris ───────── 7 ms ───────── lyon
                      ╲                         ╱
                         9 ms             13 ms
                             ╲           ╱
                                 nantes"#]]
        .assert_eq(&plain(false));
    }

    #[test]
    fn cut_links_are_cut() {
        expect![[r#"
            map
                 paris ╌╌╌╌╌╌╌╌╌ cut ╌╌╌╌╌╌╌╌╌╌ lyon
                      ·                         ·
                         cut                cut
                             ·           ·
                                 nantes"#]]
        .assert_eq(&plain(true));
    }
}
