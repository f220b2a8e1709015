//! Programs of the sites that decide about operations made concurrently.

use cheops_api::{Resource, Standing, Wait};
use cheops_core::config::Config;

use crate::e2e::cluster::{Cluster, Setup, first, shell, waiting_for};
use crate::e2e::states::{diverged, is_verified, same_everywhere, until_all_say};

/// The example's; the config of a site in these tests ends with `[shell]`.
const SHOPPING: &str = concat!(
    "[logic]\nshopping = \"python3 '",
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/shopping/shopping.py'\"\n"
);
const MATRIX: &str = include_str!("../../../../../examples/shopping/matrix.yaml");

fn matrix() -> String {
    Config::parse(MATRIX).unwrap().config.to_json()
}

fn add(item: &str) -> (&'static str, String) {
    ("add", format!("item='{item}'; echo \"$item\" >> shopping.txt"))
}

fn remove(item: &str) -> (&'static str, String) {
    ("remove", format!("item='{item}'; sed -i \"/^$item\\$/d\" shopping.txt"))
}

/// A list with these items at all sites, which then do not hear each other.
async fn begun_and_cut(cluster: &Cluster, items: &[&str]) {
    for (n, item) in items.iter().enumerate() {
        let (kind, command) = add(item);
        let mut submit = shell(kind, command);
        if n == 0 {
            submit = first(submit, &cluster.everywhere(), &matrix());
        }
        cluster[1].does("list", &submit).await;
    }
    cluster.converges("list").await;
    cluster.cut();
    cluster.nobody_hears().await;
}

async fn does_there(cluster: &Cluster, site: u8, operations: &[(&'static str, String)]) {
    for (kind, command) in operations {
        cluster[site].does("list", &waiting_for(Wait::Local, shell(kind, command))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_changed_at_three_sites_in_a_cut_ends_as_the_program_says_equal_and_verified() {
    let cluster = Setup::sites(3).config(SHOPPING).start().await;
    begun_and_cut(&cluster, &["milk", "eggs"]).await;
    does_there(&cluster, 1, &[add("oat milk"), remove("eggs")]).await;
    does_there(&cluster, 2, &[remove("milk"), add("oat milk")]).await;
    does_there(&cluster, 3, &[add("milk"), add("bread")]).await;
    cluster.heal();
    until_all_say(&cluster, "list", "verified", is_verified).await;
    let list = same_everywhere(&cluster, |site| site.file("shopping.txt"));
    assert_eq!(list, "milk\noat milk\nbread\n");
    // What comes after is no concern of the program.
    let (kind, command) = add("tea");
    cluster[2].does("list", &shell(kind, command)).await;
    until_all_say(&cluster, "list", "verified again", is_verified).await;
    let list = same_everywhere(&cluster, |site| site.file("shopping.txt"));
    assert_eq!(list, "milk\noat milk\nbread\ntea\n");
}

/// The sites that have diverged since their program said something else than another's.
fn disagreeing(told: &Resource) -> Vec<&str> {
    let disagrees = |why: &String| why.contains("disagree");
    let at = told
        .standings
        .iter()
        .filter(|at| at.standing == Standing::Diverged && at.why.as_ref().is_some_and(disagrees));
    at.map(|at| at.site.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_says_a_random_number_is_reported_as_disagreeing_at_all_sites() {
    let random = "id=$(grep -o '\"id\":\"[^\"]*\"' | head -n 1 | cut -d '\"' -f 4)\n\
                  n=$(shuf -i 1-1000000000 -n 1)\n\
                  echo \"[{\\\"id\\\": \\\"$id\\\", \\\"command\\\": \\\"echo $n > shopping.txt\\\"}]\"\n";
    let mut cluster = Setup::sites(3).config("[logic]\nshopping = \"sh random.sh\"\n").set().await;
    for site in cluster.sites() {
        site.change_file("random.sh", random);
    }
    cluster.start_all().await;
    begun_and_cut(&cluster, &["milk"]).await;
    does_there(&cluster, 1, &[add("tea")]).await;
    does_there(&cluster, 2, &[add("bread")]).await;
    cluster.heal();
    let everywhere = ["site1", "site2", "site3"];
    until_all_say(&cluster, "list", "the logic disagrees at all sites", |told| {
        disagreeing(told) == everywhere
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_without_the_program_says_so_and_all_sites_say_that_it_differs() {
    let mut cluster = Setup::sites(3).config(SHOPPING).set().await;
    let config = &cluster[3].config;
    let text = std::fs::read_to_string(config).unwrap();
    std::fs::write(config, text.replace("shopping = ", "another = ")).unwrap();
    cluster.start_all().await;
    begun_and_cut(&cluster, &["milk"]).await;
    // In the total order, both run.
    does_there(&cluster, 1, &[add("tea")]).await;
    does_there(&cluster, 2, &[add("tea")]).await;
    cluster.heal();
    until_all_say(&cluster, "list", "the third has diverged", |it| diverged(it) == ["site3"]).await;
    let lists: Vec<String> = cluster.sites().map(|site| site.file("shopping.txt")).collect();
    assert_eq!(lists, ["milk\ntea\n", "milk\ntea\n", "milk\ntea\ntea\n"]);
    let told = cluster[3].resource("list").await.unwrap();
    let why = told.proof.unwrap().logic_failed.unwrap();
    assert!(why.contains("has no program `shopping`"), "{why}");
}
