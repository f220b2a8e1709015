//! A site of the mesh that edits its own log: what it makes up is well formed and false. The others
//! go on, before and after restarts, and say who it is.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cheops_agent::mesh::Identity;
use cheops_api::{Progress, SiteState, Wait};
use cheops_core::engine::{Base, Declared, Record, Sealer};
use cheops_core::model::{
    Author, Chain, Entry, EntryBody, EntryHash, EntryId, Operation, OperationId, Payload,
    ResourceId, SiteId, Stamp, Vector,
};
use cheops_store::{SiteLog, StoreOptions, open};

use crate::e2e::cluster::{Cluster, Setup, Site, first, shell, until, waiting_for};

/// All that anybody does is kept: what is missing was refused.
const MATRIX: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "set", "Result": "take-both"}]}"#;
const LIAR: u8 = 3;
const HONEST: [u8; 2] = [1, 2];

/// The log of a site whose agent is stopped, in the hands of who has its identity.
struct Forger {
    resource: ResourceId,
    log: Box<dyn SiteLog>,
    records: Vec<Record>,
    me: Author,
    identity: Identity,
}

impl Forger {
    fn at(site: &Site, resource: &str) -> Self {
        let name = SiteId::new(&site.name).unwrap();
        let opened = open(&site.data, &name, || 1, StoreOptions::default()).unwrap();
        let identity = Identity::read(&site.config.with_file_name("identity.pem")).unwrap();
        Self {
            resource: ResourceId::new(resource).unwrap(),
            me: Author { site: name, incarnation: opened.incarnation },
            log: opened.log,
            records: opened.records,
            identity,
        }
    }

    fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.records.iter().filter_map(|record| match record {
            Record::Entry(of, entry) if *of == self.resource => Some(entry),
            _ => None,
        })
    }

    fn author_of(&self, site: &str) -> Author {
        let authors = self.entries().map(|entry| &entry.id().author);
        authors.into_iter().find(|author| author.site.as_str() == site).unwrap().clone()
    }

    fn last_of(&self, author: &Author) -> (u64, EntryHash) {
        let own = self.entries().filter(|entry| entry.id().author == *author);
        let last = own.max_by_key(|entry| entry.id().n);
        last.map_or((0, EntryHash::UNSAID), |entry| (entry.id().n, entry.hash()))
    }

    /// An operation that nobody handed in, signed by the forger whoever it is said to be of.
    fn writes(&mut self, author: &Author, n: u64, claimed: Stamp, command: &str) {
        let after = self.last_of(author);
        let like = self.entries().find_map(|entry| match &entry.body {
            EntryBody::Operation(operation) => Some(operation.clone()),
            EntryBody::Reply(_) => None,
        });
        let operation = Operation {
            id: OperationId(EntryId { author: author.clone(), n }),
            stamp: claimed,
            claimed,
            parents: Vec::new(),
            payload: Payload::shell(command),
            ..like.unwrap()
        };
        let entry = Entry::new(&self.resource, after, EntryBody::Operation(operation), Vec::new());
        self.identity.site_key().unwrap().seal(&[&entry]);
        let record = Record::Entry(self.resource.clone(), Arc::new(entry));
        self.log.keep(std::slice::from_ref(&record), &[]).unwrap();
        self.records.push(record);
    }
}

impl Forger {
    /// Says that everything that all sites ever wrote was forgotten, and some more.
    fn claims_that_all_was_forgotten(&mut self) {
        let beyond = |entry: &Arc<Entry>| {
            let id = entry.id();
            let more = if id.author == self.me { 0 } else { 5 };
            EntryId { n: id.n + more, ..id.clone() }
        };
        let upto: Vector = self.entries().map(beyond).collect();
        let sites = self.entries().find_map(|entry| match &entry.body {
            EntryBody::Operation(operation) => Some(operation.declares.as_ref()?.sites.clone()),
            EntryBody::Reply(_) => None,
        });
        let declared = Declared { sites: sites.unwrap(), config: None, id_map: None };
        let base = Base {
            upto,
            declared: Some(declared),
            chain: Chain::default(),
            order: None,
            state: None,
        };
        let record = Record::Pruned(self.resource.clone(), Box::new(base));
        self.log.keep(std::slice::from_ref(&record), &[]).unwrap();
    }
}

