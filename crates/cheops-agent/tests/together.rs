//! Whole agents in one process, joined by real links on loopback: what a user of any of them sees.

mod stage;

use std::io::Write;

use cheops_api::{
    Action, Body, Delete, HttpAction, ReplyStatus, ShellAction, Show, ShowStatus, Submit,
    SubmitEvent, Wait,
};
use stage::{Stage, replies, shell};

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_handed_in_at_one_site_runs_at_every_site_of_its_resource() {
    let stage = Stage::of(3).await;
    let file = stage.file("counter");
    let submit = shell("site1 & site2 & site3", "append", &format!("echo $CHEOPS_SITE >> {file}"));

    let events = stage.submit(0, "counter", &submit).await;

    assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK"), ("site3", "OK")]);
    let mut lines: Vec<_> = std::fs::read_to_string(&file).unwrap().lines().map(String::from).collect();
    lines.sort();
    assert_eq!(lines, ["site1", "site2", "site3"]);
}
