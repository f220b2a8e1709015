//! Keeping sites in step: who is told, confirmed to, asked, and helped out with what another wrote.

use std::sync::Arc;

use cheops_core::engine::{Effect, Message, Submission};
use cheops_core::model::{Entry, Status};
use expect_test::expect;

use super::fixture::*;

/// Operations of lyon, which made the resource for all three, in the order they were written.
fn of_lyon(lyon: &mut Other, n: usize) -> Vec<Arc<Entry>> {
    let first = lyon.writes(op("inc").declaring("lyon nantes paris", Some(matrix("take-both"))));
    let more = (1..n).map(|last| op("inc").on(&format!("lyon.{last}")));
    let more: Vec<_> = more.map(|said| lyon.writes(said)).collect();
    [vec![first], more].concat()
}

/// Without signs of life and runs, which other stories tell of.
fn said(paris: &mut Site) -> String {
    let story = paris.story();
    let quiet = ["alive", "job", "begin", "end run", "note Applied"];
    let lines = story.lines().filter(|line| !quiet.iter().any(|word| line.contains(word)));
    let mut told: Vec<&str> = Vec::new();
    for line in lines {
        // Of moments in which nothing was said, the last is enough.
        let is_time = |line: &&str| line.starts_with('>') && line.ends_with(" ms");
        if is_time(&line) && told.last().is_some_and(is_time) {
            told.pop();
        }
        told.push(line);
    }
    told.join("\n") + "\n"
}

