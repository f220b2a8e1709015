//! What holds for every config and every text.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::{option, sample};

use super::super::{
    Concurrent, Config, Handling, Hook, HookAction, HookEvent, HookRun, Resolution, Rule,
    StateCommands,
};
use crate::ids::OperationType;

fn kinds() -> impl Strategy<Value = OperationType> {
    let names = sample::select(vec!["set", "inc", "del", "Set", "no", "1", "null", "true", "a.b"]);
    names.prop_map(|name| OperationType::new(name).unwrap())
}

fn commands() -> impl Strategy<Value = String> {
    let printable = any::<char>().prop_filter("no controls", |c| !c.is_control());
    let odd = sample::select(vec!['\t', '\n', '\r', '"', '\\', '#', ':', '\u{fffe}', '\u{feff}']);
    let text = vec(prop_oneof![printable, odd], 1..20).prop_map(String::from_iter);
    text.prop_filter("not empty", |text| !text.trim().is_empty())
}

fn resolutions() -> impl Strategy<Value = Resolution> {
    let plain = sample::select(vec![
        Rule::TakeOne,
        Rule::TakeBoth,
        Rule::Ordered,
        Rule::Logic("text".to_owned()),
        Rule::Logic("mine".to_owned()),
    ]);
    let plain = plain.prop_map(|rule| Resolution { rule, concurrent: Concurrent::ReplaceWins });
    let rules = sample::select(vec![Rule::KeepOrder, Rule::ReverseOrder]);
    let concurrents = sample::select(vec![Concurrent::ReplaceWins, Concurrent::KeepBoth]);
    let ordering =
        (rules, concurrents).prop_map(|(rule, concurrent)| Resolution { rule, concurrent });
    prop_oneof![plain, ordering]
}

type Matrix = BTreeMap<(OperationType, OperationType), Resolution>;

/// Matrices in which every entry has its mirror, or none.
fn matrices() -> impl Strategy<Value = Matrix> {
    let entries = btree_map((kinds(), kinds()), (resolutions(), any::<bool>()), 0..12);
    entries.prop_map(|entries| {
        let mut matrix = Matrix::new();
        for ((before, after), (said, mirrored)) in entries {
            let itself = before == after && said.rule.mirror() != said.rule;
            let other = (after.clone(), before.clone());
            if itself || matrix.contains_key(&other) {
                continue;
            }
            if mirrored {
                matrix.insert(other, said.mirror());
            }
            matrix.insert((before, after), said);
        }
        matrix
    })
}

fn handlings() -> impl Strategy<Value = Handling> {
    let command = || option::of(commands());
    (command(), any::<(bool, bool)>(), command(), command()).prop_map(
        |(undo, (idempotent, assigns), check, decompose)| Handling {
            undo,
            idempotent,
            assigns,
            check,
            decompose,
        },
    )
}

fn configs() -> impl Strategy<Value = Config> {
    let state = (commands(), commands()).prop_map(|(read, write)| StateCommands { read, write });
    let types = btree_map(kinds(), handlings(), 0..4);
    (matrices(), types, option::of(state), vec(hooks(), 0..4))
        .prop_map(|(matrix, types, state, hooks)| Config { matrix, types, state, hooks })
}

fn hooks() -> impl Strategy<Value = Hook> {
    let urls = sample::select(vec!["http://h", "https://h:1/p?q=%20#f", "HTTPS://[::1]:80/"]);
    let actions = prop_oneof![
        commands().prop_map(HookAction::Command),
        urls.prop_map(|url| HookAction::Url(url.to_owned())),
    ];
    let events = sample::select(HookEvent::ALL.to_vec());
    (events, actions, any::<bool>(), btree_set(kinds(), 0..3)).prop_map(
        |(on, action, once, types)| Hook {
            on,
            action,
            run: if once && on.why_not_once().is_none() {
                HookRun::Once
            } else {
                HookRun::EachSite
            },
            types: if on.is_of_an_operation() { types } else { BTreeSet::new() },
        },
    )
}

/// Texts of the words that documents are made of, in any order.
fn near_documents() -> impl Strategy<Value = String> {
    let words = sample::select(vec![
        "ResolutionMatrix",
        "Types",
        "Snapshot",
        "Restore",
        "Profile",
        "Before",
        "After",
        "Result",
        "Concurrent",
        "Undo",
        "Idempotent",
        "Assigns",
        "Hooks",
        "On",
        "Url",
        "Answer",
        "failed",
        "take-one",
        "take-both-keep-order",
        "redis",
        "set",
        "inc",
        ": ",
        ":",
        "\n",
        "\n  ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "\"",
        "'",
        "&a ",
        "*a ",
        "<<",
        "|",
        ">",
        "#",
        "? ",
        "! ",
        "---",
        "null",
        "true",
        "1",
        "\t",
        "é",
        "\u{feff}",
    ]);
    vec(words, 0..40).prop_map(|words| words.concat())
}

