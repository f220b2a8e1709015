//! Agents that start in data directories of the version before, with all that was in them.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cluster::{replies, shell, until};
use cheops_agent::Agent;
use cheops_agent::config::AgentConfig;
use cheops_api::{Client, ResourceState, Submit, SubmitEvent, Wait};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// A data directory as the program of commit 99ce964 left it, and the identity of its site.
fn old_directory(site: &str, dir: &Path) {
    let fixtures = fixtures();
    copy(&fixtures.join(site), &dir.join(site));
    fs::set_permissions(dir.join(site), fs::Permissions::from_mode(0o700)).unwrap();
    let journal = fs::OpenOptions::new().write(true).open(dir.join(site).join("journal")).unwrap();
    journal.set_len(8 << 20).unwrap();
    identity(site, dir);
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cheops-store/tests/fixtures/format-3")
}

fn identity(site: &str, dir: &Path) {
    let identity = dir.join(format!("{site}.pem"));
    fs::copy(fixtures().join(format!("{site}.pem")), &identity).unwrap();
    fs::set_permissions(&identity, fs::Permissions::from_mode(0o600)).unwrap();
}

async fn start(
    dir: &Path,
    (site, at): (&str, SocketAddr),
    (other, there): (&str, SocketAddr),
) -> Agent {
    let text = format!(
        "site = \"{site}\"\ndata_dir = \"{site}\"\n[api]\nlisten = \"127.0.0.1:0\"\nauth = \"none\"\n\
         [mesh]\nlisten = \"{at}\"\nidentity = \"{site}.pem\"\n\
         [[peers]]\nsite = \"{other}\"\naddress = \"{there}\"\n\
         [[services]]\nname = \"things\"\nupstream = \"http://127.0.0.1:9\"\n"
    );
    let config = AgentConfig::parse(&text, &dir.join("agent.toml"), |_| None).unwrap();
    Agent::start(config).await.unwrap()
}

fn client(agent: &Agent) -> Client {
    Client::new(&format!("http://{}", agent.api_address())).unwrap()
}

fn free_ports() -> [SocketAddr; 2] {
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap())
}

/// Nothing is left to do; what failed before the move still has.
async fn is_settled(client: &Client, id: &str) -> bool {
    let resource = client.resource(id).await;
    resource.is_ok_and(|resource| {
        ResourceState::Converged == resource.summary.state
            || ResourceState::Error == resource.summary.state && resource.behind.is_empty()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn two_old_directories_start_with_all_they_held_and_their_sites_go_on_together() {
    let dir = tempfile::tempdir().unwrap();
    let [at_paris, at_lyon] = free_ports();
    for site in ["paris", "lyon"] {
        old_directory(site, dir.path());
    }
    let paris = start(dir.path(), ("paris", at_paris), ("lyon", at_lyon)).await;
    let lyon = start(dir.path(), ("lyon", at_lyon), ("paris", at_paris)).await;
    let (at_paris, at_lyon) = (client(&paris), client(&lyon));

    // What one had and the other lacked when they were killed is at both.
    for id in ["counter", "notes", "fresh", "image"] {
        until(&format!("{id} converged"), async || {
            is_settled(&at_paris, id).await && is_settled(&at_lyon, id).await
        })
        .await;
        let here = at_paris.resource(id).await.unwrap();
        let there = at_lyon.resource(id).await.unwrap();
        assert_eq!(here.list, there.list, "{id}");
    }
    assert!(at_paris.resource("only").await.is_ok());

    for (client, kind) in [(&at_paris, "set"), (&at_lyon, "incr")] {
        let mut lines = client.submit("counter", &shell("", kind, "true"), &[]).await.unwrap();
        let mut events = Vec::new();
        while let Some(event) = lines.next().await.unwrap() {
            events.push(event);
        }
        assert_eq!(replies(&events), [("lyon", "OK"), ("paris", "OK")], "{events:?}");
        assert_eq!(events.last(), Some(&SubmitEvent::Done));
    }
    paris.stop().await;
    lyon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_site_wrote_before_it_had_an_identity_is_taken_by_others_once_it_has_one() {
    let dir = tempfile::tempdir().unwrap();
    let [at_paris, at_lyon] = free_ports();
    for site in ["paris", "lyon"] {
        identity(site, dir.path());
    }
    let alone = "site = \"paris\"\ndata_dir = \"paris\"\n\
                 [api]\nlisten = \"127.0.0.1:0\"\nauth = \"none\"\n";
    let config = AgentConfig::parse(alone, &dir.path().join("agent.toml"), |_| None).unwrap();
    let paris = Agent::start(config).await.unwrap();
    submit(&client(&paris), "paris").await;
    paris.stop().await;

    // Of the same name, so it is the same: its sites are those that either was made at.
    let lyon = start(dir.path(), ("lyon", at_lyon), ("paris", at_paris)).await;
    submit(&client(&lyon), "lyon & paris").await;
    let paris = start(dir.path(), ("paris", at_paris), ("lyon", at_lyon)).await;
    let (at_paris, at_lyon) = (client(&paris), client(&lyon));
    until("both know both", async || {
        let (here, there) = (at_paris.resource("counter").await, at_lyon.resource("counter").await);
        let (Ok(here), Ok(there)) = (here, there) else { return false };
        here.list == there.list && here.list.len() == 2
    })
    .await;
    paris.stop().await;
    lyon.stop().await;
}

async fn submit(client: &Client, sites: &str) {
    let asked = Submit { wait: Wait::Local, ..shell(sites, "incr", "true") };
    let mut lines = client.submit("counter", &asked, &[]).await.unwrap();
    while lines.next().await.unwrap().is_some() {}
}
