//! Bytes that no honest site sends: errors, and documents that stay as they were.

use std::collections::BTreeSet;

use cheops_merge::{
    BadChange, Document, DocumentForm, LARGEST_CHANGE, LARGEST_WHOLE, WriterId, writers,
};
use proptest::prelude::*;
use serde::Serialize;

use crate::{Site, merged, scatter};

const TEXT: DocumentForm = DocumentForm::Text;
const JSON: DocumentForm = DocumentForm::Json;

/// As `docs/format.md` has it, for what the crate itself would never write.
#[derive(Serialize)]
struct Edit(u64, Base, Body);

#[derive(Serialize)]
enum Base {
    Seed(Vec<u8>),
    Edits(Vec<u64>),
}

#[derive(Serialize)]
enum Body {
    Text(Vec<TextRun>),
    Delta(Vec<TextRun>),
    Json(Vec<JsonEdit>),
}

#[derive(Serialize, Clone)]
enum TextRun {
    Keep(u32, Vec<(String, Option<String>)>),
    Delete(u32),
    Insert(String, Vec<(String, String)>),
}

#[derive(Serialize)]
enum JsonEdit {
    Set(String, String),
    Remove(String),
    List(String, Vec<ListRun>),
}

#[derive(Serialize, Clone)]
enum ListRun {
    Keep(u32),
    Delete(u32),
    Insert(Vec<String>),
}

fn change(edit: &Edit) -> Vec<u8> {
    let one = postcard::to_stdvec(edit).unwrap();
    let form = if matches!(edit.2, Body::Json(_)) { b'j' } else { b't' };
    let mut bytes = vec![1, form];
    bytes.extend(postcard::to_stdvec(&one.len()).unwrap());
    bytes.extend(one);
    bytes
}

fn insert(text: &str) -> TextRun {
    TextRun::Insert(text.to_owned(), Vec::new())
}

