//! Hooks: what a document says of them, and what it may not say.

use expect_test::expect;

use super::super::{Config, Hook, HookAction, HookEvent, HookRun, MAX_HOOKS};
use super::{kind, parsed, problems, warnings};

#[test]
fn every_event_is_read_and_written_back_by_its_word() {
    for event in HookEvent::ALL {
        assert_eq!(HookEvent::from_word(event.word()), Some(event));
        let text = format!("Hooks: [{{On: {event}, Command: say}}]");
        let config = parsed(&text).config;
        assert_eq!(config.hooks[0].on, event);
        assert_eq!(parsed(&config.to_json()).config, config);
    }
    assert_eq!(HookEvent::from_word("SITE_DOWN"), Some(HookEvent::SiteDown));
    assert_eq!(HookRun::from_word("Each_Site"), Some(HookRun::EachSite));
}

#[test]
fn hooks_keep_their_order_and_all_that_is_said_of_them() {
    let config = parsed(
        r#"{"Profile": "redis", "Hooks": [
            {"On": "partial-error", "Url": "https://ops.example/x", "Run": "once"},
            {"On": "applied", "Command": "reload", "Types": ["set", "del"]}]}"#,
    )
    .config;
    let hooks = [
        Hook {
            on: HookEvent::PartialError,
            action: HookAction::Url("https://ops.example/x".to_owned()),
            run: HookRun::Once,
            types: [].into(),
        },
        Hook {
            on: HookEvent::Applied,
            action: HookAction::Command("reload".to_owned()),
            run: HookRun::EachSite,
            types: [kind("set"), kind("del")].into(),
        },
    ];
    assert_eq!(config.hooks, hooks);
    assert_eq!(config.validate().unwrap(), []);
}

#[test]
fn a_hook_that_answers_is_the_decompose_of_its_types() {
    let by_hook = "
Hooks:
  - {on: failed, command: split, types: [dec, sub], answer: decompose}
Types: {dec: {Idempotent: true}}
";
    let by_type = "Types: {dec: {Idempotent: true, Decompose: split}, sub: {Decompose: split}}";
    assert_eq!(parsed(by_hook).config, parsed(by_type).config);
}

