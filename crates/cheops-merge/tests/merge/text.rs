use cheops_merge::{Document, DocumentForm, LARGEST_CONTENT, NotADocument, WriterId};

use crate::{Site, merged, scatter, three, two};

const TEXT: DocumentForm = DocumentForm::Text;

#[test]
fn edits_of_different_places_all_count() {
    for (before, edits, after) in [
        ("", ["", "", ""], ""),
        ("a\nb\nc\n", ["A\nb\nc\n", "a\nB\nc\n", "a\nb\nC\n"], "A\nB\nC\n"),
        ("one two three", ["1 two three", "one 2 three", "one two 3"], "1 2 3"),
        ("a\nb\nc\n", ["b\nc\n", "a\nc\n", "a\nb\n"], ""),
        (
            "the cat sat",
            ["the dog sat", "the black cat sat", "the cat sat down"],
            "the black dog sat down",
        ),
        (
            "key: 1\n",
            ["key: 2\n", "key: 1\nnew: 3\n", "# why\nkey: 1\n"],
            "# why\nkey: 2\nnew: 3\n",
        ),
        ("東京に行く", ["東京へ行く", "東京に行った", "明日東京に行く"], "明日東京へ行った"),
        ("😀 xx", ["😀👍 xx", "😀 y", "😀 xx z"], "😀👍 y z"),
        ("x\r\ny\r\n", ["z\r\ny\r\n", "x\r\ny\r\nw\r\n", "x\r\ny\r\n"], "z\r\ny\r\nw\r\n"),
    ] {
        let changed: Vec<_> = edits.iter().filter(|after| **after != before).collect();
        let found = match changed[..] {
            [] => before.to_owned(),
            [one, other] => two(TEXT, before, one, other),
            _ => three(TEXT, before, edits),
        };
        assert_eq!(found, after, "{before:?} {edits:?}");
    }
}

#[test]
fn what_several_type_at_one_place_stands_one_after_the_other() {
    let found = three(TEXT, "Dear ,\n", ["Dear Anna,\n", "Dear Bert,\n", "Dear Carla,\n"]);
    for name in ["Anna", "Bert", "Carla"] {
        assert!(found.contains(name), "{found}");
    }
    assert_eq!(found.len(), "Dear AnnaBertCarla,\n".len());

    let lines = ["begin\nfirst one\nfirst two\nend\n", "begin\nsecond one\nsecond two\nend\n"];
    let found = two(TEXT, "begin\nend\n", lines[0], lines[1]);
    assert!(found.contains("first one\nfirst two\n") && found.contains("second one\nsecond two\n"));
}

#[test]
fn a_sentence_that_two_write_anew_does_not_become_a_mixture() {
    let found = two(
        TEXT,
        "we meet at noon",
        "nobody comes before three",
        "everybody left yesterday evening",
    );
    assert!(found.contains("nobody comes before three"), "{found}");
    assert!(found.contains("everybody left yesterday evening"), "{found}");
}

#[test]
fn sites_that_begin_with_the_same_text_do_not_double_it() {
    assert_eq!(two(TEXT, "same\n", "same\none\n", "zero\nsame\n"), "zero\nsame\none\n");
}

#[test]
fn sites_that_begin_with_different_texts_keep_both() {
    let mut sites = [Site::new(TEXT, 1), Site::new(TEXT, 2)];
    let changes = [sites[0].edit("here\n", "here\n!\n"), sites[1].edit("there\n", "there\n?\n")];
    let found = merged(TEXT, &changes);
    assert!(found.contains("here\n!\n") && found.contains("there\n?\n"), "{found}");
}

#[test]
fn the_first_change_brings_along_what_was_there_and_later_ones_do_not() {
    let long = "a line that was there before\n".repeat(100);
    let mut site = Site::new(TEXT, 1);
    let first = site.edit(&long, &format!("{long}first\n"));
    let second = site.edit("", &format!("{long}first\nsecond\n"));
    assert!(first.len() > long.len());
    assert!(second.len() < 100, "{}", second.len());
    assert_eq!(merged(TEXT, &[second, first]), site.text());
}

#[test]
fn a_change_waits_for_what_it_rests_on() {
    let mut site = Site::new(TEXT, 1);
    let changes = ["a", "a b", "a b c"].map(|after| site.edit("", after));
    let mut other = Document::new(TEXT);
    other.merge(&changes[2]).unwrap();
    other.merge(&changes[1]).unwrap();
    assert!(other.is_empty());
    assert_eq!(other.content(), b"");
    other.merge(&changes[0]).unwrap();
    assert_eq!(other.content(), b"a b c");
}

