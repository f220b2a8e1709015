//! Whole agents in one process, joined by real links on loopback: what a user of any of them sees.

use crate::cluster::{Cluster, replies, shell, until};
use cheops_api::{
    Action, Change, ClientError, Cursor, Decision, Delete, ExecStatus, HttpAction, NumberedChange,
    ResourceFilter, ResourceState, Show, ShowStatus, Submit, SubmitEvent, Upload, Wait,
};

const EVERYWHERE: &str = "site1 & site2 & site3";

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_handed_in_at_one_site_runs_at_every_site_of_its_resource() {
    let cluster = Cluster::of(3).await;
    let file = cluster.file("sites");

    let command = format!("echo $CHEOPS_SITE >> {file}");
    let events = cluster.submit(0, "counter", &shell(EVERYWHERE, "append", &command)).await;

    assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK"), ("site3", "OK")]);
    assert_eq!(events.last(), Some(&SubmitEvent::Done));
    assert_eq!(sorted_lines(&file), ["site1", "site2", "site3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_comes_with_an_operation_is_at_every_site_when_it_runs() {
    let cluster = Cluster::of(3).await;
    let sent = cluster.dir().join("sent");
    // More than one read, one frame and one window.
    let content: Vec<u8> = (0..6_000_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(&sent, &content).unwrap();
    let hash = blake3::hash(&content).to_string();

    let command = format!("cp {{data.bin}} {}/got-$CHEOPS_SITE", cluster.dir().display());
    let upload = Upload { name: "data.bin".into(), path: sent };
    let submit = shell("site1 & site2", "put", &command);
    // Handed in at a site that does not hold the resource.
    let events = cluster.submit_with(2, "blob", &submit, &[upload]).await;

    assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")], "{events:?}");
    for site in ["site1", "site2"] {
        let got = std::fs::read(cluster.dir().join(format!("got-{site}"))).unwrap();
        assert_eq!(blake3::hash(&got).to_string(), hash);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_keeps_its_name_in_any_script_when_its_operation_is_passed_on() {
    let cluster = Cluster::of(2).await;
    let sent = cluster.dir().join("sent");
    std::fs::write(&sent, "bonjour").unwrap();
    let name = "donn\u{e9}es \u{2013} \u{6570}\u{636e}.txt";
    let upload = Upload { name: name.into(), path: sent };

    // Handed in at a site that does not hold the resource.
    let submit = shell("site2", "put", &format!("cat {{{name}}}"));
    let events = cluster.submit_with(0, "named", &submit, &[upload]).await;

    let output = events.iter().find_map(|event| match event {
        SubmitEvent::Reply(said) => Some(said.reply.output.as_str()),
        _ => None,
    });
    assert_eq!(output, Some("bonjour"), "{events:?}");
    let operations = cluster.client(1).operations("named", &Cursor::default()).await.unwrap().items;
    let cheops_api::Payload::Shell(command) = &operations[0].payload else { panic!("a command") };
    assert_eq!(command.files[0].name, name);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_does_not_hold_a_resource_passes_everything_on_to_one_that_does() {
    let cluster = Cluster::of(3).await;
    cluster.submit(1, "far", &shell("site2 & site3", "set", "true")).await;
    let near = cluster.client(0);

    assert_eq!(near.resource("far").await.unwrap().summary.sites, ["site2", "site3"]);
    assert_eq!(near.operations("far", &Cursor::default()).await.unwrap().items.len(), 1);
    assert_eq!(near.explain("far").await.unwrap().list.len(), 1);
    let events = cluster.submit(0, "far", &shell("", "set", "true")).await;
    assert_eq!(replies(&events), [("site2", "OK"), ("site3", "OK")]);
    let show = Show { command: "echo $CHEOPS_SITE".into(), sites: None, timeout_ms: 5_000 };
    let shown = near.show("far", &show).await.unwrap().sites;
    let shown: Vec<_> =
        shown.iter().map(|(site, shown)| (site.as_str(), shown.output.trim())).collect();
    assert_eq!(shown, [("site2", "site2"), ("site3", "site3")]);
    let nowhere = near.resources(&ResourceFilter::default()).await.unwrap();
    assert_eq!(nowhere.items, [], "site1 holds nothing of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_nobody_holds_is_not_found() {
    let cluster = Cluster::of(2).await;
    let client = cluster.client(0);
    for refused in [
        client.resource("nothing").await.err(),
        client.explain("nothing").await.err(),
        client.submit("nothing", &shell("", "set", "true"), &[]).await.err(),
    ] {
        let Some(ClientError::Refused(problem)) = refused else { panic!("{refused:?}") };
        assert_eq!((problem.status, problem.title.as_str()), (404, "no such resource"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_with_what_is_wrong() {
    let cluster = Cluster::of(2).await;
    let client = cluster.client(0);
    cluster.submit(0, "here", &shell("site1 & site2", "set", "true")).await;
    let elsewhere = shell("site1", "set", "true");
    let reserved = shell("site1", "cheops.delete", "true");
    let mut profile = shell("site1", "set", "true");
    profile.profile = Some("couchdb".into());
    for (id, submit, status, said) in [
        ("new", shell("site1 & site9", "set", "true"), 400, "site9"),
        ("new", shell("site1 ; site2", "set", "true"), 400, "is not a set of sites"),
        ("new", shell("around(site1, 10ms)", "set", "true"), 400, "is not a set of sites"),
        ("new", shell("site1 & (around(site2, 1s))", "set", "true"), 400, "is not a set of sites"),
        ("here", elsewhere, 409, "lives on"),
        ("new", reserved, 400, "kept for Cheops"),
        ("new", profile, 400, "couchdb"),
    ] {
        let refused = client.submit(id, &submit, &[]).await.err();
        let Some(ClientError::Refused(problem)) = refused else { panic!("{refused:?}") };
        assert_eq!(problem.status, status, "{problem:?}");
        assert!(problem.detail.contains(said), "{problem:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_brings_another_config_for_a_resource_is_told_that_it_replaces_the_first() {
    let cluster = Cluster::of(1).await;
    let with = |profile: &str| {
        let profile = Some(profile.to_owned());
        Submit { profile, ..shell("site1", "set", "true") }
    };
    for (submit, expected) in [
        (with("redis"), false),
        (with("redis"), false),
        (shell("site1", "set", "true"), false),
        (with("file"), true),
        (with("file"), false),
    ] {
        let events = cluster.submit(0, "cfg", &submit).await;
        let Some(SubmitEvent::Accepted { config_replaced, .. }) = events.first() else {
            panic!("{events:?}")
        };
        assert_eq!(*config_replaced, expected, "{submit:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_that_the_matrix_does_not_list_is_taken_with_a_warning_that_names_those_it_does() {
    let cluster = Cluster::of(1).await;
    let first = Submit { profile: Some("redis".to_owned()), ..shell("site1", "set", "true") };
    for (submit, expected) in [
        (first, None),
        (shell("site1", "inc", "true"), None),
        (shell("site1", "incr", "true"), Some("did you mean `inc`?")),
        (shell("site1", "publish", "true"), Some("listed are `del`, `inc`, `sadd`")),
    ] {
        let events = cluster.submit(0, "x", &submit).await;
        let Some(SubmitEvent::Accepted { warnings, .. }) = events.first() else {
            panic!("{events:?}")
        };
        let told = warnings.first().map(String::as_str).unwrap_or_default();
        assert_eq!(warnings.len(), usize::from(expected.is_some()), "{warnings:?}");
        assert!(told.contains(expected.unwrap_or_default()), "{warnings:?}");
    }
    // Nobody has said which types there are.
    let events = cluster.submit(0, "without", &shell("site1", "anything", "true")).await;
    let Some(SubmitEvent::Accepted { warnings, .. }) = events.first() else { panic!("{events:?}") };
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_for_a_service_that_no_site_has_is_refused_before_anything_is_written() {
    let mut cluster = Cluster::of(2).await;
    let asks = HttpAction {
        service: "image".to_owned(),
        method: "PUT".to_owned(),
        path: "/x".to_owned(),
        headers: Vec::new(),
        body: None,
    };
    let submit = Submit { action: Action::Http(asks), ..shell("site1 & site2", "put", "") };
    let refused = cluster.client(0).submit("new", &submit, &[]).await.err();
    let Some(ClientError::Refused(problem)) = refused else { panic!("{refused:?}") };
    assert_eq!(problem.status, 400);
    let said = "none of site1, site2 has a service `image`; they have none";
    assert_eq!(problem.detail, said, "{problem:?}");
    let known = cluster.client(0).resource("new").await.err();
    assert!(matches!(known, Some(ClientError::Refused(_))), "{known:?}");
    // A site that cannot be asked may have it.
    cluster.stop(1).await;
    let submit = Submit { wait: Wait::Local, ..submit };
    let events = cluster.submit(0, "new", &submit).await;
    assert_eq!(replies(&events), [("site1", "KO")], "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_joins_sites_wrongly_is_told_how_and_of_no_way_that_is_refused_next() {
    let cluster = Cluster::of(2).await;
    for sites in ["site1, site2", "site1 site2", "site1 % site2"] {
        let refused =
            cluster.client(0).submit("new", &shell(sites, "set", "true"), &[]).await.err();
        let Some(ClientError::Refused(problem)) = refused else { panic!("{refused:?}") };
        let hint = problem.hint.clone().unwrap_or_default();
        assert!(hint.contains("`paris & lyon`"), "{problem:?}");
        let said = problem.detail.replace(sites, "") + &hint;
        assert!(!said.contains('%') && !said.contains(';'), "{problem:?}");
    }
    let both = cluster.submit(0, "new", &shell("(site1) & (site2)", "set", "true")).await;
    assert_eq!(replies(&both), [("site1", "OK"), ("site2", "OK")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_tells_everything_once_and_in_order_from_any_place_on() {
    let cluster = Cluster::of(2).await;
    let client = cluster.client(1);
    for n in 0..5 {
        let submit = shell("site1 & site2", "add", &format!("echo {n}"));
        cluster.submit(0, "fed", &submit).await;
    }

    let mut feed = client.changes(Some("fed"), Some(0)).await.unwrap();
    let mut seen = Vec::new();
    let told = |seen: &[NumberedChange]| {
        seen.iter().filter(|seen| matches!(seen.change, Change::Reply { .. })).count()
    };
    while told(&seen) < 10 {
        seen.push(feed.next().await.unwrap().expect("the feed does not end"));
    }
    drop(feed);

    assert!(seen.is_sorted_by_key(|seen| seen.id));
    assert!(seen.iter().all(|seen| seen.at.ends_with('Z')), "{seen:?}");
    let operations = seen.iter().filter(|seen| matches!(seen.change, Change::Operation { .. }));
    assert_eq!(operations.count(), 5);
    let middle = seen[seen.len() / 2].id;
    let rest: Vec<_> = seen.iter().filter(|seen| seen.id > middle).cloned().collect();
    let mut feed = client.changes(Some("fed"), Some(middle)).await.unwrap();
    // The time is that of the change, not of telling it.
    for expected in rest {
        assert_eq!(feed.next().await.unwrap().expect("the feed does not end"), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_resource_is_gone_everywhere_and_only_force_brings_it_back() {
    let cluster = Cluster::of(2).await;
    let file = cluster.file("doomed");
    let both = "site1 & site2";
    cluster
        .submit(0, "doomed", &shell(both, "set", &format!("echo x > {file}-$CHEOPS_SITE")))
        .await;

    let client = cluster.client(1);
    let delete = Delete { command: Some(format!("rm {file}-$CHEOPS_SITE")), ..Delete::default() };
    let mut events = client.delete("doomed", &delete).await.unwrap();
    while events.next().await.unwrap().is_some() {}

    assert!(!std::fs::exists(format!("{file}-site1")).unwrap());
    assert!(!std::fs::exists(format!("{file}-site2")).unwrap());
    assert_eq!(client.resources(&ResourceFilter::default()).await.unwrap().items, []);
    assert_eq!(client.resource("doomed").await.unwrap().summary.state, ResourceState::Deleted);
    let mine = shell("site1", "set", "true");
    cluster.submit(0, "mine", &mine).await;
    let mut events = cluster.client(0).delete("mine", &Delete::default()).await.unwrap();
    while events.next().await.unwrap().is_some() {}
    let ended = cluster.client(0).operations("mine", &Cursor::default()).await.unwrap().items;
    assert_eq!(ended.last().unwrap().summary, "nothing is run");
    let refused = client.submit("doomed", &shell("", "set", "true"), &[]).await.err();
    let Some(ClientError::Refused(problem)) = refused else { panic!("{refused:?}") };
    assert_eq!(problem.status, 409);
    let mut forced = shell("", "set", "true");
    forced.force = true;
    assert_eq!(
        replies(&cluster.submit(0, "doomed", &forced).await),
        [("site1", "OK"), ("site2", "OK")]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_originals_clients_are_served_as_ever() {
    let cluster = Cluster::of(2).await;
    let client = cluster.client(0);
    let sent = cluster.dir().join("greeting");
    std::fs::write(&sent, "hello").unwrap();
    let form = cheops_api::ExecForm {
        command: "cat {greeting}".into(),
        sites: "site1&site2".into(),
        kind: "set".into(),
        config: Some(
            r#"{"ResolutionMatrix":[{"Before":"set","After":"set","Result":"take-one"}]}"#.into(),
        ),
    };
    let upload = Upload { name: "greeting".into(), path: sent };

    let mut lines = client.exec("old", &form, &[upload]).await.unwrap();
    let mut said = Vec::new();
    while let Some(line) = lines.next().await.unwrap() {
        assert_eq!((line.status, line.output.as_str()), (ExecStatus::Ok, "hello"));
        assert_eq!(line.cmd.input, "cat {greeting}");
        assert_eq!(line.locations, ["site1", "site2"]);
        said.push(line.site);
    }

    said.sort();
    assert_eq!(said, ["site1", "site2"]);
    let form = cheops_api::ShowForm { command: "echo __ID__".into(), sites: "site1&site2".into() };
    let shown = client.legacy_show("old", &form).await.unwrap();
    assert!(shown.values().all(|shown| shown.status == ShowStatus::Ok && shown.output == "old\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_stopped_lets_commands_end_and_goes_on_where_it_was() {
    let mut cluster = Cluster::of(2).await;
    let file = cluster.file("slow");
    let mut slow = shell("site1 & site2", "add", &format!("sleep 1; echo $CHEOPS_SITE >> {file}"));
    slow.wait = Wait::None;
    cluster.submit(0, "slow", &slow).await;

    cluster.stop(0).await;
    cluster.start(0).await;

    let client = cluster.client(0);
    until("both sites have run it", async || {
        client.resource("slow").await.unwrap().summary.state == ResourceState::Converged
    })
    .await;
    assert_eq!(sorted_lines(&file), ["site1", "site2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_run_at_each_site_or_once_where_the_operation_was_handed_in() {
    let cluster = Cluster::of(3).await;
    let (each, once) = (cluster.file("each"), cluster.file("once"));
    let mut submit = shell(EVERYWHERE, "set", "true");
    submit.config = Some(serde_json::json!({ "Hooks": [
        { "On": "applied", "Command": format!("echo $CHEOPS_SITE >> {each}") },
        { "On": "applied", "Run": "once", "Command": format!("echo $CHEOPS_SITE >> {once}") },
        { "On": "failed", "Command": format!("echo never >> {each}") },
    ] }));

    cluster.submit(1, "hooked", &submit).await;

    until("hooks ran everywhere", async || {
        std::fs::read_to_string(&each).is_ok_and(|text| text.lines().count() >= 3)
            && std::fs::read_to_string(&once).is_ok_and(|text| !text.is_empty())
    })
    .await;
    assert_eq!(sorted_lines(&each), ["site1", "site2", "site3"]);
    assert_eq!(sorted_lines(&once), ["site2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_in_doubt_can_be_settled() {
    let cluster = Cluster::of(1).await;
    cluster.submit(0, "sure", &shell("site1", "add", "true")).await;
    let refused = cluster.client(0).settle("sure", "site1-1.1", Decision::Skip, None).await.err();
    let Some(ClientError::Refused(problem)) = refused else { panic!("{refused:?}") };
    assert_eq!((problem.status, problem.title.as_str()), (409, "nothing to settle"));
}

fn sorted_lines(file: &str) -> Vec<String> {
    let mut lines: Vec<_> =
        std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}