#[test]
fn what_was_heard_is_confirmed_to_all_a_little_later_and_once() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    paris.hears("nantes", beat());
    let first = of_lyon(&mut lyon, 1);
    paris.hears("lyon", lyon.tells(first));
    paris.so_far();
    paris.lives_until(120);
    expect![[r#"
        > 53 ms
          tell lyon: knows lyon.1
          tell nantes: knows lyon.1
        > 120 ms
    "#]]
    .assert_eq(&flush_left(&said(&mut paris)));
}

#[test]
fn who_does_not_confirm_is_asked_again_and_again_until_it_does() {
    let mut paris = paris();
    paris.hears("lyon", beat());
    paris.submits(asks_for("inc"));
    paris.so_far();
    for ms in [500, 1_000, 1_500, 2_000, 2_500] {
        paris.lives_until(ms);
        paris.hears("lyon", beat());
    }
    let mut lyon = other("lyon");
    lyon.learns("paris.1");
    paris.at(2_600).hears("lyon", lyon.tells([]));
    paris.lives_until(4_000);
    expect![[r#"
        > 1003 ms
          tell lyon: knows paris.1, and you?
        > 2003 ms
          tell lyon: knows paris.1, and you?
        > 2500 ms
        > lyon: knows paris.1
          + lyon knows paris.1
        > 4000 ms
    "#]]
    .assert_eq(&flush_left(&said(&mut paris)));
}

#[test]
fn a_message_that_got_lost_is_made_up_for_when_the_other_side_says_what_it_knows() {
    let mut paris = paris();
    paris.hears("lyon", beat());
    paris.submits(asks_for("inc"));
    paris.submits(asks_for("inc"));
    paris.so_far();
    // It did not get the second; nobody asked it, so that may still be on its way.
    let mut lyon = other("lyon");
    lyon.learns("paris.1");
    paris.hears("lyon", lyon.tells([]));
    // It asks: then it is not.
    paris.hears("lyon", lyon.asks());
    expect![[r#"
        > lyon: knows paris.1
        > lyon: knows paris.1, and you?
          tell lyon: [paris.2 inc on paris.1] knows paris.2
    "#]]
    .assert_eq(&flush_left(&said(&mut paris)));
}

#[test]
fn what_its_author_can_deliver_is_left_to_it_for_a_while_and_then_passed_on() {
    let mut paris = paris();
    let (mut lyon, nantes) = (other("lyon"), other("nantes"));
    let first = of_lyon(&mut lyon, 1);
    paris.hears("nantes", beat());
    paris.hears("lyon", lyon.tells(first));
    paris.ends(1, ok());
    lyon.learns("paris.1");
    paris.hears("lyon", lyon.tells([]));
    paris.so_far();
    for ms in [400, 800, 1_200] {
        paris.lives_until(ms);
        paris.hears("lyon", beat());
        paris.hears("nantes", beat());
    }
    paris.hears("nantes", nantes.tells([]));
    expect![[r#"
        > 1003 ms
          tell nantes: knows lyon.1 paris.1, and you?
        > 1200 ms
        > nantes: knows nothing
          tell nantes: [lyon.1 inc at lyon nantes paris with config; paris.1 says OK of lyon.1] knows lyon.1 paris.1
    "#]].assert_eq(&flush_left(&said(&mut paris)));
}

#[test]
fn what_its_author_cannot_deliver_is_passed_on_soon() {
    let mut paris = paris();
    let (mut lyon, nantes) = (other("lyon"), other("nantes"));
    paris.hears("nantes", beat().not_hearing("lyon"));
    let first = of_lyon(&mut lyon, 1);
    paris.hears("lyon", lyon.tells(first));
    paris.so_far();
    paris.lives_until(60);
    paris.hears("nantes", nantes.tells([]));
    expect![[r#"
        > 53 ms
          tell lyon: knows lyon.1
          tell nantes: knows lyon.1
          tell nantes: knows lyon.1, and you?
        > 60 ms
        > nantes: knows nothing
          tell nantes: [lyon.1 inc at lyon nantes paris with config] knows lyon.1
    "#]]
    .assert_eq(&flush_left(&said(&mut paris)));
}

#[test]
fn who_lacks_much_is_sent_it_part_by_part_as_it_confirms() {
    let mut settings = settings("lyon nantes");
    settings.entries_per_update = 2;
    let mut paris = start(settings);
    let (mut lyon, mut nantes) = (other("lyon"), other("nantes"));
    let entries = of_lyon(&mut lyon, 5);
    paris.hears("nantes", beat());
    paris.hears("lyon", lyon.tells(entries));
    paris.so_far();
    for knows in ["", "lyon.2", "lyon.4", "lyon.5"] {
        nantes.learns(knows);
        let news = if knows.is_empty() { nantes.asks() } else { nantes.tells([]) };
        paris.hears("nantes", news);
    }
    expect![[r#"
        > nantes: knows nothing, and you?
          tell nantes: [lyon.1 inc at lyon nantes paris with config; lyon.2 inc on lyon.1] knows lyon.5
        > nantes: knows lyon.2
          tell nantes: [lyon.3 inc on lyon.2; lyon.4 inc on lyon.3] knows lyon.5
        > nantes: knows lyon.4
          tell nantes: [lyon.5 inc on lyon.4] knows lyon.5
        > nantes: knows lyon.5
          + nantes knows lyon.5
    "#]].assert_eq(&flush_left(&said(&mut paris)));
}

#[test]
fn a_message_stays_within_its_budget_of_bytes_but_holds_one_entry_in_any_case() {
    let mut settings = settings("lyon");
    settings.bytes_per_update = 5_000;
    let mut paris = start(settings);
    for length in [100, 1_500, 1_500, 1_500, 20_000, 100] {
        paris.submits(Submission { payload: shell(&"x".repeat(length)), ..asks_for("inc") });
    }
    let mut lyon = other("lyon");
    let mut messages = Vec::new();
    for _ in 0..10 {
        for effect in paris.hears("lyon", lyon.asks()) {
            let Effect::Tell { message: Message::Update(update), .. } = effect else { continue };
            let new = update.entries.iter().filter(|entry| !lyon.knows.includes(entry.id()));
            let sizes: Vec<_> = new.map(|entry| entry.size()).collect();
            update.entries.iter().for_each(|entry| lyon.knows.add(entry.id()));
            if !sizes.is_empty() {
                messages.push(sizes);
            }
        }
    }
    assert_eq!(messages.concat().len(), 6, "everything arrives: {messages:?}");
    for sizes in &messages {
        assert!(sizes.len() == 1 || sizes.iter().sum::<usize>() <= 5_000, "{sizes:?}");
    }
    assert!(messages.len() > 2, "{messages:?}");
}

#[test]
fn a_link_that_is_back_is_asked_about_so_many_resources_at_once_and_the_next_as_each_is_done() {
    let mut settings = settings("lyon");
    settings.resources_in_flight = 1;
    let mut paris = start(settings);
    for name in ["a", "b", "c"] {
        paris.submits(Submission { resource: resource(name), ..asks_for("inc") });
    }
    paris.so_far();
    paris.hears("lyon", beat());
    for (name, knows) in [("a", "paris.1"), ("b", "paris.2"), ("c", "paris.3")] {
        let mut lyon = other("lyon").on(name);
        lyon.learns(knows);
        paris.hears("lyon", lyon.tells([]));
    }
    expect![[r#"
          + lyon is in incarnation 1
          note SiteUp(lyon)
          tell lyon: a: knows paris.1, and you?
        > lyon: a: knows paris.1
          + a: lyon knows paris.1
          tell lyon: b: knows paris.2, and you?
        > lyon: b: knows paris.2
          + b: lyon knows paris.2
          tell lyon: c: knows paris.3, and you?
        > lyon: c: knows paris.3
          + c: lyon knows paris.3
    "#]]
    .assert_eq(&flush_left(&said(&mut paris)));
}

#[test]
fn what_a_site_confirmed_is_remembered_so_that_a_restart_asks_only_where_there_is_news() {
    let mut paris = paris();
    for name in ["a", "b"] {
        paris.submits(Submission {
            resource: resource(name),
            config: Some(matrix("take-both")),
            ..asks_for("inc")
        });
    }
    paris.ends(1, ok());
    paris.ends(2, ok());
    let mut lyon = other("lyon").on("a");
    lyon.learns("paris.1 paris.3");
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    paris.restarts();
    paris.so_far();
    paris.hears("lyon", beat());
    expect![[r#"
          note SiteUp(lyon)
          tell lyon: b: knows paris.4, and you?
    "#]]
    .assert_eq(&flush_left(&said(&mut paris)));
    let behind = |name| paris.engine.behind(&resource(name), &site("lyon"));
    assert_eq!((behind("a"), behind("b"), behind("c")), (Some(0), Some(2), None));
}

#[test]
fn what_a_resource_is_known_by_everywhere_is_stable_only_while_nobody_knows_more() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    let stable = |paris: &Site| paris.engine.stable(&resource("counter")).unwrap();
    assert_eq!(stable(&paris), vector(""));
    let mut lyon = other("lyon");
    lyon.learns("paris.1");
    paris.hears("lyon", lyon.tells([]));
    assert_eq!(stable(&paris), vector("paris.1"));
    // It wrote something that has not arrived, perhaps before it knew of the other.
    lyon.learns("lyon.1");
    paris.hears("lyon", lyon.tells([]));
    assert_eq!(stable(&paris), vector(""));
}