#[test]
fn every_mistake_in_hooks_is_reported_with_its_place() {
    let text = r#"{"Hooks": [
  {"On": "aplied", "Command": "x"},
  {"Command": "x", "Url": "http://h"},
  {"On": "failed"},
  {"On": "failed", "Url": "ftp://h"},
  {"On": "failed", "Url": "http:///p"},
  {"On": "failed", "Url": "http://me:secret@h/"},
  {"On": "failed", "Url": "http://h/a b"},
  {"On": "failed", "Url": "nowhere"},
  {"On": "failed", "Command": " ", "Run": "twice"},
  {"On": "site-down", "Command": "x", "Run": "once"},
  {"On": "diverged", "Command": "x", "Run": "once", "Types": ["set"]},
  {"On": "failed", "Command": "x", "Types": []},
  {"On": "failed", "Command": "x", "Types": ["a b", 7]},
  {"On": "applied", "Command": "x", "Types": ["set"], "Answer": "decompose"},
  {"On": "failed", "Url": "http://h", "Types": ["set"], "Answer": "decompose"},
  {"On": "failed", "Command": "x", "Run": "once", "Types": ["set"], "Answer": "decompose"},
  {"On": "failed", "Command": "x", "Answer": "decompose"},
  {"On": "failed", "Command": "x", "Types": ["inc"], "Answer": "decompos"},
  {"On": "failed", "Command": "x", "Types": ["inc"], "Answer": "decompose"},
  {"On": "failed", "Command": "x", "When": "now"},
  7],
 "Types": {"inc": {"Decompose": "y"}}}"#;
    expect![[r#"
        `Hooks[0].On` (line 2, column 10): unknown event `aplied`; did you mean `applied`?
        `Hooks[1]` (line 3, column 3): there is no `On`; add `On`
        `Hooks[1]` (line 3, column 3): there are both `Command` and `Url`; keep one of them; two hooks can do both
        `Hooks[2]` (line 4, column 3): there is neither `Command` nor `Url`; add `Command` or `Url`
        `Hooks[3].Url` (line 5, column 27): `ftp://h` is no address for a web hook: it must begin with `http://` or `https://`; such as `https://ops.example/cheops`
        `Hooks[4].Url` (line 6, column 27): `http:///p` is no address for a web hook: it names no host; such as `https://ops.example/cheops`
        `Hooks[5].Url` (line 7, column 27): `http://me:secret@h/` is no address for a web hook: it holds a user name, which would not be sent; such as `https://ops.example/cheops`
        `Hooks[6].Url` (line 8, column 27): `http://h/a b` is no address for a web hook: it holds blanks, or characters that must be written as `%..`; such as `https://ops.example/cheops`
        `Hooks[7].Url` (line 9, column 27): `nowhere` is no address for a web hook: it must begin with `http://` or `https://`; such as `https://ops.example/cheops`
        `Hooks[8].Command` (line 10, column 31): the command is empty; write the command or leave the key out
        `Hooks[8].Run` (line 10, column 43): unknown choice `twice`; expected one of `each-site`, `once`
        `Hooks[9]` (line 11, column 3): `Run: once` has no meaning with `On: site-down`; each site sees for itself who is connected; use `each-site`
        `Hooks[10]` (line 12, column 3): `Run: once` has no meaning with `On: diverged`; it is about one site's own application, which tells it; use `each-site`
        `Hooks[10]` (line 12, column 3): `Types` has no meaning with `On: diverged`; no operation, and so no type, goes with it; leave it out
        `Hooks[11].Types` (line 13, column 45): found an empty list; expected at least one type; leave the key out to mean all
        `Hooks[12].Types[0]` (line 14, column 46): `a b` is not a valid operation type: a letter or digit, then letters, digits, `.`, `_` or `-`; at most 128 characters; such as `set` or `apply`
        `Hooks[12].Types[1]` (line 14, column 53): found the number `7`; expected text; put it in quotes
        `Hooks[13]` (line 15, column 3): `Answer: decompose` has no meaning with `On: applied`; only what failed is run in smaller steps
        `Hooks[14]` (line 16, column 3): `Answer: decompose` has no meaning with `Url`; a command answers, at each site by itself
        `Hooks[15]` (line 17, column 3): `Answer: decompose` has no meaning with `Run: once`; each site runs its own steps; use `each-site`
        `Hooks[16]` (line 18, column 3): there is no `Types`; add `Types`
        `Hooks[17].Answer` (line 19, column 64): unknown answer `decompos`; did you mean `decompose`?
        `Hooks[18]` (line 20, column 3): what decomposes `inc` is given already at `Types.inc.Decompose` (line 23, column 33); one program can answer for a type
        `Hooks[19].When` (line 21, column 36): unknown key `When`; expected one of `On`, `Command`, `Url`, `Run`, `Types`, `Answer`
        `Hooks[20]` (line 22, column 3): found the number `7`; expected an object
    "#]].assert_eq(&problems(text));
    expect![[r#"
        `Hooks` (line 1, column 8): found an object; expected a list of hooks
    "#]]
    .assert_eq(&problems("Hooks: {On: failed}"));
}

#[test]
fn a_config_made_by_a_program_is_checked_too() {
    let hook = |on, run, action| Hook { on, action, run, types: [kind("set")].into() };
    let command = || HookAction::Command("\u{1}".to_owned());
    let url = HookAction::Url("x".to_owned());
    let mut config = Config {
        hooks: vec![
            hook(HookEvent::SiteUp, HookRun::Once, command()),
            hook(HookEvent::Failed, HookRun::Once, url),
        ],
        ..Config::default()
    };
    config.hooks.resize(MAX_HOOKS + 1, hook(HookEvent::Failed, HookRun::Once, command()));
    let errors = config.validate().unwrap_err();
    let shown: String =
        errors.problems().iter().take(4).map(|problem| format!("{problem}\n")).collect();
    expect![[r#"
        `Hooks[0]`: `Run: once` has no meaning with `On: site-up`; each site sees for itself who is connected; use `each-site`
        `Hooks[0]`: `Types` has no meaning with `On: site-up`; no operation, and so no type, goes with it; leave it out
        `Hooks[0].Command`: the command holds the control character U+0001; only tabs and line breaks can stand in a command
        `Hooks[1].Url`: `x` is no address for a web hook: it must begin with `http://` or `https://`; such as `https://ops.example/cheops`
    "#]].assert_eq(&shown);
    let last = errors.problems().last().unwrap().to_string();
    expect!["`Hooks`: there are 33 hooks; at most 32 hooks are allowed"].assert_eq(&last);
}

#[test]
fn hooks_that_are_probably_not_meant_get_a_warning() {
    let text = "
Profile: redis
Hooks:
  - {On: failed, Command: x, Types: [sets]}
  - {On: failed, Command: y}
  - {On: failed, Command: y}
";
    expect![[r#"
        `Hooks[0]` (line 4, column 5): nothing else in the config speaks of `sets`, to which this hook is limited
        `Hooks[2]` (line 6, column 5): the same hook is listed already at `Hooks[1]`; both run
    "#]].assert_eq(&warnings(text));
    assert_eq!(warnings("Hooks: [{On: failed, Command: x, Types: [anything]}]"), "");
}
