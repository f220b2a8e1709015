//! What an agent makes of files that others could have read or changed, when it starts.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cheops_agent::config::AgentConfig;
use cheops_agent::{Agent, mesh};
use cheops_core::model::SiteId;

/// A site that is set up, and not started.
fn site(dir: &Path, auth: &str) -> AgentConfig {
    let (name, authority) = (SiteId::new("site1").unwrap(), dir.join("mesh"));
    mesh::create(&authority).unwrap();
    mesh::issue(&authority, &name, &dir.join("site1.pem")).unwrap();
    let text = format!(
        "site = \"site1\"\ndata_dir = \"data\"\n[api]\nlisten = \"127.0.0.1:0\"\n{auth}\
         [mesh]\nlisten = \"127.0.0.1:0\"\nidentity = \"site1.pem\"\n"
    );
    AgentConfig::parse(&text, &dir.join("agent.toml"), |_| None).unwrap()
}

async fn refused(config: &AgentConfig) -> String {
    match Agent::start(config.clone()).await {
        Ok(_) => panic!("it starts"),
        Err(error) => cheops_core::causes(&error),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_identity_others_can_read_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let config = site(dir.path(), "auth = \"none\"\n");
    let identity = dir.path().join("site1.pem");
    for mode in [0o640, 0o604, 0o644, 0o660] {
        fs::set_permissions(&identity, Permissions::from_mode(mode)).unwrap();
        let why = refused(&config).await;
        assert!(why.contains("not only its owner can read"), "{mode:o}: {why}");
    }
    fs::set_permissions(&identity, Permissions::from_mode(0o600)).unwrap();
    Agent::start(config).await.unwrap().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_identity_or_token_is_somebody_elses_does_not_start() {
    const SOMEBODY: u32 = 54_321;
    let dir = tempfile::tempdir().unwrap();
    let config = site(dir.path(), "");
    let identity = dir.path().join("site1.pem");
    if let Err(error) = std::os::unix::fs::chown(&identity, Some(SOMEBODY), None) {
        eprintln!("NOT TRIED: a file cannot be given away here: {error}");
        return;
    }
    let why = refused(&config).await;
    assert!(why.contains("holds a key"), "{why}");
    std::os::unix::fs::chown(&identity, Some(0), None).unwrap();
    Agent::start(config.clone()).await.unwrap().stop().await;

    let token = dir.path().join("data/api.token");
    std::os::unix::fs::chown(&token, Some(SOMEBODY), None).unwrap();
    let why = refused(&config).await;
    assert!(why.contains("api.token"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_keeps_is_its_owners_alone_in_an_open_folder_too() {
    let dir = tempfile::tempdir().unwrap();
    let config = site(dir.path(), "");
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    for _before_and_after_somebody_opened_them in 0..2 {
        fs::set_permissions(&data, Permissions::from_mode(0o777)).unwrap();
        Agent::start(config.clone()).await.unwrap().stop().await;
        for name in ["log.db", "journal", "api.token"] {
            let file = data.join(name);
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{name} has mode {mode:o}");
            if name != "api.token" {
                fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
            }
        }
    }
}
