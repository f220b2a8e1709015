//! `cheops logic`.

use expect_test::expect;
use serde_json::json;

use crate::binary::running::{Ran, cheops, command, file};

/// Two questions about operations `a-1.1` and `b-1.1`; of the first, what the answer is to be.
const CASES: &str = r#"[
  {"name": "both", "operations": [{"id": "a-1.1"}, {"id": "b-1.1"}], "state": "x\n",
   "config": {"z": 1, "y": 2}, "expect": ["a-1.1", {"id": "b-1.1", "command": "true"}]},
  {"operations": [{"id": "a-1.1"}, {"id": "b-1.1"}], "state": {"base64": "/w=="}}]"#;
const BOTH: &str = r#"echo '["a-1.1", {"id": "b-1.1", "command": "true"}]'"#;

fn check(program: &str, name: &str, cases: &str, format: &str) -> Ran {
    let cases = file(name, cases.as_bytes());
    let mut ran = cheops(&["-o", format, "logic", "check", program, cases.to_str().unwrap()]);
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/");
    // Whether the clock can be changed is up to the machine.
    let is_of_clock = |line: &&str| !line.starts_with("the clock was not changed");
    ran.err = ran.err.lines().filter(is_of_clock).map(|line| format!("{line}\n")).collect();
    (ran.out, ran.err) = (ran.out.replace(folder, ""), ran.err.replace(folder, ""));
    ran
}

#[test]
fn a_program_that_is_a_function_of_its_input_and_says_what_is_expected_is_well() {
    check(BOTH, "logic-well.json", CASES, "table").check(
        0,
        &expect![[r#"
        logic-well.json: ok, 2 cases
    "#]],
    );
    let ran = check(BOTH, "logic-well-2.json", CASES, "json");
    let answer = json!(["a-1.1", {"id": "b-1.1", "command": "true"}]);
    assert_eq!((ran.code, &ran.json()["cases"][0]["answer"]), (Some(0), &answer));
}

#[test]
fn the_example_is_well() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shopping");
    let ran = command(&["logic", "check", "python3 shopping.py", "cases.json"])
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}");
    assert_eq!(said, "cases.json: ok, 6 cases\n");
    let ran = cheops(&["matrix", "check", &format!("{folder}/matrix.yaml")]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
}

#[test]
fn what_depends_on_something_else_than_the_input_is_told_with_both_answers() {
    for (n, (program, what)) in [
        (r#"[ "$TZ" = UTC ] && echo '["a-1.1"]' || echo '[]'"#, "in another directory,"),
        (r#"[ -n "$HOME" ] && echo '["a-1.1"]' || echo '[]'"#, "in another directory,"),
        (r#"[ -z "$(ls -l | grep ' -> ')" ] && echo '["a-1.1"]' || echo '[]'"#, "in another"),
        (r#"[ "$(head -c 2)" = '{"' ] && echo '["a-1.1"]' || echo '[]'"#, "with members in"),
        (r#"cat > /dev/null; echo "[{\"id\": \"a-1.1\", \"command\": \"$$\"}]""#, "asked again"),
    ]
    .into_iter()
    .enumerate()
    {
        let one = r#"[{"operations": [{"id": "a-1.1"}], "state": ""}]"#;
        let ran = check(program, &format!("logic-unsteady-{n}.json"), one, "json");
        assert_eq!(ran.code, Some(1), "{program}: {}", ran.out);
        let problem = &ran.json()["cases"][0]["problems"][0];
        assert_eq!(problem["problem"], "two-answers", "{program}");
        let asked = problem["asked"].as_str().unwrap();
        assert!(asked.starts_with(what), "{program}: {asked}");
        assert_ne!(problem["answer"], ran.json()["cases"][0]["answer"], "{program}");
    }
    let by_case = r#"[ "$(head -c 2)" = '{"' ] && echo '["b-1.1"]' || echo '[]'"#;
    check(by_case, "logic-unsteady.json", CASES, "table").check(
        1,
        &expect![[r#"
        case 1, `both`
          two answers to one question, at first: ["b-1.1"]
          with members in another order and white space: []
          expected: ["a-1.1",{"command":"true","id":"b-1.1"}]
          it said: ["b-1.1"]

        case 2
          two answers to one question, at first: ["b-1.1"]
          with members in another order and white space: []

        logic-unsteady.json: 2 cases, 2 with problems
    "#]],
    );
}

#[test]
fn what_is_no_answer_is_told_and_why() {
    for (n, (program, why)) in [
        ("echo 3", "it did not answer with a list of ids"),
        (r#"echo '["c-1.1"]'"#, "it named `c-1.1`, about which it was not asked"),
        ("echo no milk >&2; exit 3", "it ended with exit code 3: no milk"),
        ("exec no-such-program-anywhere", "it ended with exit code 127"),
    ]
    .into_iter()
    .enumerate()
    {
        let ran = check(program, &format!("logic-bad-{n}.json"), CASES, "json");
        assert_eq!(ran.code, Some(1), "{program}: {}", ran.out);
        let problems = ran.json()["cases"][1]["problems"].clone();
        assert_eq!(problems.as_array().unwrap().len(), 1, "{program}: {problems}");
        assert!(problems[0]["why"].as_str().unwrap().starts_with(why), "{program}: {problems}");
    }
    let one = r#"[{"operations": [{"id": "a-1.1"}], "state": "", "expect": []}]"#;
    let slow = file("logic-slow.json", one.as_bytes());
    let slow = ["logic", "check", "sleep 100", slow.to_str().unwrap(), "--timeout", "50ms"];
    let ran = cheops(&slow);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("it did not end within 50ms"), "{}", ran.out);
}

#[test]
fn cases_that_are_none_are_refused_with_what_would_be_right() {
    for (n, (cases, why)) in [
        ("{", "is not JSON"),
        ("{}", "is no list of cases"),
        ("[]", "has 0 cases; expected 1 to 1000"),
        ("[3]", "it is no object; expected `operations` and `state`"),
        (r#"[{"state": ""}]"#, "`operations` is no list of operations"),
        (r#"[{"operations": [{"id": "x"}], "state": ""}]"#, "expected an id such as `paris-1f.7`"),
        (r#"[{"operations": [{"id": "a-1.1"}, {"id": "a-1.1"}]}]"#, "as that of another"),
        (r#"[{"operations": [{"id": "a-1.1"}]}]"#, "`state` is missing"),
        (r#"[{"operations": [{"id": "a-1.1"}], "state": 3}]"#, "`state` is no text"),
        (r#"[{"operations": [{"id": "a-1.1"}], "state": "", "exp": []}]"#, "no such member, `exp`"),
        (
            r#"[{"operations": [{"id": "a-1.1"}], "state": "", "expect": ["b-1.1"]}]"#,
            "`expect` cannot be met: it named `b-1.1`",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let ran = check(BOTH, &format!("logic-refused-{n}.json"), cases, "json");
        assert_eq!(ran.code, Some(2), "{cases}: {}", ran.out);
        let message = ran.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(why), "{cases}: {message}");
        assert!(ran.out.contains("cheops logic check --help"), "{}", ran.out);
    }
    assert_eq!(cheops(&["logic", "check", " ", "/nowhere"]).code, Some(2));
    assert_eq!(cheops(&["logic", "check", "true", "/nowhere"]).code, Some(2));
}
