//! The bytes of changes, which other versions must read: these may not change.

use cheops_merge::{Document, DocumentForm, WriterId};
use expect_test::{Expect, expect};

/// What an edit of `before` to `after` and one to `last` are in bytes.
fn check(form: DocumentForm, [before, after, last]: [&str; 3], expected: &Expect) {
    let mut document = Document::new(form);
    let mut lines = String::new();
    for (number, after) in [(1, after), (0x1234_5678_9abc, last)] {
        let change = document.edit(before.as_bytes(), after.as_bytes(), WriterId(number)).unwrap();
        let readable = change.iter().map(|byte| match byte {
            b' '..=b'~' => char::from(*byte).to_string(),
            _ => format!("<{byte:02x}>"),
        });
        lines.extend(readable.chain(["\n".to_owned()]));
    }
    expected.assert_eq(&lines);
    assert_eq!(document.content(), last.as_bytes());
}

#[test]
fn changes_of_texts_have_these_bytes() {
    check(
        DocumentForm::Text,
        ["one two", "one 2 two", "three"],
        &expect![[r#"
        <01>t<17><01><00><07>one two<00><03><00><04><00><02><02>2 <00><00><03><00>
        <01>t<18><bc><b5><e2><b3><c5><c6><04><01><01><01><00><03><01><01><02><05>three<00><01><08>
    "#]],
    );
}

#[test]
fn changes_of_deltas_have_these_bytes() {
    let delta = |text: &str, marks: &str| {
        let op = format!("    {{\n{marks}      \"insert\": \"{text}\"\n    }}\n");
        format!("{{\n  \"ops\": [\n{op}  ]\n}}\n")
    };
    let bold = "      \"attributes\": {\n        \"bold\": true\n      },\n";
    let texts = [delta("one", ""), delta("one", bold), delta("one two", bold)];
    check(
        DocumentForm::Text,
        [&texts[0], &texts[1], &texts[2]],
        &expect![[r#"
        <01>tH<01><00>5{<0a>  "ops": [<0a>    {<0a>      "insert": "one"<0a>    }<0a>  ]<0a>}<0a><01><01><00><03><01><04>bold<01><04>true
        <01>t <bc><b5><e2><b3><c5><c6><04><01><01><01><01><02><00><03><00><02><04> two<01><04>bold<04>true
    "#]],
    );
}

#[test]
fn changes_of_json_have_these_bytes() {
    let texts = ["1\n", "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n", "{\n  \"b\": null\n}\n"];
    check(
        DocumentForm::Json,
        texts,
        &expect![[r#"
        <01>j<1e><01><00><02>1<0a><02><03><00><00><02>{}<00><02>/a<02>[]<02><02>/a<01><02><02><01>1<01>2
        <01>j <bc><b5><e2><b3><c5><c6><04><01><01><01><02><03><01><02>/a<00><02>/b<04>null<02><02>/a<01><01><02>
    "#]],
    );
}

#[test]
fn documents_can_be_handed_from_thread_to_thread() {
    fn can<T: Send + Sync>() {}
    can::<Document>();
}