/// A few real changes of each form, one resting on the other.
fn real(form: DocumentForm) -> Vec<Vec<u8>> {
    let texts = match form {
        TEXT => ["one two", "one three two", "one three\nfour"],
        JSON => [r#"{"a":[1,{"b":2}]}"#, r#"{"a":[1,5,{"b":2}],"c":"d"}"#, r#"{"c":"e"}"#],
    };
    let mut site = Site::new(form, 1);
    texts.iter().map(|text| site.edit("", text)).collect()
}

fn is_misfit(outcome: &Result<(), BadChange>) -> bool {
    matches!(outcome, Err(BadChange::Misfit { .. }))
}

#[test]
fn what_is_cut_at_any_place_is_refused() {
    for form in [TEXT, JSON] {
        for change in real(form) {
            for end in 0..change.len() {
                // Without any edit it says nothing, and does nothing.
                let outcome = Document::new(form).merge(&change[..end]);
                assert_eq!(outcome.is_err(), end != 2, "{end}: {outcome:?}");
            }
        }
    }
}

#[test]
fn changes_of_another_form_or_version_are_refused() {
    let outcome = Document::new(JSON).merge(&real(TEXT)[0]);
    assert_eq!(outcome, Err(BadChange::OtherForm { found: TEXT, expected: JSON }));
    let mut later = real(TEXT)[0].clone();
    later[0] = 2;
    assert_eq!(Document::new(TEXT).merge(&later), Err(BadChange::Version(2)));
    let mut relabelled = real(TEXT)[0].clone();
    relabelled[1] = b'j';
    assert!(Document::new(JSON).merge(&relabelled).is_err());
}

#[test]
fn every_bit_that_is_turned_over_is_an_error_or_another_edit() {
    for form in [TEXT, JSON] {
        let changes = real(form);
        for (number, change) in changes.iter().enumerate() {
            for bit in 0..change.len() * 8 {
                let mut turned = change.clone();
                turned[bit / 8] ^= 1 << (bit % 8);
                let mut document = Document::new(form);
                for (i, change) in changes.iter().enumerate() {
                    let _outcome = document.merge(if i == number { &turned } else { change });
                }
                let _content = document.content();
                let _writers = writers(&turned);
            }
        }
    }
}

#[test]
fn edits_that_do_not_fit_are_refused_and_leave_the_document_as_it_was() {
    let first = Edit(1, Base::Seed(Vec::new()), Body::Text(vec![insert("abc")]));
    let on = |body| Edit(2, Base::Edits(vec![1]), body);
    let text = |runs: &[TextRun]| on(Body::Text(runs.to_vec()));
    let marked = |name: &str, value: &str| {
        let marks = vec![(name.to_owned(), value.to_owned())];
        on(Body::Delta(vec![TextRun::Insert("x".to_owned(), marks)]))
    };
    for (what, edit) in [
        ("deletes more than there is", text(&[TextRun::Delete(4)])),
        ("keeps more than there is", text(&[TextRun::Keep(u32::MAX, Vec::new()), insert("x")])),
        ("more in all than a number holds", text(&vec![TextRun::Delete(u32::MAX); 10])),
        ("deletes nothing", text(&[TextRun::Delete(0)])),
        ("inserts nothing", text(&[insert("")])),
        ("changes nothing", text(&[TextRun::Keep(3, Vec::new())])),
        ("has no runs", text(&[])),
        ("marks a plain text", text(&[TextRun::Keep(1, vec![("b".to_owned(), None)])])),
        ("a mark without a name", marked("", "true")),
        ("a mark that is no JSON", marked("b", "tru")),
        ("a mark that is not in one form", marked("b", "[1, 2]")),
        ("a mark that is null", marked("b", "null")),
        ("a mark that is too deep", marked("b", &format!("{}{}", "[".repeat(60), "]".repeat(60)))),
        ("rests on itself", Edit(2, Base::Edits(vec![1, 2]), Body::Text(vec![insert("x")]))),
        ("rests on nothing", Edit(2, Base::Edits(vec![]), Body::Text(vec![insert("x")]))),
        ("a reserved writer", Edit(u64::MAX, Base::Seed(vec![]), Body::Text(vec![insert("x")]))),
        (
            "begins with what is no text",
            Edit(2, Base::Seed(vec![255]), Body::Text(vec![insert("x")])),
        ),
        (
            "begins with what is no delta",
            Edit(2, Base::Seed(vec![b'x']), Body::Delta(vec![insert("x")])),
        ),
    ] {
        let mut document = Document::new(TEXT);
        document.merge(&change(&first)).unwrap();
        let before = document.whole().unwrap();
        let outcome = document.merge(&change(&edit));
        assert!(is_misfit(&outcome), "{what}: {outcome:?}");
        assert_eq!(document.whole().unwrap(), before, "{what}");
        assert_eq!(document.content(), b"abc", "{what}");
    }
}

#[test]
fn edits_of_json_that_do_not_fit_are_refused() {
    let own = |text: &str| text.to_owned();
    let first = Edit(
        1,
        Base::Seed(Vec::new()),
        Body::Json(vec![
            JsonEdit::Set(own(""), own("{}")),
            JsonEdit::Set(own("/l"), own("[]")),
            JsonEdit::List(own("/l"), vec![ListRun::Insert(vec![own("1"), own("2")])]),
        ]),
    );
    let set = |pointer: &str, value: &str| vec![JsonEdit::Set(own(pointer), own(value))];
    let list = |runs: &[ListRun]| vec![JsonEdit::List(own("/l"), runs.to_vec())];
    for (what, edits) in [
        ("no pointer", set("l", "1")),
        ("an escape that is none", set("/~2", "1")),
        ("a value that is none", set("/x", "one")),
        ("a value with spaces", set("/x", " 1")),
        ("a value with members", set("/x", r#"{"a":1}"#)),
        ("a value with elements", set("/x", "[1]")),
        ("what is so already", set("", "{}")),
        ("a name that serde_json has for itself", set("/$serde_json::private::Number", "1")),
        ("too deep", set(&"/a".repeat(101), "1")),
        ("too long", set(&format!("/{}", "a".repeat(5000)), "1")),
        ("removes what is not there", vec![JsonEdit::Remove(own("/x"))]),
        (
            "one place twice",
            vec![JsonEdit::Set(own("/x"), own("1")), JsonEdit::Set(own("/x"), own("2"))],
        ),
        ("deletes too many elements", list(&[ListRun::Keep(2), ListRun::Delete(1)])),
        (
            "keeps too many elements",
            list(&[ListRun::Keep(u32::MAX), ListRun::Insert(vec![own("1")])]),
        ),
        ("inserts no elements", list(&[ListRun::Insert(vec![])])),
        ("inserts what is no value", list(&[ListRun::Insert(vec![own("[1, 2]")])])),
        ("changes nothing in a list", list(&[ListRun::Keep(1)])),
        ("nothing at all", vec![]),
    ] {
        let mut document = Document::new(JSON);
        document.merge(&change(&first)).unwrap();
        let before = document.content();
        let outcome = document.merge(&change(&Edit(2, Base::Edits(vec![1]), Body::Json(edits))));
        assert!(is_misfit(&outcome), "{what}: {outcome:?}");
        assert_eq!(document.content(), before, "{what}");
    }
    let seed = Edit(2, Base::Seed(b"{\"a\":1}".to_vec()), Body::Json(set("/x", "1")));
    assert!(
        is_misfit(&Document::new(JSON).merge(&change(&seed))),
        "a seed that is not in one form"
    );
}

#[test]
fn an_edit_that_does_not_fit_counts_nowhere_whether_it_waited_or_not() {
    let good = change(&Edit(1, Base::Seed(Vec::new()), Body::Text(vec![insert("abc")])));
    let bad = change(&Edit(2, Base::Edits(vec![1]), Body::Text(vec![TextRun::Delete(9)])));
    let on_bad = change(&Edit(3, Base::Edits(vec![2]), Body::Text(vec![insert("x")])));
    let on_good = change(&Edit(4, Base::Edits(vec![1]), Body::Text(vec![insert("y")])));
    let all = [&good, &bad, &on_bad, &on_good];
    for turn in 0..4 {
        let mut document = Document::new(TEXT);
        for i in 0..4 {
            let _outcome = document.merge(all[(i + turn) % 4]);
        }
        assert_eq!(document.content(), b"yabc", "{turn}");
    }
}

#[test]
fn what_comes_with_an_edit_that_does_not_fit_does_not_count_either() {
    let seed = || Base::Seed(b"abc".to_vec());
    for runs in [vec![TextRun::Keep(3, Vec::new())], vec![TextRun::Delete(4)]] {
        let mut document = Document::new(TEXT);
        assert!(is_misfit(&document.merge(&change(&Edit(1, seed(), Body::Text(runs))))));
        assert!(document.is_empty());
        document.edit(b"", b"x", WriterId(2)).unwrap();
        assert_eq!(document.content(), b"x");
    }
}

#[test]
fn a_base_that_names_more_than_it_must_means_the_same() {
    let edit = |writer, base, at, text| {
        let runs = vec![TextRun::Keep(at, Vec::new()), insert(text)];
        change(&Edit(writer, base, Body::Text(runs)))
    };
    let first = change(&Edit(1, Base::Seed(Vec::new()), Body::Text(vec![insert("a")])));
    let changes = |base| {
        [
            first.clone(),
            edit(2, Base::Edits(vec![1]), 1, "b"),
            edit(3, Base::Edits(vec![2]), 2, "c"),
            edit(4, Base::Edits(base), 2, "d"),
            edit(5, Base::Edits(vec![3, 4]), 4, "e"),
        ]
    };
    for base in [vec![2], vec![1, 2], vec![2, 1], vec![2, 2, 1, 2]] {
        assert_eq!(
            merged(TEXT, &changes(base.clone())),
            merged(TEXT, &changes(vec![2])),
            "{base:?}"
        );
    }
}

#[test]
fn two_edits_of_one_writer_are_refused() {
    let edit = |text| change(&Edit(1, Base::Seed(Vec::new()), Body::Text(vec![insert(text)])));
    let mut document = Document::new(TEXT);
    document.merge(&edit("one")).unwrap();
    assert_eq!(document.merge(&edit("two")), Err(BadChange::WriterUsed(WriterId(1))));
    assert_eq!(document.content(), b"one");
}

#[test]
fn edits_that_wait_for_each_other_wait_for_ever_and_are_not_many() {
    let mut document = Document::new(TEXT);
    let on = |writer, base| {
        change(&Edit(writer, Base::Edits(vec![base]), Body::Text(vec![insert("x")])))
    };
    document.merge(&on(1, 2)).unwrap();
    document.merge(&on(2, 1)).unwrap();
    let refused = (3..3_000).find(|number| document.merge(&on(*number, number + 1)).is_err());
    assert!(refused.is_some());
    assert_eq!(document.merge(&on(5_000, 1)), Err(BadChange::TooManyWait));
    document.edit(b"", b"works", WriterId(9_000)).unwrap();
    assert_eq!(document.content(), b"works");
}

#[test]
fn numbers_that_promise_more_than_there_is_take_no_room() {
    let huge = postcard::to_stdvec(&u64::MAX).unwrap();
    let large = postcard::to_stdvec(&(u64::from(u32::MAX))).unwrap();
    for count in [&huge, &large] {
        for before in [
            &[][..],
            &[0, 1],
            &[7, 0],
            &[7, 1],
            &[7, 0, 0, 0],
            &[7, 0, 0, 0, 1, 2],
            &[7, 0, 0, 0, 1, 0, 0],
        ] {
            let mut one = before.to_vec();
            one.extend(count);
            let mut bytes = vec![1, b't'];
            bytes.extend(postcard::to_stdvec(&one.len()).unwrap());
            bytes.extend(&one);
            assert!(Document::new(TEXT).merge(&bytes).is_err());
            assert!(Document::new(TEXT).merge(&[&[1, b't'], &one[..]].concat()).is_err());
        }
    }
}

#[test]
fn what_is_too_large_is_refused() {
    let found = LARGEST_WHOLE + 1;
    assert_eq!(Document::new(TEXT).merge(&vec![1; found]), Err(BadChange::TooLarge { found }));
    let long =
        change(&Edit(1, Base::Seed(vec![]), Body::Text(vec![insert(&"x".repeat(LARGEST_CHANGE))])));
    assert!(matches!(Document::new(TEXT).merge(&long), Err(BadChange::TooLarge { .. })));
}

#[test]
fn the_most_that_one_change_can_say_is_taken_in() {
    let text = "a".repeat(LARGEST_CHANGE - 100);
    let first = change(&Edit(1, Base::Seed(vec![]), Body::Text(vec![insert(&text)])));
    let on = |body| change(&Edit(2, Base::Edits(vec![1]), body));
    let each =
        |count, two: [TextRun; 2]| two.iter().cycle().take(count).cloned().collect::<Vec<_>>();
    let deletes = each(1 << 15, [TextRun::Keep(1, Vec::new()), TextRun::Delete(1)]);
    let found = merged(TEXT, &[first.clone(), on(Body::Text(deletes.clone()))]);
    assert_eq!(found.len(), text.len() - (1 << 14));
    let bold = TextRun::Keep(1, vec![("b".to_owned(), Some("1".to_owned()))]);
    let marks = each(1 << 12, [TextRun::Keep(1, Vec::new()), bold]);
    assert!(
        merged(TEXT, &[first.clone(), on(Body::Delta(marks))]).matches("\"b\"").count() == 1 << 11
    );
    let mut document = Document::new(TEXT);
    document.merge(&first).unwrap();
    let more = [&deletes[..], &[insert("x")]].concat();
    assert!(is_misfit(&document.merge(&on(Body::Text(more)))));

    let own = |text: &str| text.to_owned();
    let mut edits = vec![JsonEdit::Set(own(""), own("{}"))];
    edits.extend((0..40_000).map(|i| JsonEdit::Set(format!("/{i}"), own("1"))));
    edits.push(JsonEdit::List(own("/0"), vec![ListRun::Insert(vec![own("1"); 200_000])]));
    let first = change(&Edit(1, Base::Seed(vec![]), Body::Json(edits)));
    let runs = [ListRun::Keep(1), ListRun::Delete(1)];
    let runs = runs.iter().cycle().take(1 << 15).cloned().collect();
    let second = on(Body::Json(vec![JsonEdit::List(own("/0"), runs)]));
    assert!(merged(JSON, &[first, second]).len() > 40_000);
}

#[test]
fn texts_that_differ_in_too_many_places_are_replaced_there() {
    let words = |one: &str| {
        (0..60_000)
            .map(|i| format!("{}{i} ", if i % 3 == 1 { one } else { "w" }))
            .collect::<String>()
    };
    let mut site = Site::new(TEXT, 1);
    site.edit("", &words("old"));
    site.edit("", &words("new"));
    let lines = |one: &str| words(one).replace(' ', "\n");
    site.edit("", &lines("old"));
    site.edit("", &lines("new"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_never_more_than_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..200), json in any::<bool>(),
    ) {
        let (form, byte) = if json { (JSON, b'j') } else { (TEXT, b't') };
        let mut document = Document::new(form);
        let _outcome = document.merge(&bytes);
        let _outcome = document.merge(&[&[1, byte, bytes.len() as u8 & 0x7f], &bytes[..]].concat());
        let _content = document.content();
    }

    #[test]
    fn changes_with_some_bytes_of_others_are_never_more_than_an_error(
        json in any::<bool>(), which in 0..3usize,
        wrong in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![0..4u8, any::<u8>()]), 1..4),
    ) {
        let form = if json { JSON } else { TEXT };
        let mut changes = real(form);
        let length = changes[which].len();
        for (at, byte) in wrong {
            // Behind the version, the form and the length, or it would end there.
            changes[which][3 + at.index(length - 3)] = byte;
        }
        // Sites that hear it in different orders do not differ.
        let mut sites = [Document::new(form), Document::new(form)];
        for change in &changes {
            let _outcome = sites[0].merge(change);
        }
        for change in changes.iter().rev() {
            let _outcome = sites[1].merge(change);
        }
        // Of two edits of one writer that counts which came first.
        let all: Vec<_> = changes.iter().filter_map(|change| writers(change).ok()).flatten().collect();
        let different: BTreeSet<_> = all.iter().collect();
        if different.len() == all.len() {
            prop_assert_eq!(sites[0].content(), sites[1].content());
        }
        let writer = WriterId(scatter(77));
        if let Ok(change) = sites[0].edit(b"", b"\"after all\"", writer) && !change.is_empty() {
            prop_assert!(!sites[0].content().is_empty());
        }
    }
}
