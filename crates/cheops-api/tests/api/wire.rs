//! The wire format itself: what a client in another language sees.

use std::collections::BTreeMap;

use cheops_api::{
    Action, Change, ExecLine, ExecStatus, File, InputOutput, NumberedChange, Operation, Payload,
    Problem, Progress, Replaces, Reply, ReplyMark, ReplyStatus, Resource, ResourceState,
    ResourceSummary, SaidBeside, ShellCommand, SiteReply, SiteStanding, Standing, Submit,
    SubmitEvent, Wait,
};
use expect_test::{Expect, expect};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// It reads like this, and back.
fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T, want: &Expect) {
    let text = serde_json::to_string(value).unwrap();
    want.assert_eq(&text);
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value);
}

fn reply() -> Reply {
    Reply {
        status: ReplyStatus::Superseded,
        by: Some("lyon-2.1".to_owned()),
        done: None,
        of: None,
        exit_code: None,
        http_status: None,
        limit_ms: None,
        output: String::new(),
        truncated: false,
        time: "2026-01-02T03:04:05.678Z".to_owned(),
    }
}

#[test]
fn a_line_of_exec_has_the_keys_of_the_first_cheops() {
    let line = ExecLine {
        locations: vec!["site1".to_owned(), "site2".to_owned()],
        site: "site2".to_owned(),
        request_id: "site1-5f.7".to_owned(),
        resource_id: "counter".to_owned(),
        status: ExecStatus::InDoubt,
        cmd: InputOutput { input: "date".to_owned(), output: "now".to_owned() },
        input: "date".to_owned(),
        output: "now".to_owned(),
        execution_time: "12.5ms".to_owned(),
        mark: ReplyMark::Reply,
    };
    check(
        &line,
        &expect![[
            r#"{"Locations":["site1","site2"],"Site":"site2","RequestId":"site1-5f.7","ResourceId":"counter","Status":"IN-DOUBT","Cmd":{"Input":"date","Output":"now"},"Input":"date","Output":"now","ExecutionTime":"12.5ms","Type":"REPLY"}"#
        ]],
    );
}

