//! Who does not belong to the mesh is not let in, and it is said why.

use std::fs;

use cheops_api::{Site as SeenSite, SiteState};

use crate::e2e::cluster::{Setup, Site, first, shell, until};

const MATRIX: &str = r#"{"ResolutionMatrix": []}"#;

async fn seen(by: &Site, name: &str) -> Option<SeenSite> {
    let sites = by.client().sites().await.ok()?;
    sites.sites.into_iter().find(|site| site.site == name)
}

/// What the command line says of the sites.
fn sites(by: &Site) -> String {
    let ran = by.cheops(&["sites"]);
    String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap()
}

async fn problem_with(by: &Site, name: &str) -> String {
    let mut problem = None;
    until(&format!("{} says what is wrong with {name}", by.name), async || {
        problem = seen(by, name).await.and_then(|site| site.problem);
        problem.is_some()
    })
    .await;
    let problem = problem.unwrap();
    eprintln!("{} says of {name}: {problem}", by.name);
    // A table breaks lines.
    let first_words: String = problem.split(' ').take(3).collect::<Vec<_>>().join(" ");
    assert!(sites(by).contains(&first_words), "{}", sites(by));
    problem
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_with_the_certificate_of_another_mesh_is_refused() {
    let mut cluster = Setup::sites(3).set().await;
    cluster.mesh("other-mesh");
    fs::remove_file(cluster.folder().join("site3/identity.pem")).unwrap();
    cluster.issue("other-mesh", "site3", "site3/identity.pem");
    for site in 1..=3 {
        cluster.restart(site).await;
    }
    for site in [1, 2] {
        for (by, of) in [(site, 3), (3, site)] {
            let problem = problem_with(&cluster[by], &format!("site{of}")).await;
            assert!(problem.contains("certificate is of another mesh"), "{problem}");
        }
    }
    until("the others hear each other", async || cluster[1].hears().await == 1).await;

    // Nothing gets through, in either direction.
    let everywhere = cluster.everywhere();
    let secret = first(shell("set", "echo secret > __ID__"), &everywhere, MATRIX);
    let secret = cheops_api::Submit { timeout_ms: 2_000, ..secret };
    cluster[1].does("secret", &secret).await;
    assert_eq!(cluster[2].file("secret"), "secret\n");
    let forged = first(shell("set", "echo forged > __ID__"), &everywhere, MATRIX);
    cluster[3].does("forged", &cheops_api::Submit { timeout_ms: 2_000, ..forged }).await;
    assert_eq!(cluster[3].file("secret"), "");
    assert!(cluster[3].resource("secret").await.is_none());
    for site in [1, 2] {
        assert!(cluster[site].resource("forged").await.is_none());
        let state = seen(&cluster[site], "site3").await.unwrap().state;
        assert_eq!(state, SiteState::NeverHeard);
        // It has called all the while, and whoever reads the log is told once.
        let log = fs::read_to_string(&cluster[site].log).unwrap();
        let refused = |line: &&str| line.contains("was refused") && line.contains("another mesh");
        let warned: Vec<&str> = log.lines().filter(refused).collect();
        assert!(warned.len() <= 1, "{warned:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_the_others_do_not_list_is_refused() {
    let mut cluster = Setup::sites(3).set().await;
    // The first two know nothing of the third.
    for site in [1, 2] {
        let text = fs::read_to_string(&cluster[site].config).unwrap();
        let (known, _) = text.split_once("\n[[peers]]\nsite = \"site3\"").unwrap();
        fs::write(&cluster[site].config, known).unwrap();
    }
    for site in 1..=3 {
        cluster.restart(site).await;
    }
    until("the others hear each other", async || cluster[1].hears().await == 1).await;
    for site in ["site1", "site2"] {
        problem_with(&cluster[3], site).await;
    }
    assert!(seen(&cluster[1], "site3").await.is_none());
    assert_eq!(cluster[3].hears().await, 0);
    let log = fs::read_to_string(&cluster[1].log).unwrap();
    assert!(log.contains("site3"), "the refused call is in the log:\n{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_with_the_identity_of_another_site_does_not_start() {
    let mut cluster = Setup::sites(2).set().await;
    let folder = cluster.folder();
    fs::copy(folder.join("site1/identity.pem"), folder.join("site2/identity.pem")).unwrap();
    cluster.start_agent(2);
    let ended = cluster[2].ended().await;
    assert_eq!(ended.code(), Some(2));
    let log = cluster[2].log_tail();
    assert!(log.contains("site1") && log.contains("site2"), "{log}");
}
