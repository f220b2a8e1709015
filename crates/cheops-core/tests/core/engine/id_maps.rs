//! Resources of services: what requests are known by, in which incarnation, and what may be there
//! unknown.

use cheops_core::engine::{Application, Submission};
use cheops_core::model::{Act, Payload, ServiceRef, Status};
use cheops_core::plan::Decision;
use expect_test::expect;

use super::fixture::*;

/// What was said of ids and of jobs.
fn published(paris: &mut Site) -> String {
    let story = paris.story();
    let words = ["> ", "publish", "  job", "KO", "= ", "    "];
    let lines = story.lines().filter(|line| words.iter().any(|word| line.contains(word)));
    let lines = lines.filter(|line| !line.contains("answer ") && !line.contains("+ "));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn what_a_service_calls_a_resource_is_known_from_its_answer_until_it_is_deleted() {
    let mut paris = alone();
    paris.submits(http("meta", "post", Act::Creates));
    paris.ends(1, answered(201, Some("7")));
    paris.submits(http("meta", "delete", Act::Deletes));
    paris.ends(2, answered(204, None));
    paris.shows("meta");
    expect![[r#"
        > 1: meta post
          publish meta: meta nowhere yet
          job 1: meta: run paris.1
          publish meta: meta as paris=7
        > 2: meta delete
          job 2: meta: run paris.3
          publish meta: nothing
        = meta: list [paris.3], InStep, Idle, settled, deleted, pruned paris.1
            paris.3 paris=OK
    "#]]
    .assert_eq(&flush_left(&published(&mut paris)));
}

#[test]
fn a_resource_that_its_user_named_is_called_so_everywhere_and_a_refused_deletion_ends_nothing() {
    let mut paris = alone();
    paris.submits(http("meta", "create", Act::CreatesAs));
    paris.ends(1, answered(201, None));
    paris.submits(http("meta", "delete", Act::Deletes));
    paris.ends(2, answered(403, None));
    paris.shows("meta");
    expect![[r#"
        > 1: meta create
          publish meta: meta everywhere
          job 1: meta: run paris.1
        > 2: meta delete
          job 2: meta: run paris.3
        = meta: list [paris.1], InStep, Idle, settled
            paris.1 paris=OK
            paris.3 paris=KO out: FailedEverywhere
    "#]]
    .assert_eq(&flush_left(&published(&mut paris)));
}

#[test]
fn what_failed_everywhere_never_came_to_be_and_is_not_known() {
    let mut paris = alone();
    paris.submits(http("meta", "post", Act::Creates));
    paris.ends(1, answered(422, None));
    // Made again, it is.
    paris.submits(http("meta", "post", Act::Creates));
    expect![[r#"
        > 1: meta post
          publish meta: meta nowhere yet
          job 1: meta: run paris.1
          publish meta: nothing
        > 2: meta post
          publish meta: meta nowhere yet
          job 2: meta: run paris.3
    "#]]
    .assert_eq(&flush_left(&published(&mut paris)));
}

#[test]
fn what_another_site_calls_it_is_known_when_it_says_so_and_in_the_incarnation_it_is_in() {
    let mut paris = paris();
    let asked =
        Submission { sites: Some(sites("lyon paris")), ..http("meta", "post", Act::Creates) };
    paris.submits(asked);
    let mut lyon = other("lyon").on("meta");
    let named = says("paris.1", Status::Ok).ended(answered(201, Some("L")));
    paris.hears("lyon", lyon.tells_of(named));
    paris.ends(1, answered(201, Some("P")));
    // It comes back without its disk: what its service was called before may be another's now.
    paris.hears("lyon", beat().in_incarnation(2));
    let mut again = other("lyon-2").on("meta");
    again.learns("paris.1");
    let named = says("paris.1", Status::Ok).ended(answered(201, Some("M")));
    paris.hears("lyon", again.tells_of(named));
    expect![[r#"
        > 1: meta post
          publish meta: meta nowhere yet
          job 1: meta: run paris.1
        > lyon: meta: [lyon.1 says OK of paris.1] knows lyon.1
          publish meta: meta as lyon=L
          publish meta: meta as lyon=L paris=P
        > lyon: alive at 0 in incarnation 2
          publish meta: meta as paris=P
        > lyon: meta: [lyon-2.1 says OK of paris.1] knows lyon-2.1 paris.1 in incarnation 2
          publish meta: meta as lyon=M paris=P
    "#]]
    .assert_eq(&flush_left(&published(&mut paris)));
}

#[test]
fn ids_outlive_a_restart_also_of_what_is_about_to_be_deleted() {
    let mut paris = alone();
    paris.submits(http("meta", "post", Act::Creates));
    paris.ends(1, answered(201, Some("7")));
    paris.so_far();
    paris.restarts();
    // The deletion rules the creation out; what it is to delete must not be forgotten with it.
    paris.submits(http("meta", "delete", Act::Deletes));
    paris.restarts();
    expect![[r#"
        > restart
          publish meta: meta as paris=7
        > 2: meta delete
          job 1: meta: run paris.3
        > restart
          publish meta: meta as paris=7
          job 1: meta: run paris.3, again
    "#]]
    .assert_eq(&flush_left(&published(&mut paris)));
}

#[test]
fn a_replacement_leaves_the_creation_that_the_matrix_wants_kept() {
    let mut paris = alone();
    paris.submits(http("meta", "post", Act::Creates));
    paris.ends(1, answered(201, Some("7")));
    for job in 2..=3 {
        paris.submits(http("meta", "put", Act::Changes));
        paris.ends(job, answered(200, None));
    }
    paris.so_far();
    paris.shows("meta").told(expect![[r#"
        = meta: list [paris.1 paris.3 paris.5], InStep, Idle, settled
            paris.1 paris=OK
            paris.3 paris=OK
            paris.5 paris=OK
    "#]]);
}

#[test]
fn what_was_under_way_when_the_site_stopped_is_run_again_and_said_to_be() {
    let mut paris = alone();
    paris.submits(http("meta", "create", Act::CreatesAs));
    paris.restarts();
    expect![[r#"
        > 1: meta create
          publish meta: meta everywhere
          job 1: meta: run paris.1
        > restart
          publish meta: meta everywhere
          job 1: meta: run paris.1, again
    "#]]
    .assert_eq(&flush_left(&published(&mut paris)));
}

#[test]
fn ids_of_a_service_that_is_lost_lead_nowhere_until_the_thing_is_made_anew() {
    let mut paris = alone();
    paris.submits(http("meta", "post", Act::Creates));
    paris.ends(1, answered(201, Some("7")));
    paris.so_far();
    paris.is_reborn(2, Application::Empty, paris.disk.entries());
    paris.ends(1, answered(201, Some("1")));
    paris.restarts();
    expect![[r#"
        > restart
          publish meta: meta nowhere yet
          job 1: meta: run paris.1
          publish meta: meta as paris=1
        > restart
          publish meta: meta as paris=1
    "#]]
    .assert_eq(&flush_left(&published(&mut paris)));
}

#[test]
fn a_creation_that_is_run_again_answers_under_the_new_id() {
    let mut paris = alone();
    paris.submits(http("meta", "post", Act::Creates));
    // The answer was under way when the site stopped: nobody knows whether it was made.
    paris.restarts();
    paris.so_far();
    paris.is_told("meta", "paris.1", Decision::Rerun);
    paris.ends(1, answered(201, Some("8")));
    expect![[r#"
        > operator: Rerun paris.1
          job 1: meta: run paris.1
          publish meta: meta as paris=8
    "#]]
    .assert_eq(&flush_left(&published(&mut paris)));
}

#[test]
fn what_is_made_is_not_made_twice_whoever_asks_for_it() {
    let mut paris = alone();
    paris.submits(http("meta", "post", Act::Creates));
    paris.ends(1, answered(201, Some("7")));
    paris.so_far();
    // No user can: the id of a resource is drawn with its creation. Who writes entries can.
    paris.submits(http("meta", "post", Act::Creates));
    paris.shows("meta").told(expect![[r#"
        > 2: meta post
          + meta: paris.3 post on paris.1
          + meta: begin run paris.3
          + meta: end run paris.3: Ko
          + meta: paris.4 says KO of paris.3: service `image` of this site has made `meta` already, as `7`
          answer 2: accepted as paris.3 for paris
          note Failed(meta, paris.3)
          note Settled(meta, paris.3, Failed)
          answer 2: paris says KO of paris.3: service `image` of this site has made `meta` already, as `7`
          answer 2: done
        = meta: list [paris.1], InStep, Idle, settled
            paris.1 paris=OK
            paris.3 paris=KO out: FailedEverywhere
    "#]]);
}

#[test]
fn what_may_be_there_under_an_unknown_id_is_not_said_to_be_deleted() {
    let mut paris = alone();
    paris.submits(http("meta", "post", Act::Creates));
    paris.restarts();
    paris.so_far();
    paris.submits(http("meta", "delete", Act::Deletes));
    paris.shows("meta");
    paris.told(expect![[r#"
        > 2: meta delete
          + meta: paris.3 delete replacing on paris.1
          + meta: begin run paris.3
          + meta: end run paris.3: Ko
          + meta: paris.4 says KO of paris.3: service `image` of this site may have `meta` under an id that is not known here; end it there by hand, or make it anew by settling its creation with `rerun`
          answer 2: accepted as paris.3 for paris
          note Failed(meta, paris.3)
          note Settled(meta, paris.3, Failed)
          answer 2: paris says KO of paris.3: service `image` of this site may have `meta` under an id that is not known here; end it there by hand, or make it anew by settling its creation with `rerun`
          answer 2: done
          note InDoubt(meta, paris.1)
        = meta: list [paris.1], InStep, AwaitsOperator(paris.1)
            paris.1 paris=IN-DOUBT
            paris.3 paris=KO out: FailedEverywhere
    "#]]);
}

#[test]
fn what_an_earlier_incarnation_called_it_counts_once_the_operator_says_that_it_is_there() {
    let mut paris = alone();
    paris.submits(http("meta", "post", Act::Creates));
    paris.ends(1, answered(201, Some("7")));
    paris.so_far();
    paris.is_reborn(2, Application::MayHoldState, paris.disk.entries());
    // The run was cut short: it is in doubt.
    paris.restarts();
    paris.shows("meta");
    paris.is_told("meta", "paris.1", Decision::Skip);
    paris.shows("meta");
    expect![[r#"
        > restart
          publish meta: meta nowhere yet
          job 1: meta: run paris.1
        > restart
          publish meta: meta nowhere yet
        = meta: list [paris.1], InStep, AwaitsOperator(paris.1), was called 7
            paris.1 paris-2=IN-DOUBT
        > operator: Skip paris.1
          publish meta: meta as paris=7
        = meta: list [paris.1], InStep, Idle, settled
            paris.1 paris-2=OK
    "#]]
    .assert_eq(&flush_left(&published(&mut paris)));
}

#[test]
fn of_what_two_services_called_it_nobody_can_tell_which_is_there() {
    let mut paris = alone();
    paris.submits(http("meta", "post", Act::Creates));
    paris.ends(1, answered(201, Some("7")));
    paris.is_reborn(2, Application::Empty, paris.disk.entries());
    paris.ends(1, answered(201, Some("1")));
    paris.is_reborn(3, Application::MayHoldState, paris.disk.entries());
    paris.restarts();
    paris.so_far();
    paris.is_told("meta", "paris.1", Decision::Skip);
    paris.submits(http("meta", "delete", Act::Deletes));
    paris.shows("meta");
    expect![[r#"
        > operator: Skip paris.1
        > 2: meta delete
        = meta: list [paris.1], InStep, Idle, settled
            paris.1 paris-3=OK
            paris-3.3 paris-3=KO out: FailedEverywhere
    "#]]
    .assert_eq(&flush_left(&published(&mut paris)));
}

#[test]
fn a_site_that_is_started_from_a_copy_says_again_under_which_id() {
    let mut paris = alone();
    paris.submits(http("meta", "post", Act::Creates));
    paris.ends(1, answered(201, Some("7")));
    paris.submits(http("meta", "patch", Act::Changes));
    paris.ends(2, answered(400, None));
    paris.so_far();
    paris.is_reborn(2, Application::MayHoldState, paris.disk.clone());
    paris.restarts();
    paris.shows("meta");
    paris.told(expect![[r#"
        > restart
          + meta: paris-2.1 says OK of paris.1
          + meta: paris-2.2 says KO of paris.3
          publish meta: meta as paris=7
          publish meta: meta as paris=7
        > restart
          publish meta: meta as paris=7
        = meta: list [paris.1], InStep, Idle, settled
            paris.1 paris-2=OK
            paris.3 paris-2=KO out: FailedEverywhere
    "#]]);
}

/// Such as `request`, of a collection of the service of its own.
fn of_collection(collection: &str, act: Act) -> Payload {
    let Payload::Http { service, method, path, headers, body, service_ref } =
        request("drawn", act, None)
    else {
        unreachable!("it is a request")
    };
    let service_ref = service_ref
        .map(|it| Box::new(ServiceRef { collection: collection.into(), ..ServiceRef::clone(&it) }));
    Payload::Http { service, method, path, headers, body, service_ref }
}

#[test]
fn of_two_kinds_of_things_under_one_name_the_first_in_the_order_is_what_it_leads_to_everywhere() {
    let writes = |site: &str, at_ms: u64, collection: &str, id: &str| {
        let mut author = other(site).on("drawn");
        let made = op("post").declaring("lyon nantes paris", None).at_ms(at_ms);
        let made = author.writes(made.running(of_collection(collection, Act::Creates)));
        let named = says(&format!("{site}.1"), Status::Ok).ended(answered(201, Some(id)));
        let named = author.writes(named);
        (site.to_owned(), author.tells([made, named]))
    };
    let first = || writes("lyon", 1_000_000, "/images", "7");
    let second = || writes("nantes", 2_000_000, "/flavors", "9");
    let known_after = |said: [(String, News); 2]| {
        let mut paris = paris();
        for (from, news) in said {
            paris.hears(&from, news);
        }
        let before = paris.engine.resource(&resource("drawn")).unwrap().id_map.unwrap();
        paris.restarts();
        let after = paris.engine.resource(&resource("drawn")).unwrap().id_map.unwrap();
        assert_eq!(before, after);
        after
    };
    let (one, other) = (known_after([first(), second()]), known_after([second(), first()]));
    assert_eq!(one, other);
    assert_eq!(one.collection, "/images");
    assert_eq!((one.at(&site("lyon")), one.at(&site("nantes"))), (Some("7"), None));
}
