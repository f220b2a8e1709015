//! Programs that decide about operations which were made concurrently: when they are asked, and what
//! becomes of what they say.

use std::sync::Arc;

use cheops_core::config::Config;
use cheops_core::engine::{Effect, Notice, SiteStanding, Standing, Submission, Task, WarnedOf};
use cheops_core::model::{Extension, Fingerprint, OperationId, Outcome, ProgramStep, Status};
use expect_test::expect;
use serde_json::json;

use super::fixture::*;

fn decided() -> Arc<Config> {
    config(
        r#"{"ResolutionMatrix": [{"Before": "add", "After": "add", "Result": "logic:exec:shop"}],
            "State": {"Read": "look", "Write": "put"}}"#,
    )
}

fn first() -> Submission {
    Submission { config: Some(decided()), ..asks_for("add") }
}

/// One of lyon's that rests on nothing, later than all of paris.
fn theirs() -> Unwritten {
    op("add").declaring("lyon paris", Some(decided())).at_ms(9_000_000)
}

/// What the program was given is that, and it said this.
fn said(input: &str, text: &str) -> Outcome {
    Outcome::success(format!("{}\n{text}", Fingerprint::of(input.as_bytes())))
}

fn asks(effects: &[Effect]) -> Option<u64> {
    effects.iter().find_map(|effect| match effect {
        Effect::Run(job) if matches!(job.task, Task::Ask { .. }) => Some(job.id.0),
        _ => None,
    })
}

/// Which operation that job runs, and by which command.
fn runs(effects: &[Effect]) -> Option<(OperationId, String)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Run(job) => match &job.task {
            Task::Run(operation) => Some((operation.id.clone(), operation.payload.summary())),
            _ => None,
        },
        _ => None,
    })
}

/// Paris has run one of its own when it hears of lyon's, and is back at the state before both.
fn about_to_ask() -> (Site, Other, u64) {
    let mut paris = paris();
    paris.submits(first());
    paris.ends(1, ok());
    paris.ends(2, ok());
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(theirs()));
    paris.so_far();
    let job = asks(&paris.ends(3, ok()));
    (paris, lyon, job.unwrap())
}

fn standing_of(paris: &Site, of: &str) -> SiteStanding {
    let all = paris.engine.standings(&resource("counter")).unwrap();
    all.into_iter().find(|it| it.site == site(of)).unwrap()
}

