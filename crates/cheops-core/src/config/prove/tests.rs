use std::collections::BTreeMap;

use super::*;
use crate::config::{Concurrent, Config, Rule, profile};

/// An application that is a list of words, and commands that this test carries out itself.
///
/// `put X` makes X the only word, `push X` adds it at the end, `join X` adds it in order of name, `drop`
/// takes the last word away, `toss` puts in another word each time, `new X` fails where there is something, `mess X` adds X and
/// fails.
#[derive(Clone, Default)]
struct WordList {
    words: Vec<String>,
    tossed: usize,
}

impl WordList {
    fn run(&mut self, command: &str) -> StepEnding {
        let (verb, word) = command.split_once(' ').unwrap_or((command, ""));
        let word = word.to_owned();
        match verb {
            "put" => self.words = vec![word],
            "push" => self.words.push(word),
            "join" => {
                self.words.push(word);
                self.words.sort();
            }
            "drop" => drop(self.words.pop()),
            "toss" => {
                self.tossed += 1;
                self.words = vec![self.tossed.to_string()];
            }
            "new" if self.words.is_empty() => self.words = vec![word],
            "new" => return StepEnding::Failed("exists".to_owned()),
            "mess" => {
                self.words.push(word);
                return StepEnding::Failed("oh".to_owned());
            }
            "has" if self.words.contains(&word) => {}
            "has" | "fail" => return StepEnding::Failed("no".to_owned()),
            "pass" => {}
            other => panic!("{other}"),
        }
        StepEnding::Done
    }
}

fn tried(config: &Config, samples: &TrialSamples) -> TrialResults {
    let mut tossed = 0;
    let mut results = BTreeMap::new();
    for trial in trials(config, samples) {
        let mut words = WordList { words: Vec::new(), tossed };
        if let Some(start) = samples.starts.get(trial.start) {
            words.run(start);
        }
        let endings = trial.steps.iter().map(|step| {
            let sample = &samples.samples[step.operation().sample];
            let handling = config.handling(&sample.kind);
            match step {
                TrialStep::Run(_) => words.run(&sample.command),
                TrialStep::Crash(_) => {
                    words.run(&sample.command);
                    StepEnding::Crashed
                }
                TrialStep::Undo(_) => words.run(handling.undo.as_deref().unwrap()),
                TrialStep::Check(_) => words.run(handling.check.as_deref().unwrap()),
            }
        });
        let endings = endings.collect();
        let state = words.words.join(" ").into_bytes().into();
        results.insert(trial, TrialResult { endings, state });
        tossed = words.tossed;
    }
    results
}

/// What is said of each claim, in short.
fn proven(document: &str, samples: &str) -> (Vec<String>, Config, Config) {
    let config = Config::parse(document).unwrap().config;
    let samples = TrialSamples::parse(samples).unwrap();
    let results = tried(&config, &samples);
    let told = judge(&config, &samples, &results).into_iter().map(|judged| {
        let verdict = match judged.verdict {
            ClaimVerdict::Holds { .. } => "holds".to_owned(),
            ClaimVerdict::False { example, .. } => {
                let text = |state: &[u8]| String::from_utf8_lossy(state).into_owned();
                let (left, right) = (text(&example.left.state), text(&example.right.state));
                format!("false, {:?}: [{left}] and [{right}]", example.mismatch)
            }
            ClaimVerdict::NotTried(why) => format!("not tried: {why}"),
        };
        format!("{}: {verdict}", judged.claim)
    });
    let told: Vec<String> = told.collect();
    let better = suggestion(&config, &samples, &results);
    better.check().unwrap();
    let still = judge(&better, &samples, &tried(&better, &samples));
    let still = still.iter().filter(|it| it.claim.is_said() && it.verdict.is_false());
    assert_eq!(still.count(), 0, "{document}");
    (told, config, better)
}

fn rule(config: &Config, one: &str, other: &str) -> (Rule, Concurrent) {
    let kind = |name| OperationType::new(name).unwrap();
    let entry = super::claims::entry(config, &kind(one), &kind(other)).unwrap();
    (entry.rule, entry.concurrent)
}

/// One entry for a type and itself.
fn own(result: &str) -> String {
    format!("{{ResolutionMatrix: [{{Before: t, After: t, Result: {result}}}]}}")
}

/// One entry for `a` and `b`, and what else there is between each and itself.
fn between(result: &str) -> String {
    format!(
        "{{ResolutionMatrix: [{{Before: a, After: b, Result: {result}}}, \
         {{Before: a, After: a, Result: ordered}}, {{Before: b, After: b, Result: ordered}}]}}"
    )
}

