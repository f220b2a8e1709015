use cheops_merge::{Document, DocumentForm, NotADocument, WriterId};
use serde_json::Value;

use crate::{Site, merged, three, two};

const JSON: DocumentForm = DocumentForm::Json;

/// Compared as values: how they are written has a test of its own.
fn assert_says(found: &str, expected: &str, case: &str) {
    if expected.is_empty() {
        assert_eq!(found, "", "{case}");
    } else {
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(value(found), value(expected), "{case}");
    }
}

#[test]
fn members_of_two_sites_are_merged_one_by_one() {
    for (case, before, one, other, after) in [
        (
            "different members",
            r#"{"a":1,"b":2}"#,
            r#"{"a":3,"b":2}"#,
            r#"{"a":1,"b":4}"#,
            r#"{"a":3,"b":4}"#,
        ),
        (
            "members of one that both made",
            "",
            r#"{"o":{"x":1}}"#,
            r#"{"o":{"y":2}}"#,
            r#"{"o":{"x":1,"y":2}}"#,
        ),
        ("the same", r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":2}"#, r#"{"a":2}"#),
        ("one removes, one adds", r#"{"a":1}"#, "{}", r#"{"a":1,"b":2}"#, r#"{"b":2}"#),
        (
            "one removes what another adds to",
            r#"{"o":{"x":1},"p":0}"#,
            r#"{"p":0}"#,
            r#"{"o":{"x":1,"y":2},"p":0}"#,
            r#"{"o":{"y":2},"p":0}"#,
        ),
        (
            "one removes much above what another adds to",
            r#"{"o":{"p":{"q":{}}}}"#,
            "{}",
            r#"{"o":{"p":{"q":{"r":1}}}}"#,
            r#"{"o":{"p":{"q":{"r":1}}}}"#,
        ),
        ("one removes the file, another adds", r#"{"a":1}"#, "", r#"{"a":1,"b":2}"#, r#"{"b":2}"#),
        ("both remove", r#"{"a":1,"b":2}"#, r#"{"b":2}"#, r#"{"a":1}"#, "{}"),
        ("both remove the file", r#"{"a":1}"#, "", " \n", ""),
        ("elements at both ends", "[2]", "[1,2]", "[2,3]", "[1,2,3]"),
        ("an element goes, another comes", "[1,2,3]", "[1,3]", "[1,2,3,4]", "[1,3,4]"),
        (
            "elements are whole",
            r#"[{"a":1}]"#,
            r#"[{"a":2}]"#,
            r#"[{"a":1},{"b":3}]"#,
            r#"[{"a":2},{"b":3}]"#,
        ),
        (
            "one removes a list another adds to",
            r#"{"l":[1]}"#,
            "{}",
            r#"{"l":[1,2]}"#,
            r#"{"l":[2]}"#,
        ),
        (
            "a list within",
            r#"{"o":{"l":[1,2]}}"#,
            r#"{"o":{"l":[1]}}"#,
            r#"{"o":{"l":[1,2,3]}}"#,
            r#"{"o":{"l":[1,3]}}"#,
        ),
        (
            "names with signs",
            r#"{"a/b":{"~":1}}"#,
            r#"{"a/b":{"~":2}}"#,
            r#"{"a/b":{"~":1,"":{"/":3}}}"#,
            r#"{"a/b":{"~":2,"":{"/":3}}}"#,
        ),
        (
            "a scalar for what another adds to",
            r#"{"o":{}}"#,
            r#"{"o":5}"#,
            r#"{"o":{"x":1}}"#,
            r#"{"o":5}"#,
        ),
        (
            "an object for a list",
            r#"{"o":[1]}"#,
            r#"{"o":{"x":2}}"#,
            r#"{"o":[1],"p":3}"#,
            r#"{"o":{"x":2},"p":3}"#,
        ),
        ("the root becomes another", r#"{"a":1}"#, "[1]", r#"{"a":1}"#, "[1]"),
        (
            "a null is a value",
            r#"{"a":1}"#,
            r#"{"a":null}"#,
            r#"{"a":1,"b":null}"#,
            r#"{"a":null,"b":null}"#,
        ),
        (
            "names like numbers",
            r#"{"0":{"1":2}}"#,
            r#"{"0":{"1":3}}"#,
            r#"{"0":{"1":2,"2":4}}"#,
            r#"{"0":{"1":3,"2":4}}"#,
        ),
        (
            "lists whose names are alike",
            r#"{"a%2Fb":[1],"a":{"b":[2]}}"#,
            r#"{"a%2Fb":[1,3],"a":{"b":[2]}}"#,
            r#"{"a%2Fb":[1],"a":{"b":[2,4]}}"#,
            r#"{"a%2Fb":[1,3],"a":{"b":[2,4]}}"#,
        ),
    ] {
        assert_says(&two(JSON, before, one, other), after, case);
    }
}

#[test]
fn of_two_values_for_one_member_one_counts_everywhere() {
    let found = three(JSON, r#"{"a":0}"#, [r#"{"a":1}"#, r#"{"a":"two"}"#, r#"{"a":{"b":3}}"#]);
    let found: Value = serde_json::from_str(&found).unwrap();
    let possible = ["1", "\"two\"", "{\"b\":3}"].map(|text| serde_json::from_str(text).unwrap());
    assert!(possible.contains(&found["a"]), "{found}");
}

#[test]
fn what_several_insert_into_a_list_is_all_there() {
    let found = three(JSON, "[0,9]", ["[0,1,2,9]", "[0,3,4,9]", "[0,5,6,9]"]);
    let found: Vec<u8> = serde_json::from_str(&found).unwrap();
    for pair in [[1, 2], [3, 4], [5, 6]] {
        assert!(found.windows(2).any(|two| two == pair), "{found:?}");
    }
    assert_eq!(found.len(), 8);
}

#[test]
fn what_was_removed_does_not_come_back_with_what_replaces_it() {
    let mut site = Site::new(JSON, 1);
    let changes = [r#"{"l":[1,2],"o":{"x":1}}"#, "{}", r#"{"l":[],"o":{}}"#]
        .map(|after| site.edit("", after));
    assert_says(&merged(JSON, &changes), r#"{"l":[],"o":{}}"#, "after removing");
}

#[test]
fn documents_are_written_in_one_way() {
    let written = |text: &str| {
        let mut document = Document::new(JSON);
        document.edit(b"", text.as_bytes(), WriterId(7)).unwrap();
        String::from_utf8(document.content()).unwrap()
    };
    assert_eq!(
        written("{\"b\": [1, {\"d\":2,\"c\":3}], \"a\": {}, \"n\": 1.50}"),
        "{\n  \"a\": {},\n  \"b\": [\n    1,\n    {\n      \"c\": 3,\n      \"d\": 2\n    }\n  ],\n  \"n\": 1.50\n}\n",
    );
    for number in ["123456789012345678901234567890", "0.1000", "1e400", "-0"] {
        let text = written(number);
        assert_eq!(text, written(&text));
        assert!(text.starts_with(&number[..2]), "{number} became {text}");
    }
    assert_eq!(written(" \"text\" "), "\"text\"\n");
    assert_eq!(written("[]"), "[]\n");
}

#[test]
fn how_a_document_is_written_is_no_edit_and_no_other_beginning() {
    let mut site = Site::new(JSON, 1);
    assert_eq!(site.edit(r#"{"a":1,"b":2}"#, "{ \"b\": 2, \"a\": 1 }"), b"");
    let mut sites = [Site::new(JSON, 1), Site::new(JSON, 2)];
    let changes = [sites[0].edit("[1,2]", "[1,2,3]"), sites[1].edit("[ 1, 2 ]\n", "[0,1,2]")];
    assert_says(&merged(JSON, &changes), "[0,1,2,3]", "equal but for spaces");
}

#[test]
fn what_is_no_json_or_too_deep_is_refused() {
    let mut document = Document::new(JSON);
    let mut refused = |after: &str| document.edit(b"", after.as_bytes(), WriterId(1)).unwrap_err();
    assert_eq!(refused("{\"a\": 1,\n x}"), NotADocument::NotJson { line: 2, column: 2 });
    let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(matches!(refused(&nested(101)), NotADocument::TooDeep { .. }));
    assert!(matches!(refused(&nested(100_000)), NotADocument::NotJson { .. }));
    let objects = format!("{}1{}", r#"{"a":"#.repeat(101), "}".repeat(101));
    assert!(matches!(refused(&objects), NotADocument::TooDeep { .. }));
    assert!(matches!(
        refused(&format!("{{\"{}\":1}}", "n".repeat(5000))),
        NotADocument::TooDeep { .. }
    ));
    assert!(document.edit(b"", nested(100).as_bytes(), WriterId(1)).is_ok());
}

#[test]
fn what_a_site_holds_is_merged_member_by_member() {
    let (sites, changes) =
        Site::three(JSON, r#"{"a":1}"#, [r#"{"a":1,"b":2}"#, r#"{"a":5}"#, r#"{"a":1,"c":[1]}"#]);
    let document = &sites[0].document;
    let found =
        document.with_local(br#"{"a":1,"b":3,"d":4}"#, &[&changes[1], &changes[2]]).unwrap();
    assert_says(std::str::from_utf8(&found).unwrap(), r#"{"a":5,"b":3,"c":[1],"d":4}"#, "local");
    let found =
        Document::new(JSON).with_local(b"{ \"a\" : 1 }", &[&changes[1], &changes[2]]).unwrap();
    assert_says(std::str::from_utf8(&found).unwrap(), r#"{"a":5,"c":[1]}"#, "nothing merged yet");
}