#[test]
fn a_program_is_asked_at_the_state_before_and_what_it_says_is_run() {
    let (mut paris, _, job) = about_to_ask();
    assert!(matches!(standing_of(&paris, "paris").standing, Standing::Waiting { .. }));
    paris.ends(job, said("it", r#"["lyon-1.1", {"id": "paris-1.1", "command": "other"}]"#));
    paris.ends(5, ok());
    paris.ends(6, ok());
    paris.told(expect![[r#"
        > job 3 ends: exit 0
          + end restore 0: Ok
          job 4: ask `shop` about {"config":{"ResolutionMatrix":[{"After":"add","Before":"add","Result":"logic:exec:shop"}],"State":{"Read":"look","Write":"put"}},"operations":[{"after":[],"does":{"command":"add"},"id":"paris-1.1","site":"paris","type":"add"},{"after":[],"does":{"command":"add"},"id":"lyon-1.1","site":"lyon","type":"add"}]} and what `look` reads
        > job 4 ends: exit 0 22324018dfe2df45e2a1e61056a86cabb7fed402c809bef90e207ba78c92624f; ["lyon-1.1", {"id": "paris-1.1", "command": "other"}]
          + paris.3 says OK of paris.1
          + begin run lyon.1
          job 5: run lyon.1
          tell lyon: [paris.3 says OK of paris.1] knows lyon.1 paris.3
        > job 5 ends: exit 0
          + end run lyon.1: Ok
          + paris.4 says OK of lyon.1
          + begin run paris.1
          note Applied(counter, lyon.1)
          job 6: run paris.1
          tell lyon: [paris.4 says OK of lyon.1] knows lyon.1 paris.4
        > job 6 ends: exit 0
          + end run paris.1: Ok
          note Applied(counter, paris.1)
    "#]]);
    let view = paris.engine.resource(&resource("counter")).unwrap();
    let step = |of: &str, command: Option<&str>| ProgramStep {
        operation: operation(of),
        command: command.map(str::to_owned),
    };
    assert_eq!(view.decided, Some(vec![step("lyon.1", None), step("paris.1", Some("other"))]));
}

#[test]
fn what_a_program_leaves_out_is_overridden_and_counts_again_when_it_says_otherwise() {
    let (mut paris, mut lyon, job) = about_to_ask();
    let effects = paris.ends(job, said("it", r#"["lyon-1.1"]"#));
    assert_eq!(runs(&effects), Some((operation("lyon.1"), "add".to_owned())));
    paris.ends(5, ok());
    let summary = paris.engine.summary(&resource("counter")).unwrap();
    assert_eq!((summary.listed, summary.left_out_by_programs), (2, 1));
    let view = paris.engine.operation_view(&resource("counter"), &operation("paris.1")).unwrap();
    let own = view.replies.iter().find(|reply| *reply.site() == site("paris")).unwrap();
    assert_eq!(own.status, Status::Superseded { by: operation("lyon.1") });
    // One more that nobody knew of: it is asked again, of all three, at the state before them.
    paris.hears("lyon", lyon.tells_of(op("add").at_ms(9_000_001)));
    let job = asks(&paris.ends(6, ok())).unwrap();
    let all = r#"["paris-1.1", "lyon-1.1", "lyon-1.2"]"#;
    assert_eq!(runs(&paris.ends(job, said("it", all))).unwrap().0, operation("paris.1"));
}

#[test]
fn a_program_that_is_of_no_use_leaves_the_total_order_and_that_is_said() {
    for (answer, why) in [
        (Outcome::failure("-\nno such program"), "no such program"),
        (said("it", "what?"), "it did not answer with a list"),
        (said("it", r#"["nice-1.1"]"#), "it named `nice-1.1`"),
    ] {
        let (mut paris, _, job) = about_to_ask();
        let effects = paris.ends(job, answer);
        assert_eq!(runs(&effects).unwrap().0, operation("paris.1"));
        let proof = paris.engine.outline(&resource("counter")).unwrap().proof.unwrap();
        assert!(proof.no_use.unwrap().1.contains(why), "{why}");
        assert!(effects.iter().any(|it| matches!(it, Effect::Notify(Notice::Warning(..)))));
        let warning = paris.engine.summary(&resource("counter")).unwrap().warning.unwrap();
        assert_eq!((warning.about, warning.site), (WarnedOf::Program, site("paris")));
    }
}

#[test]
fn two_sites_whose_programs_say_different_things_of_the_same_have_diverged() {
    let (mut paris, mut lyon, job) = about_to_ask();
    let told = paris.ends(job, said("it", r#"["lyon-1.1", "paris-1.1"]"#));
    let upto = told.iter().find_map(|effect| match effect {
        Effect::Tell { message: cheops_core::engine::Message::Update(update), .. } => {
            update.entries.iter().find_map(|entry| Some(entry.program_verdict()?.upto))
        }
        _ => None,
    });
    let verdict = |input: &str, list: &[&str]| Extension {
        name: "program".to_owned(),
        must_understand: false,
        value: json!({
            "program": "shop",
            "upto": upto.unwrap().to_string(),
            "input": Fingerprint::of(input.as_bytes()).to_string(),
            "list": list.iter().map(|id| json!({"id": id})).collect::<Vec<_>>(),
        })
        .to_string()
        .into_bytes(),
    };
    let with = |extension| says("lyon.1", Status::Ok).beside(extension);
    paris.hears("lyon", lyon.tells_of(with(verdict("else", &["paris-1.1", "lyon-1.1"]))));
    assert_ne!(standing_of(&paris, "lyon").standing, standing_of_diverged("lyon"));
    paris.hears("lyon", lyon.tells_of(with(verdict("it", &["paris-1.1", "lyon-1.1"]))));
    assert_eq!(standing_of(&paris, "lyon").standing, standing_of_diverged("paris"));
    assert_eq!(standing_of(&paris, "paris").standing, standing_of_diverged("lyon"));
}

fn standing_of_diverged(other: &str) -> Standing {
    let why = format!(
        "the logic `shop` disagrees: asked the same, it said one thing here and another at `{other}`"
    );
    Standing::Diverged { why, failed: None }
}

#[test]
fn what_a_program_said_is_known_after_a_restart() {
    let (mut paris, _, job) = about_to_ask();
    paris.ends(job, said("it", r#"["lyon-1.1", "paris-1.1"]"#));
    // What was under way is in doubt, so it goes back once more; and asks nobody.
    paris.restarts();
    let effects = paris.ends(1, ok());
    assert_eq!(asks(&effects), None);
    assert_eq!(runs(&effects).unwrap().0, operation("lyon.1"));
}

#[test]
fn two_sites_whose_programs_print_different_nonsense_have_diverged_too() {
    let (mut paris, mut lyon, job) = about_to_ask();
    let told = paris.ends(job, said("it", "4711"));
    let ours = told.iter().find_map(|effect| match effect {
        Effect::Tell { message: cheops_core::engine::Message::Update(update), .. } => {
            update.entries.iter().find_map(|entry| entry.program_verdict())
        }
        _ => None,
    });
    let value = json!({
        "program": "shop",
        "upto": ours.unwrap().upto.to_string(),
        "input": Fingerprint::of(b"it").to_string(),
        "failed": "it did not answer with a list",
        "printed": Fingerprint::of(b"17").to_string(),
    });
    let name = "program".to_owned();
    let value = value.to_string().into_bytes();
    let extension = Extension { name, must_understand: false, value };
    paris.hears("lyon", lyon.tells_of(says("lyon.1", Status::Ok).beside(extension)));
    assert_eq!(standing_of(&paris, "lyon").standing, standing_of_diverged("paris"));
    assert_eq!(standing_of(&paris, "paris").standing, standing_of_diverged("lyon"));
}