#[test]
fn nothing_changes_where_nothing_differs() {
    let mut site = Site::new(TEXT, 1);
    assert_eq!(site.edit("same", "same"), b"");
    assert!(site.document.is_empty());
    site.edit("same", "other");
    assert_eq!(site.edit("ignored", "other"), b"");
}

#[test]
fn an_empty_text_is_no_file_and_the_other_way_round() {
    assert_eq!(two(TEXT, "gone\n", "", "gone\nbut this\n"), "but this\n");
    assert_eq!(two(TEXT, "", "one\n", "one\n"), "one\none\n");
}

#[test]
fn all_of_it_as_one_change_makes_the_same_document() {
    let (mut sites, changes) = Site::three(TEXT, "x y z", ["x1 y z", "x y1 z", "x y z1"]);
    for change in &changes {
        sites[0].document.merge(change).unwrap();
    }
    let last = sites[0].edit("", "x1 y1 z1 w");
    let whole = sites[0].document.whole().unwrap();
    let mut other = Document::new(TEXT);
    other.merge(&whole).unwrap();
    assert_eq!(other.content(), b"x1 y1 z1 w");
    assert_eq!(other.whole().unwrap(), whole);
    for change in changes.iter().chain([&last, &whole]) {
        other.merge(change).unwrap();
    }
    assert_eq!(other.content(), b"x1 y1 z1 w");
}

#[test]
fn what_a_site_holds_is_merged_without_being_recorded() {
    let (sites, changes) = Site::three(TEXT, "a\nb\n", ["a\nb\nc\n", "A\nb\n", "a\nB\n"]);
    let before = sites[0].document.whole().unwrap();
    let merge = |found: &str, changes: &[&[u8]]| {
        String::from_utf8(sites[0].document.with_local(found.as_bytes(), changes).unwrap()).unwrap()
    };
    assert_eq!(merge("a\nb\nc\n", &[]), "a\nb\nc\n");
    assert_eq!(merge("local\na\nb\nc\n", &[&changes[1], &changes[2]]), "local\nA\nB\nc\n");
    assert_eq!(merge("", &[&changes[1]]), "A");
    assert_eq!(sites[0].document.whole().unwrap(), before);
    assert_eq!(sites[0].text(), "a\nb\nc\n");
}

#[test]
fn who_has_merged_nothing_yet_may_hold_what_the_changes_were_made_on() {
    let (_, changes) = Site::three(TEXT, "a\nb\n", ["a\nb\nc\n", "A\nb\n", "a\nB\n"]);
    let changes: Vec<&[u8]> = changes.iter().map(Vec::as_slice).collect();
    let document = Document::new(TEXT);
    assert_eq!(document.with_local(b"a\nb\n", &changes).unwrap(), b"A\nB\nc\n");
    assert_eq!(document.with_local(b"a\nb\n", &[]).unwrap(), b"a\nb\n");
    assert_eq!(document.with_local(b"", &[]).unwrap(), b"");
}

#[test]
fn contents_that_are_no_text_or_too_large_are_refused_and_change_nothing() {
    let mut document = Document::new(TEXT);
    document.edit(b"", b"x", WriterId(1)).unwrap();
    let large = vec![b'a'; LARGEST_CONTENT + 1];
    for (after, error) in [
        (&b"a\xffb"[..], NotADocument::NotText { at: 1 }),
        (&large[..], NotADocument::TooLarge { found: LARGEST_CONTENT + 1 }),
    ] {
        assert_eq!(document.edit(b"", after, WriterId(2)), Err(error));
        assert_eq!(document.content(), b"x");
    }
    assert_eq!(document.edit(b"", b"y", WriterId(1)), Err(NotADocument::WriterUsed(WriterId(1))));
    let most = vec![b'a'; LARGEST_CONTENT];
    let found = document.edit(b"", &most, WriterId(2));
    assert!(matches!(found, Err(NotADocument::TooMuchChanged { .. })), "{found:?}");
}

#[test]
fn a_long_history_and_long_texts_are_taken_in() {
    let mut document = Document::new(TEXT);
    let mut text = "a line\n".repeat(20_000);
    let mut changes =
        vec![document.edit(text.as_bytes(), b"start\n", WriterId(scatter(0))).unwrap()];
    text = "start\n".to_owned();
    for i in 1..1_000u64 {
        text.push_str(&format!("line {i}\n"));
        changes.push(document.edit(b"", text.as_bytes(), WriterId(scatter(i))).unwrap());
    }
    let mut other = Document::new(TEXT);
    for change in &changes {
        other.merge(change).unwrap();
    }
    assert_eq!(other.content(), text.as_bytes());
}