#[test]
fn what_an_entry_says_of_a_type_and_itself_is_tried_and_what_is_true_is_found() {
    let push = "Samples: {t: [push x, push y]}";
    let put = "Samples: {t: [put x, put y]}";
    let join = "Samples: {t: [join x, join y]}";
    let order = "two `t` may run in any order";
    let over = "`t` overwrites a `t` before it";
    for (result, samples, claim, said, truth) in [
        ("take-both", push, order, "false, States: [x y] and [y x]", Rule::Ordered),
        ("take-both", put, order, "false, States: [y] and [x]", Rule::TakeOne),
        ("take-both", join, order, "holds", Rule::TakeBoth),
        ("take-one", push, over, "false, States: [x x] and [x]", Rule::Ordered),
        ("take-one", put, over, "holds", Rule::TakeOne),
        ("take-one", join, over, "false, States: [x x] and [x]", Rule::TakeBoth),
    ] {
        let (told, _, better) = proven(&own(result), samples);
        assert_eq!(told[0], format!("{claim}: {said}"), "{result} {samples}");
        assert_eq!(rule(&better, "t", "t").0, truth, "{result} {samples}");
    }
    let (told, ..) = proven(&own("ordered"), push);
    assert_eq!(told, ["`t` does the same each time, from the same state: holds"]);
}

#[test]
fn what_an_entry_says_of_two_types_is_tried_in_both_directions() {
    let put_push = "Samples: {a: [put x, put y], b: [push z]}";
    let both = Concurrent::KeepBoth;
    let wins = Concurrent::ReplaceWins;
    for (result, first, truth) in [
        ("take-both-keep-order", "`a` overwrites `b`: holds", (Rule::KeepOrder, wins)),
        (
            "take-both-reverse-order",
            "`b` overwrites `a`: false, States: [x z] and [z]",
            (Rule::KeepOrder, wins),
        ),
        ("take-one", "`a` overwrites `b`: holds", (Rule::KeepOrder, wins)),
        // Whoever wanted both to count is not told to drop one.
        (
            "take-both",
            "`a` and `b` may run in any order: false, States: [x z] and [x]",
            (Rule::KeepOrder, both),
        ),
    ] {
        let (told, _, better) = proven(&between(result), put_push);
        assert_eq!(told[0], first, "{result}");
        assert_eq!(rule(&better, "a", "b"), truth, "{result}");
    }
    let (told, ..) = proven(&between("take-one"), put_push);
    assert_eq!(told[1], "`b` overwrites `a`: false, States: [x z] and [z]");
}

#[test]
fn silence_in_a_matrix_is_a_claim_too() {
    let listed = "{ResolutionMatrix: [{Before: a, After: a, Result: ordered}, \
                  {Before: b, After: b, Result: ordered}]}";
    let (told, _, better) = proven(listed, "Samples: {a: [push x], b: [push y]}");
    assert_eq!(told[0], "`a` and `b` may run in any order: false, States: [x y] and [y x]");
    assert_eq!(rule(&better, "a", "b").0, Rule::Ordered);
    // By the report's table 5 a `set` overwrites, and so another `set` too.
    let table_5 = "{ResolutionMatrix: [{Before: set, After: inc, Result: take-both-keep-order}, \
                   {Before: inc, After: inc, Result: take-both}]}";
    let (told, ..) = proven(table_5, "Samples: {set: [push x], inc: [join y]}");
    assert!(
        told.contains(
            &"`set` overwrites a `set` before it: false, States: [x x] and [x]".to_owned()
        ),
        "{told:?}"
    );
    // Without a matrix nothing is claimed of pairs.
    let (told, ..) = proven("{Types: {a: {}}}", "Samples: {a: [push x]}");
    assert_eq!(told, ["`a` does the same each time, from the same state: holds"]);
}