/// Well-formed trees that have little to do with a config.
fn near_json() -> impl Strategy<Value = serde_json::Value> {
    let keys = || {
        sample::select(vec![
            "ResolutionMatrix",
            "Types",
            "Snapshot",
            "Restore",
            "Profile",
            "Before",
            "After",
            "Result",
            "Concurrent",
            "Undo",
            "Idempotent",
            "before",
            "set",
            "",
            "é",
        ])
    };
    let leaves = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f64>().prop_map(serde_json::Value::from),
        keys().prop_map(serde_json::Value::from),
        sample::select(vec!["take-one", "take-both-keep-order", "ordered", "keep-both", "redis"])
            .prop_map(serde_json::Value::from),
    ];
    leaves.prop_recursive(4, 64, 6, move |inner| {
        let map = btree_map(keys().prop_map(str::to_owned), inner.clone(), 0..6);
        prop_oneof![
            vec(inner, 0..6).prop_map(serde_json::Value::from),
            map.prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_config_reads_back_from_its_document(config in configs()) {
        let warnings = config.validate();
        prop_assert!(warnings.is_ok(), "{warnings:?}");
        let parsed = Config::parse(&config.to_json());
        let parsed = parsed.map_err(|errors| TestCaseError::fail(errors.to_string()))?;
        prop_assert_eq!(&parsed.config, &config);
        let doubts = |warnings: Vec<super::super::Warning>| {
            let mut doubts: Vec<_> = warnings.iter().map(|w| w.doubt.to_string()).collect();
            doubts.sort();
            doubts
        };
        prop_assert_eq!(doubts(parsed.warnings), doubts(warnings.unwrap_or_default()));
    }

    #[test]
    fn a_mirrored_matrix_stays_valid_and_means_the_same(config in configs()) {
        let flip = |((before, after), said): (&(_, _), &Resolution)| {
            ((Clone::clone(after), Clone::clone(before)), said.mirror())
        };
        let mirrored =
            Config { matrix: config.matrix.iter().map(flip).collect(), ..config.clone() };
        prop_assert!(mirrored.validate().is_ok());
        for a in config.kinds() {
            prop_assert_eq!(config.overwrites(a), mirrored.overwrites(a));
            for b in config.kinds() {
                prop_assert_eq!(config.commute(a, b), config.commute(b, a));
                prop_assert_eq!(config.commute(a, b), mirrored.commute(a, b));
            }
        }
    }

    #[test]
    fn an_entry_turned_against_its_mirror_is_refused(config in configs(), pick in any::<sample::Index>()) {
        let mirrored: Vec<_> = config.matrix.keys()
            .filter(|(a, b)| a != b && config.listed(b, a).is_some()).cloned().collect();
        prop_assume!(!mirrored.is_empty());
        let mut config = config;
        let said = config.matrix.get_mut(pick.get(&mirrored)).unwrap();
        *said = Resolution {
            rule: if said.rule == Rule::Ordered { Rule::TakeOne } else { Rule::Ordered },
            concurrent: Concurrent::ReplaceWins,
        };
        prop_assert!(config.validate().is_err());
        prop_assert!(Config::parse(&config.to_json()).is_err());
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*", raw in vec(any::<u8>(), 0..200)) {
        let _ = Config::parse(&text);
        let _ = Config::parse(&String::from_utf8_lossy(&raw));
    }

    #[test]
    fn no_near_document_makes_the_reader_panic(text in near_documents()) {
        let _ = Config::parse(&text);
    }

    #[test]
    fn no_tree_makes_the_reader_panic_and_every_problem_has_a_place(tree in near_json()) {
        if let Err(errors) = Config::parse(&tree.to_string()) {
            for problem in errors.problems() {
                prop_assert!(problem.place.at.is_some() || !problem.place.path.is_empty());
                prop_assert!(!problem.fault.remedy().is_empty());
            }
        }
    }

    #[test]
    fn what_was_read_without_a_problem_is_valid(tree in near_json()) {
        if let Ok(parsed) = Config::parse(&tree.to_string()) {
            prop_assert!(parsed.config.validate().is_ok());
        }
    }
}