#[test]
fn what_is_heard_of_an_operation_is_tagged() {
    let accepted = SubmitEvent::Accepted {
        operation: "paris-1.1".to_owned(),
        resource: "counter".to_owned(),
        sites: vec!["lyon".to_owned(), "paris".to_owned()],
        site: "paris".to_owned(),
        config_replaced: false,
        warnings: Vec::new(),
    };
    check(
        &accepted,
        &expect![[
            r#"{"event":"accepted","operation":"paris-1.1","resource":"counter","sites":["lyon","paris"],"site":"paris"}"#
        ]],
    );
    let replied = SubmitEvent::Reply(SiteReply {
        site: "lyon".to_owned(),
        operation: "paris-1.1".to_owned(),
        reply: reply(),
    });
    check(
        &replied,
        &expect![[
            r#"{"event":"reply","site":"lyon","operation":"paris-1.1","status":"SUPERSEDED","by":"lyon-2.1","output":"","truncated":false,"time":"2026-01-02T03:04:05.678Z"}"#
        ]],
    );
    check(&SubmitEvent::Done, &expect![[r#"{"event":"done"}"#]]);
    check(
        &SubmitEvent::TimedOut { missing: vec!["nice".to_owned()] },
        &expect![[r#"{"event":"timed-out","missing":["nice"]}"#]],
    );
}

#[test]
fn a_change_is_tagged_with_its_name() {
    let change = Change::Reply {
        resource: "counter".to_owned(),
        operation: "paris-1.1".to_owned(),
        site: "lyon".to_owned(),
        reply: reply(),
        beside: Some(SaidBeside::Dismissed("paris-1.1".to_owned())),
    };
    let value = serde_json::to_value(&change).unwrap();
    assert_eq!(value["event"], change.name());
    assert_eq!(value["beside"], serde_json::json!({"dismissed": "paris-1.1"}));
    check(
        &NumberedChange {
            id: 7,
            at: "2026-01-02T03:04:05.678Z".to_owned(),
            change: Change::SiteLostDisk { site: "lyon".to_owned() },
        },
        &expect![[
            r#"{"id":7,"at":"2026-01-02T03:04:05.678Z","event":"site-lost-disk","site":"lyon"}"#
        ]],
    );
}

#[test]
fn every_change_has_its_name_in_the_list() {
    let document = serde_json::to_value(cheops_api::openapi()).unwrap();
    let variants = document["components"]["schemas"]["Change"]["oneOf"].as_array().unwrap();
    let names: Vec<&str> = variants
        .iter()
        .map(|variant| variant["properties"]["event"]["enum"][0].as_str().unwrap())
        .collect();
    assert_eq!(names, Change::NAMES);
}

#[test]
fn an_operation_says_what_it_does_under_the_name_of_the_kind() {
    let files = vec![File { name: "f".to_owned(), size: 3, blob: "00ff".to_owned() }];
    let operation = Operation {
        id: "paris-1.1".to_owned(),
        site: "paris".to_owned(),
        kind: "apply".to_owned(),
        time: "2026-01-02T03:04:05.678Z".to_owned(),
        stamp: "1+0".to_owned(),
        parents: Vec::new(),
        replaces: Replaces::Force,
        summary: "cat {f}".to_owned(),
        payload: Payload::Shell(ShellCommand { command: "cat {f}".to_owned(), files }),
        counts: true,
        left_out: None,
        replies: BTreeMap::new(),
        asked_by: None,
    };
    check(
        &operation,
        &expect![[
            r#"{"id":"paris-1.1","site":"paris","type":"apply","time":"2026-01-02T03:04:05.678Z","stamp":"1+0","parents":[],"replaces":"force","summary":"cat {f}","shell":{"command":"cat {f}","files":[{"name":"f","size":3,"blob":"00ff"}]},"counts":true,"left_out":null,"replies":{},"asked_by":null}"#
        ]],
    );
}

#[test]
fn a_resource_is_flat() {
    let resource = Resource {
        summary: ResourceSummary {
            id: "counter".to_owned(),
            sites: vec!["paris".to_owned()],
            operations: 2,
            listed: 1,
            state: ResourceState::InDoubt,
            standing: Some(SiteStanding {
                site: "lyon".to_owned(),
                standing: Standing::InDoubt,
                since: None,
                why: None,
                operation: Some("paris-1.1".to_owned()),
                connected: true,
                can_retry: false,
            }),
            errors: 0,
            last_change: None,
            verified: None,
            unverified: None,
            left_out_by_programs: 0,
            warning: None,
            troubled: Vec::new(),
            merged: false,
            service: None,
        },
        list: vec!["paris-1.1".to_owned()],
        config: serde_json::json!({}),
        standings: Vec::new(),
        health: None,
        progress: Progress::AwaitsOperator,
        behind: BTreeMap::from([("lyon".to_owned(), 3)]),
        awaits: Some("paris-1.1".to_owned()),
        waits_for: None,
        replicant: None,
        proof: None,
    };
    check(
        &resource,
        &expect![[
            r#"{"id":"counter","sites":["paris"],"operations":2,"listed":1,"state":"in-doubt","standing":{"site":"lyon","standing":"in-doubt","operation":"paris-1.1","connected":true,"can_retry":false},"errors":0,"last_change":null,"list":["paris-1.1"],"config":{},"standings":[],"health":null,"progress":"awaits-operator","behind":{"lyon":3},"awaits":"paris-1.1"}"#
        ]],
    );
}

#[test]
fn a_problem_carries_more_for_programs() {
    let problem = Problem::new(409, "sites differ", "`counter` lives on `paris`")
        .hint("leave `sites` out")
        .with("sites", vec!["paris"]);
    check(
        &problem,
        &expect![[
            r#"{"type":"about:blank","title":"sites differ","status":409,"detail":"`counter` lives on `paris`","hint":"leave `sites` out","sites":["paris"]}"#
        ]],
    );
}

#[test]
fn an_operation_is_handed_in_with_little_said() {
    let submit: Submit =
        serde_json::from_str(r#"{"type":"inc","shell":{"command":"redis-cli incr x"}}"#).unwrap();
    assert!(matches!(&submit.action, Action::Shell(shell) if shell.command == "redis-cli incr x"));
    assert_eq!((submit.wait, submit.timeout_ms, submit.force), (Wait::All, 30_000, false));
    check(
        &submit,
        &expect![[
            r#"{"type":"inc","shell":{"command":"redis-cli incr x"},"force":false,"wait":"all","timeout_ms":30000}"#
        ]],
    );
}

#[test]
fn an_operation_that_makes_no_sense_is_refused_with_the_reason() {
    for (text, want) in [
        (r#"{"type":"inc"}"#, "one of `shell` and `http` must say what to do"),
        (r#"{"shell":{"command":"x"}}"#, "missing field `type`"),
        (r#"{"type":"inc","shell":{"command":"x"},"sits":"a"}"#, "unknown field `sits`"),
        (r#"{"type":"inc","shell":{"comand":"x"}}"#, "unknown field `comand`"),
        (
            r#"{"type":"inc","shell":{"command":"x"},"http":{"service":"s","method":"GET","path":"/"}}"#,
            "only one of `shell` and `http`",
        ),
        (
            r#"{"type":"inc","shell":{"command":"x"},"profile":"redis","config":{}}"#,
            "only one of `config` and `profile`",
        ),
        (r#"{"type":"inc","shell":{"command":"x"},"wait":"some"}"#, "unknown variant `some`"),
    ] {
        let error = serde_json::from_str::<Submit>(text).unwrap_err().to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
}

#[test]
fn the_words_are_those_on_the_wire() {
    for state in ResourceState::ALL {
        assert_eq!(serde_json::to_value(state).unwrap(), state.word());
    }
    for status in [
        ReplyStatus::Ok,
        ReplyStatus::Ko,
        ReplyStatus::Superseded,
        ReplyStatus::InDoubt,
        ReplyStatus::Partial,
    ] {
        assert_eq!(serde_json::to_value(status).unwrap(), status.word());
    }
}