#[test]
fn what_is_said_of_a_type_is_tried() {
    let with = |said: &str| {
        format!(
            "{{ResolutionMatrix: [{{Before: t, After: t, Result: ordered}}], Types: {{t: {{{said}}}}}}}"
        )
    };
    let last = |told: Vec<String>| told.last().unwrap().clone();
    for (said, samples, expected) in [
        ("Idempotent: true", "put x", "`t` twice is as good as once: holds"),
        (
            "Idempotent: true",
            "push x",
            "`t` twice is as good as once: false, States: [x x] and [x]",
        ),
        // It happened, and says that it failed.
        (
            "Idempotent: true",
            "new x",
            "`t` twice is as good as once: false, LastFails: [x] and [x]",
        ),
        ("Undo: drop", "push x", "`Undo` takes `t` back: holds"),
        ("Undo: drop", "put x", "`Undo` takes `t` back: holds"),
        ("Undo: put z", "push x", "`Undo` takes `t` back: false, States: [z] and []"),
        ("Undo: fail", "push x", "`Undo` takes `t` back: false, LastFails: [x] and []"),
        ("Check: has x", "push x", "`Check` tells whether `t` happened: holds"),
        (
            "Check: pass",
            "push x",
            "`Check` tells whether `t` happened: false, SaysItHappened: [x] and []",
        ),
        (
            "Check: fail",
            "push x",
            "`Check` tells whether `t` happened: false, SaysItDidNot: [x] and []",
        ),
    ] {
        let (told, _, better) = proven(&with(said), &format!("Samples: {{t: [{samples}]}}"));
        assert_eq!(last(told), expected, "{said}");
        let handling = better.handling(&OperationType::new("t").unwrap()).clone();
        let kept = handling.idempotent || handling.undo.is_some() || handling.check.is_some();
        assert_eq!(kept, expected.ends_with("holds"), "{said}");
    }
    // Run again after another, it puts its own word at the end; but its first one is still there.
    let document = "{ResolutionMatrix: [{Before: a, After: b, Result: ordered}], Types: {\
                    a: {Assigns: true, Idempotent: true}, b: {Assigns: true, Idempotent: true}}}";
    let (told, _, better) = proven(document, "Samples: {a: [push x], b: [put y]}");
    let claim = "`a` can be run again after what should have come first";
    assert!(told.contains(&format!("{claim}: false, States: [x x x] and [x x]")), "{told:?}");
    assert!(!better.handling(&OperationType::new("a").unwrap()).assigns);
    assert!(better.handling(&OperationType::new("b").unwrap()).assigns);
}

#[test]
fn an_undo_must_leave_what_may_come_in_between() {
    let document = "{ResolutionMatrix: [{Before: t, After: t, Result: take-both}], \
                    Types: {t: {Undo: drop}}}";
    let (told, ..) = proven(document, "Samples: {t: [join b, join a]}");
    let undo = told.last().unwrap();
    assert_eq!(undo, "`Undo` takes `t` back: false, States: [a] and [b]", "{told:?}");
}

#[test]
fn commands_that_differ_each_time_or_fail_half_way_are_told_of_whatever_the_matrix_says() {
    let (told, ..) = proven(&own("ordered"), "Samples: {t: [toss]}");
    assert!(
        told[0].starts_with("`t` does the same each time, from the same state: false"),
        "{told:?}"
    );
    let (told, ..) = proven(&own("ordered"), "Samples: {t: [mess x]}");
    assert_eq!(told[1], "`t` changes nothing where it fails: false, States: [x] and []");
}

#[test]
fn what_cannot_be_tried_is_said_with_the_reason() {
    let (told, ..) = proven(&own("take-one"), "Samples: {t: [pass]}");
    assert!(told[0].contains("not tried: no sample of `t` changes what `Read` gives"), "{told:?}");
    let (told, ..) = proven(&own("take-one"), "Samples: {t: [fail]}");
    assert!(told[0].contains("not tried: `t` fails wherever it would count"), "{told:?}");
    let (told, ..) = proven(&between("take-one"), "Samples: {a: [put x]}");
    assert!(told[0].contains("not tried: there is no sample of `b`"), "{told:?}");
    // From another state it counts.
    let (told, ..) = proven(&own("take-both"), "{Samples: {t: [drop]}, Start: [push x]}");
    assert!(told[0].ends_with("holds"), "{told:?}");
}

#[test]
fn an_operation_that_fails_only_after_another_does_not_overwrite_it() {
    let (told, ..) = proven(&own("take-one"), "Samples: {t: [new x, new y]}");
    assert_eq!(told[0], "`t` overwrites a `t` before it: false, LastFails: [x] and [x]");
    let (told, _, better) = proven(&own("take-both"), "Samples: {t: [new x]}");
    // Which of two fails depends on the order, and with it what each site says of both.
    assert_eq!(told[0], "two `t` may run in any order: false, Endings: [x] and [x]");
    assert_eq!(rule(&better, "t", "t").0, Rule::Ordered);
}

#[test]
fn trials_are_few_and_the_short_ones_come_first() {
    let config = &profile("file").unwrap().config;
    let samples = "{Samples: {set: [put a, put b], add: [push c]}, Start: [pass, put s]}";
    let samples = TrialSamples::parse(samples).unwrap();
    let trials = trials(config, &samples);
    assert!(trials.is_sorted_by_key(|trial| trial.steps.len()));
    // From each of two states: nothing, three alone and once more, each after each (and after another
    // of its own, in both orders), two repeated, three ended half-way.
    assert_eq!(trials.len(), 2 * (1 + 3 + 3 + 12 + 2 + 3), "{trials:?}");
}

