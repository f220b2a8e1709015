//! Operations that need other resources: what runs when, what fails, and what waits for ever.

use cheops_core::engine::{Application, Submission};
use cheops_core::model::Act;
use expect_test::expect;

use super::fixture::*;

fn needing(asked: Submission, needs: &str) -> Submission {
    let needs = needs.split_whitespace().map(resource).collect();
    Submission { needs, ..asked }
}

/// Which jobs were begun, and what waits and for what.
fn jobs(paris: &mut Site) -> String {
    let story = paris.story();
    let words = ["> ", "  job", "KO", "= "];
    let lines = story.lines().filter(|line| words.iter().any(|word| line.contains(word)));
    lines.filter(|line| !line.contains("answer ")).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn a_photo_waits_for_its_album_and_nobody_else_does() {
    let mut paris = alone();
    paris.submits(http("album", "post", Act::Creates));
    paris.submits(needing(http("photo", "post", Act::Creates), "album"));
    paris.submits(http("other", "post", Act::Creates));
    paris.shows("photo");
    paris.ends(1, answered(201, Some("1")));
    paris.shows("photo");
    expect![[r#"
        > 1: album post
          job 1: album: run paris.1
        > 2: photo post
        > 3: other post
          job 2: other: run paris.3
        = photo: list [paris.2], InStep, Running, waits: needs `album`, which is not there yet
          job 3: photo: run paris.2
        = photo: list [paris.2], InStep, Running
    "#]]
    .assert_eq(&flush_left(&jobs(&mut paris)));
}

#[test]
fn what_waits_goes_on_waiting_after_a_restart() {
    let mut paris = alone();
    paris.submits(http("album", "create", Act::CreatesAs));
    paris.submits(needing(http("photo", "create", Act::CreatesAs), "album"));
    paris.restarts();
    paris.so_far();
    paris.shows("photo");
    paris.ends(1, answered(201, None));
    paris.ends(2, answered(201, None));
    expect![[r#"
        = photo: list [paris.2], InStep, Running, waits: needs `album`, which is not there yet
          job 2: photo: run paris.2
    "#]]
    .assert_eq(&flush_left(&jobs(&mut paris)));
}

#[test]
fn what_needs_something_that_failed_fails_by_its_name_without_being_begun() {
    let mut paris = alone();
    paris.submits(http("album", "post", Act::Creates));
    paris.submits(needing(http("photo", "post", Act::Creates), "album"));
    paris.so_far();
    paris.ends(1, answered(422, None));
    paris.told(expect![[r#"
        > job 1 ends: answer 422
          + album: end run paris.1: Ko
          + album: paris.3 says KO of paris.1
          + photo: begin run paris.2
          + photo: end run paris.2: Ko
          + photo: paris.4 says KO of paris.2: needs `album`, which failed here
          note Failed(album, paris.1)
          note Settled(album, paris.1, Failed)
          publish album: nothing
          answer 1: paris says KO of paris.1
          answer 1: done
          note Converged(album)
          note Failed(photo, paris.2)
          note Settled(photo, paris.2, Failed)
          publish photo: nothing
          answer 2: paris says KO of paris.2: needs `album`, which failed here
          answer 2: done
          note Converged(photo)
    "#]]);
}

#[test]
fn what_needs_something_deleted_fails_and_the_rest_of_its_list_goes_on() {
    let mut paris = alone();
    paris.submits(http("album", "post", Act::Creates));
    paris.ends(1, answered(201, Some("1")));
    paris.submits(http("album", "delete", Act::Deletes));
    paris.submits(needing(http("photo", "create", Act::CreatesAs), "album"));
    paris.submits(http("photo", "patch", Act::Changes));
    paris.so_far();
    paris.shows("photo");
    paris.ends(2, answered(204, None));
    expect![[r#"
        = photo: list [paris.4 paris.5], InStep, Running, waits: needs `album`, which is not there yet
          + photo: paris.7 says KO of paris.4: needs `album`, which failed here
          job 3: photo: run paris.5
    "#]].assert_eq(&flush_left(&jobs(&mut paris)));
}

#[test]
fn a_deletion_that_is_refused_leaves_what_it_was_to_delete_there_to_be_needed() {
    let mut paris = alone();
    paris.submits(http("album", "create", Act::CreatesAs));
    paris.ends(1, answered(201, None));
    paris.submits(http("album", "delete", Act::Deletes));
    paris.submits(needing(http("photo", "create", Act::CreatesAs), "album"));
    paris.so_far();
    paris.ends(2, answered(403, None));
    expect![[r#"
          + album: paris.5 says KO of paris.3
          job 3: photo: run paris.4
    "#]]
    .assert_eq(&flush_left(&jobs(&mut paris)));
}

#[test]
fn what_not_every_site_would_hear_of_is_not_waited_for() {
    let mut paris = paris();
    paris.submits(Submission {
        resource: resource("here"),
        sites: Some(sites("paris")),
        ..asks_for("inc")
    });
    paris.submits(Submission { resource: resource("both"), ..asks_for("inc") });
    paris.so_far();
    // Nobody knows the first, the second is not held at lyon, and nothing waits for itself.
    paris.submits(needing(asks_for("inc"), "unheard here counter both"));
    paris.told(expect![[r#"
        > 3: counter inc
          + paris.3 inc needing both at lyon paris
          answer 3: accepted as paris.3 for lyon paris
    "#]]);
}

#[test]
fn what_another_site_says_is_needed_is_waited_for_also_if_it_never_comes() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    let needs = [resource("album")].into();
    let photo = op("inc").declaring("lyon paris", None).with(|it| it.needs = needs);
    paris.hears("lyon", lyon.tells_of(photo));
    paris.shows("counter");
    paris.lives_until(600);
    paris.so_far();
    paris.restarts();
    paris.shows("counter");
    // Until it does.
    let album =
        other("lyon").on("album").tells_of(op("inc").declaring("lyon paris", None).numbered(2, 0));
    paris.hears("lyon", album);
    paris.ends(1, ok());
    expect![[r#"
        > restart
        = list [lyon.1], InStep, Running, waits: needs `album`, which is not there yet
        > lyon: album: [lyon.2 inc at lyon paris] knows lyon.2
          job 1: album: run lyon.2
        > job 1 ends: exit 0
          job 2: run lyon.1
    "#]]
    .assert_eq(&flush_left(&jobs(&mut paris)));
}

#[test]
fn all_that_is_needed_must_be_there_and_one_that_failed_is_enough() {
    let mut story = String::new();
    for second in [answered(201, None), answered(500, None)] {
        let mut paris = alone();
        paris.submits(http("a", "create", Act::CreatesAs));
        paris.submits(http("b", "create", Act::CreatesAs));
        paris.submits(needing(http("c", "create", Act::CreatesAs), "a b"));
        paris.so_far();
        paris.ends(1, answered(201, None));
        paris.shows("c");
        paris.ends(2, second);
        story += &jobs(&mut paris);
    }
    expect![[r#"
        = c: list [paris.3], InStep, Running, waits: needs `b`, which is not there yet
          job 3: c: run paris.3
        = c: list [paris.3], InStep, Running, waits: needs `b`, which is not there yet
          + b: paris.5 says KO of paris.2
          + c: paris.6 says KO of paris.3: needs `b`, which failed here
    "#]]
    .assert_eq(&flush_left(&story));
}

#[test]
fn what_waits_for_its_need_takes_no_place_that_others_could_run_in() {
    let mut settings = settings("");
    settings.jobs_at_once = 1;
    let mut paris = start(settings);
    paris.submits(http("album", "create", Act::CreatesAs));
    paris.submits(needing(http("photo", "create", Act::CreatesAs), "album"));
    paris.submits(http("other", "create", Act::CreatesAs));
    paris.so_far();
    paris.ends(1, answered(201, None));
    paris.ends(2, answered(201, None));
    expect![[r#"
          job 2: other: run paris.3
          job 3: photo: run paris.2
    "#]]
    .assert_eq(&flush_left(&jobs(&mut paris)));
}

#[test]
fn what_needs_itself_by_way_of_others_is_refused() {
    let mut paris = alone();
    paris.submits(http("b", "put", Act::CreatesAs));
    paris.submits(needing(http("c", "put", Act::CreatesAs), "b"));
    paris.submits(needing(http("a", "put", Act::CreatesAs), "c"));
    paris.so_far();
    // It would take the place of the one above, and then nothing could be there first.
    paris.submits(needing(http("b", "put", Act::CreatesAs), "a"));
    let story = paris.story();
    let why = "resource `b` needs `a`, which needs `c`, which needs `b`";
    assert!(story.contains(why), "{story}");
    for job in 1..=3 {
        paris.ends(job, answered(201, None));
    }
    expect![[r#"
          job 2: c: run paris.2
          job 3: a: run paris.3
    "#]]
    .assert_eq(&flush_left(&jobs(&mut paris)));
}

#[test]
fn two_that_name_each_other_are_none_where_one_of_them_was_made_before() {
    let mut paris = alone();
    paris.submits(http("album", "post", Act::Creates));
    paris.submits(needing(http("photo", "post", Act::Creates), "album"));
    // Its cover: the album stays in the list as it was made, and comes first at every site.
    paris.submits(needing(http("album", "patch", Act::Changes), "photo"));
    paris.so_far();
    for job in 1..=3 {
        paris.ends(job, answered(201, Some("1")));
    }
    expect![[r#"
          job 2: photo: run paris.2
          job 3: album: run paris.3
    "#]]
    .assert_eq(&flush_left(&jobs(&mut paris)));
}

#[test]
fn a_circle_that_two_sites_made_at_once_fails_where_it_would_wait_for_ever() {
    let mut paris = paris();
    let config = std::sync::Arc::new(cheops_core::config::profile("http").unwrap().config.clone());
    let made = |of: &'static str, needs: &'static str| {
        let payload = http(of, "put", Act::CreatesAs).payload;
        let made = op("put").running(payload).declaring("lyon nantes paris", Some(config.clone()));
        made.with(move |it| it.needs = [resource(needs)].into_iter().collect())
    };
    paris.hears("lyon", other("lyon").on("b").tells_of(made("b", "a")));
    paris.so_far();
    paris.hears("nantes", other("nantes").on("a").tells_of(made("a", "b")));
    let story = jobs(&mut paris);
    let said = story.lines().filter(|line| line.contains(" + ") || line.contains("job"));
    let said: String = said.map(|line| format!("{line}\n")).collect();
    expect![[r#"
          + a: paris.1 says KO of nantes.1: needs `b`, which needs it in turn
          + b: paris.2 says KO of lyon.1: needs `a`, which failed here
    "#]]
    .assert_eq(&flush_left(&said));
}

#[test]
fn of_a_need_that_is_in_doubt_nothing_is_known_until_the_operator_says_so() {
    let mut paris = alone();
    paris.submits(http("album", "post", Act::Creates));
    paris.submits(needing(http("photo", "post", Act::Creates), "album"));
    paris.restarts();
    paris.so_far();
    paris.shows("photo");
    paris.is_told("album", "paris.1", cheops_core::plan::Decision::Rerun);
    paris.ends(1, answered(201, Some("1")));
    expect![[r#"
        = photo: list [paris.2], InStep, Running, waits: needs `album`, which is not there yet
        > operator: Rerun paris.1
          job 1: album: run paris.1
          job 2: photo: run paris.2
    "#]]
    .assert_eq(&flush_left(&jobs(&mut paris)));
}

/// Lyon's photo, which needs an album that paris was never told of.
fn needing_what_nobody_told_of() -> (Site, Other) {
    let mut paris = paris();
    let mut lyon = other("lyon");
    let made = op("inc").declaring("lyon nantes paris", Some(matrix("ordered")));
    let needs = |it: &mut cheops_core::model::Operation| {
        it.needs = [resource("never-made")].into_iter().collect();
    };
    let news = lyon.tells_of(made.with(needs));
    paris.hears("lyon", news);
    (paris, lyon)
}

#[test]
fn what_its_author_never_tells_of_while_it_is_heard_is_not_waited_for_for_ever() {
    let (mut paris, mut lyon) = needing_what_nobody_told_of();
    let next = lyon.writes(op("inc").on("lyon.1"));
    paris.hears("lyon", lyon.tells([next]));
    for _ in 0..599 {
        paris.hears("lyon", beat());
    }
    assert!(!paris.story().contains("job"), "it waits, and what comes after it");
    // Somebody else's signs of life say nothing of what lyon has to tell.
    paris.hears("nantes", beat());
    assert!(!paris.story().contains("job"));
    paris.hears("lyon", beat());
    let story = paris.story();
    assert!(story.contains("needs `never-made`, which nobody has told of here"), "{story}");
    assert!(story.contains("job 1: run lyon.2"), "{story}");
}

#[test]
fn what_a_liar_alone_could_tell_of_is_not_waited_for() {
    let (mut paris, lyon) = needing_what_nobody_told_of();
    let (mut one, mut another) = (lyon.clone(), lyon);
    let told_us = one.writes(op("inc").on("lyon.1"));
    let told_them = another.writes(op("inc").on("lyon.1").at_ms(1_000_007));
    paris.hears("lyon", one.tells([told_us]));
    paris.hears("nantes", other("nantes").tells([told_them]));
    let story = paris.story();
    assert!(story.contains("needs `never-made`, which nobody has told of here"), "{story}");
}

#[test]
fn what_this_site_needed_before_it_lost_its_disk_is_not_waited_for_for_ever() {
    let mut settings = settings("lyon nantes");
    settings.me = author("paris-2");
    settings.application = Application::Empty;
    let mut paris = start(settings);
    let needs = |it: &mut cheops_core::model::Operation| {
        it.needs = [resource("lost-with-the-disk")].into_iter().collect();
    };
    // Lyon had it of paris, and nobody has the other one.
    let made = op("inc").declaring("lyon nantes paris", Some(matrix("ordered"))).with(needs);
    let ours = other("paris").writes(made);
    paris.hears("lyon", other("lyon").tells([ours]).knowing("paris.1"));
    for _ in 0..599 {
        paris.hears("lyon", beat());
    }
    assert!(!paris.story().contains("KO"));
    for _ in 0..10 {
        paris.hears("lyon", beat());
    }
    let story = paris.story();
    assert!(story.contains("needs `lost-with-the-disk`, which nobody has told of here"), "{story}");
}