/// The honest ones hand in one operation each, and each runs the other's.
async fn go_on(cluster: &Cluster, id: &str, round: &str) {
    for site in HONEST {
        let command = format!("echo {round}-{site} >> __ID__");
        let said = format!("{round}-{site}\n");
        cluster[site].does(id, &waiting_for(Wait::Local, shell("set", command))).await;
        for other in HONEST {
            let name = &cluster[other].name;
            until(&format!("{name} has run {round} of site{site}"), async || {
                cluster[other].file(id).contains(&said)
            })
            .await;
            // Killed before its reply is on the disk, it would not know whether it ran this.
            until(&format!("{name} says so"), async || {
                cluster[other].operations(id).await.iter().any(|operation| {
                    operation.summary.contains(&said[..said.len() - 1])
                        && operation.replies.contains_key(name)
                })
            })
            .await;
        }
    }
}

async fn restart_all(cluster: &mut Cluster) {
    // Killed while it runs what the forger wrote, an honest site would be in doubt of that, and wait.
    for site in HONEST {
        until("nothing runs", async || {
            let motd = cluster[site].resource("motd").await;
            motd.is_some_and(|motd| motd.progress == Progress::Idle)
        })
        .await;
    }
    for site in cluster.numbers() {
        cluster[site].kill();
    }
    for site in cluster.numbers() {
        cluster.restart(site).await;
    }
    until("the honest ones hear each other", async || {
        cluster[1].reaches().await >= 1 && cluster[2].reaches().await >= 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_edited_log_neither_ends_a_mesh_nor_speaks_nor_mutes_for_another() {
    let mut cluster = Setup::sites(3).start().await;
    let begin = first(shell("set", "echo begin > __ID__"), &cluster.everywhere(), MATRIX);
    cluster[1].does("motd", &begin).await;
    for site in [2, 3] {
        cluster[site].does("motd", &shell("set", format!("echo {site} > __ID__"))).await;
    }
    cluster.converges("motd").await;

    // Given a site that writes into its own log what it never did: at the end of time, in the name
    // of another, and under the last number that another has.
    cluster[LIAR].stop().await;
    let mut forger = Forger::at(&cluster[LIAR], "motd");
    let (me, victim) = (forger.me.clone(), forger.author_of("site1"));
    let end = Stamp { wall_ms: (1 << 48) - 1, counter: u64::from(u32::MAX) };
    let beyond = Stamp { wall_ms: u64::MAX / 2, counter: 0 };
    let now = Stamp { wall_ms: 1_800_000_000_000, counter: 0 };
    let own = forger.last_of(&me).0;
    let theirs = forger.last_of(&victim).0;
    forger.writes(&me, own + 1, end, "echo end >> __ID__");
    forger.writes(&me, own + 2, beyond, "echo beyond >> __ID__");
    forger.writes(&victim, theirs + 1, now, "echo forged > __ID__; touch __ID__.forged");
    forger.writes(&victim, u64::MAX / 2, now, "echo mute > __ID__; touch __ID__.forged");
    drop(forger);
    cluster.restart(LIAR).await;

    // Then the others go on, with each other and alone, before and after restarts of all.
    for round in ["first", "second"] {
        go_on(&cluster, "motd", round).await;
        restart_all(&mut cluster).await;
    }
    go_on(&cluster, "motd", "third").await;
    for site in HONEST {
        until("the forged entries were refused", async || {
            fs::read_to_string(&cluster[site].log).unwrap().contains("not its author's word")
        })
        .await;
        assert!(!cluster[site].files.join("motd.forged").exists(), "nobody speaks for another");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_tells_one_site_this_and_another_that_is_set_apart_by_both() {
    let mut cluster = Setup::sites(3).start().await;
    let begin = first(shell("set", "echo begin > __ID__"), &cluster.everywhere(), MATRIX);
    cluster[1].does("motd", &begin).await;
    cluster[LIAR].does("motd", &shell("set", "echo 3 > __ID__")).await;
    cluster.converges("motd").await;

    // Given a site that tells site1 this, with site2 away,
    cluster[LIAR].stop().await;
    let before = cluster.folder().join("before");
    copy(&cluster[LIAR].data, &before);
    cluster[2].stop().await;
    cluster.restart(LIAR).await;
    let tell = |what: &str| {
        let command = format!("echo {what} > __ID__; echo {what} >> __ID__.heard");
        waiting_for(Wait::Local, shell("set", command))
    };
    cluster[LIAR].does("motd", &tell("this")).await;
    until("site1 heard this", async || cluster[1].file("motd.heard") == "this\n").await;

    // and then, as if it had not, tells site2 that under the same names.
    cluster[LIAR].stop().await;
    cluster[1].stop().await;
    fs::remove_dir_all(&cluster[LIAR].data).unwrap();
    copy(&before, &cluster[LIAR].data);
    cluster.restart(2).await;
    cluster.restart(LIAR).await;
    cluster[LIAR].does("motd", &tell("that")).await;
    until("site2 heard that", async || cluster[2].file("motd.heard") == "that\n").await;

    // When the two hear each other,
    cluster.restart(1).await;
    for site in HONEST {
        // then both find out, and say so,
        until("the liar is set apart", async || {
            let sites = cluster[site].client().sites().await.unwrap().sites;
            sites.iter().any(|it| it.site == "site3" && it.state == SiteState::SetApart)
        })
        .await;
        let said = cluster[site].cheops(&["sites"]);
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(said.contains("set apart") && said.contains("new one"), "{said}");
    }
    // and go on with each other, after restarts as well.
    go_on(&cluster, "motd", "first").await;
    restart_all(&mut cluster).await;
    go_on(&cluster, "motd", "second").await;
    for site in HONEST {
        let sites = cluster[site].client().sites().await.unwrap().sites;
        let liar = sites.iter().find(|it| it.site == "site3").unwrap();
        assert_eq!(liar.state, SiteState::SetApart, "after a restart as well");
    }
}

/// The operations of `motd` that a site knows, by their names.
async fn known_at(site: &Site) -> Vec<String> {
    if site.resource("motd").await.is_none() {
        return Vec::new();
    }
    let mut known: Vec<_> =
        site.operations("motd").await.into_iter().map(|operation| operation.id).collect();
    known.sort_unstable();
    known
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_site_says_was_forgotten_is_forgotten_by_none_that_others_can_tell_better() {
    let mut cluster = Setup::sites(3).start().await;
    let begin = first(shell("set", "echo begin > __ID__"), &cluster.everywhere(), MATRIX);
    cluster[1].does("motd", &begin).await;
    for site in [2, 3] {
        cluster[site].does("motd", &shell("set", format!("echo {site} > __ID__"))).await;
    }
    cluster.converges("motd").await;

    // Given a site that says that all of it was forgotten,
    cluster[LIAR].stop().await;
    let mut forger = Forger::at(&cluster[LIAR], "motd");
    forger.claims_that_all_was_forgotten();
    drop(forger);
    cluster.restart(LIAR).await;
    // the others go on,
    go_on(&cluster, "motd", "first").await;

    // and one that lost its disk, and hears the liar first, still gets all of it from the other.
    let all = known_at(&cluster[1]).await;
    assert!(all.len() >= 5, "{all:?}");
    for site in HONEST {
        cluster[site].stop().await;
    }
    fs::remove_dir_all(&cluster[2].data).unwrap();
    cluster.restart(2).await;
    until("site2 hears the liar", async || cluster[2].reaches().await >= 1).await;
    assert_eq!(known_at(&cluster[2]).await, Vec::<String>::new(), "one word is not enough");
    cluster.restart(1).await;
    until("site2 has all of it back", async || {
        let known = known_at(&cluster[2]).await;
        all.iter().all(|operation| known.contains(operation))
    })
    .await;
}