#[test]
fn samples_are_read_with_all_their_mistakes() {
    for (document, expected) in [
        ("{}", "there is no `Samples`"),
        ("Samples: {}", "there is no `Samples`"),
        ("Samples: [a]", "found a list"),
        ("Samples: {set: {}}", "found an object"),
        ("Samples: {set: [1]}", "put it in quotes"),
        ("Samples: {set: ['']}", "the command is empty"),
        ("Samples: {'a b': [x]}", "`Samples.a b`"),
        ("{Samples: {a: x}, Begin: y}", "unknown key `Begin`"),
        ("{Samples: {a: x}, Start: 1}", "found the number"),
        ("Samples: [", "cannot be read"),
    ] {
        let errors = TrialSamples::parse(document).unwrap_err().to_string();
        assert!(errors.contains(expected), "{document}: {errors}");
    }
    let many = format!("Samples: {{a: [{}]}}", vec!["x"; MAX_SAMPLES + 1].join(", "));
    let errors = TrialSamples::parse(&many).unwrap_err().to_string();
    assert!(errors.contains("at most 64 samples are allowed"), "{errors}");
    let one = TrialSamples::parse("{samples: {a: x}, start: y}").unwrap();
    assert_eq!((one.samples.len(), one.starts), (1, vec!["y".to_owned()]));
}

#[test]
fn a_command_gets_the_target_only_where_it_speaks_of_it() {
    assert_eq!(about_target("echo $target", "it's"), r"target='it'\''s'; echo $target");
    assert_eq!(about_target("echo ${target}", "x"), "target='x'; echo ${target}");
    assert_eq!(about_target("echo x", "y"), "echo x");
}

/// An object of a cluster, as kubectl changes it: `apply` sets what it names, takes away what the
/// `apply` before it named and it does not, and leaves the rest.
#[derive(Clone, Default)]
struct KubeObject {
    fields: Option<BTreeMap<String, String>>,
    applied: BTreeMap<String, String>,
}

impl KubeObject {
    fn run(&mut self, command: &str) -> StepEnding {
        let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
        let named = rest.split_whitespace().map(|it| it.split_once('=').unwrap());
        let named: BTreeMap<String, String> =
            named.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let not_found = || StepEnding::Failed("NotFound".to_owned());
        match (verb, &mut self.fields) {
            ("delete", _) => *self = Self::default(),
            ("apply", fields) => {
                let fields = fields.get_or_insert_default();
                fields.retain(|key, _| !self.applied.contains_key(key) || named.contains_key(key));
                fields.extend(named.clone());
                self.applied = named;
            }
            ("create", Some(_)) => return StepEnding::Failed("AlreadyExists".to_owned()),
            ("create", fields @ None) => *fields = Some(named),
            ("patch", Some(fields)) => fields.extend(named),
            ("replace", Some(fields)) => {
                *fields = named;
                self.applied.clear();
            }
            ("patch" | "replace", None) => return not_found(),
            (other, _) => panic!("{other}"),
        }
        StepEnding::Done
    }
}

#[test]
fn what_is_said_of_kubernetes_holds_for_an_object_that_changes_as_kubectl_changes_it() {
    let samples = "{Samples: {apply: [apply a=1 b=2, apply a=3], create: [create c=4, create a=5], \
                   patch: [patch a=6, patch d=7], replace: [replace e=8, replace a=9], \
                   delete: [delete]}, Start: [delete, create c=1 d=2, apply a=0 f=1]}";
    let samples = TrialSamples::parse(samples).unwrap();
    let judged = |config: &Config| {
        let mut results = TrialResults::new();
        for trial in trials(config, &samples) {
            let mut object = KubeObject::default();
            object.run(&samples.starts[trial.start]);
            let endings = trial.steps.iter().map(|step| {
                let ending = object.run(&samples.samples[step.operation().sample].command);
                if let TrialStep::Crash(_) = step { StepEnding::Crashed } else { ending }
            });
            let endings = endings.collect();
            let state = format!("{:?}", object.fields).into_bytes().into();
            results.insert(trial, TrialResult { endings, state });
        }
        judge(config, &samples, &results)
    };
    for JudgedClaim { claim, verdict } in judged(&profile("kubernetes").unwrap().config) {
        assert!(matches!(verdict, ClaimVerdict::Holds { .. }), "{claim}: {verdict:?}");
    }
    // What it said before.
    let before = "{Profile: kubernetes, ResolutionMatrix: [\
                  {Before: apply, After: patch, Result: take-both-keep-order}, \
                  {Before: apply, After: create, Result: take-both-keep-order}]}";
    let judged = judged(&Config::parse(before).unwrap().config);
    let wrong = judged.iter().filter(|it| it.verdict.is_false());
    let wrong: Vec<String> = wrong.map(|it| it.claim.to_string()).collect();
    assert_eq!(wrong, ["`apply` overwrites `create`", "`apply` overwrites `patch`"]);
}
