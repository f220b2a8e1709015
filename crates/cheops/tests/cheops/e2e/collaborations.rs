//! A real application of two services at three sites, which knows nothing of the others: what a
//! scope makes of it, also when sites are cut off.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::e2e::cluster::{Cluster, Setup, until};

const IMAGE: u16 = 9292;
const COMPUTE: u16 = 8774;
/// Where the proxy of a service is.
const PROXY: u16 = 10_000;

const SERVICES: &str = r#"
[[services]]
name = "image"
listen = "__SITE__:19292"
upstream = "http://__SITE__:9292"

[[services]]
name = "compute"
listen = "__SITE__:18774"
upstream = "http://__SITE__:8774"

[services.cross]
divide = ["/cpus"]
sum = ["/used"]
"#;

/// The application of all sites; ends when dropped.
struct Application {
    // First, so that it ends before the network it runs in.
    services: Vec<Child>,
    cluster: Cluster,
}

impl Drop for Application {
    fn drop(&mut self) {
        for service in &mut self.services {
            let _gone = service.kill();
            let _gone = service.wait();
        }
    }
}

struct Answer {
    status: u16,
    /// Which site answered.
    site: String,
    error: String,
    /// Which parts are missing.
    incomplete: String,
    body: Value,
}

impl Application {
    async fn start() -> Self {
        let cluster = Setup::sites(3).config(SERVICES).start().await;
        let mut application = Self { services: Vec::new(), cluster };
        for site in application.cluster.numbers() {
            let address = application.cluster.address_of(site);
            application.run(site, "image.mjs", &format!("{address}:{IMAGE}"), &[]);
            let image = format!("http://{address}:{}", PROXY + IMAGE);
            let compute = format!("{address}:{COMPUTE}");
            application.run(site, "compute.mjs", &compute, &["--image-url", &image]);
        }
        application
    }

    fn run(&mut self, site: u8, program: &str, listen: &str, more: &[&str]) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/imagery/");
        let data = self.cluster.folder().join(format!("site{site}/{program}-data"));
        let mut command = self.cluster.command(site, "node");
        command.arg(format!("{path}{program}")).args(["--listen", listen, "--data"]).arg(data);
        let mut service = command.args(more).stdout(Stdio::piped()).spawn().expect("node runs");
        let mut line = String::new();
        BufReader::new(service.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        self.services.push(service);
        assert!(line.starts_with("listening on"), "{program} of site{site}: {line:?}");
    }

    fn ask(&self, site: u8, service: u16, method: &str, path: &str, scope: &str) -> Answer {
        self.send(site, service, method, path, scope, &Value::Null)
    }

    fn send(
        &self,
        site: u8,
        service: u16,
        method: &str,
        path: &str,
        scope: &str,
        body: &Value,
    ) -> Answer {
        let address = SocketAddr::new(self.cluster.address_of(site), PROXY + service);
        let scope = match scope {
            "" => String::new(),
            scope => format!("X-Scope: {scope}\r\n"),
        };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{scope}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut connection = TcpStream::connect(address).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        connection.write_all(request.as_bytes()).unwrap();
        let mut heard = String::new();
        connection.read_to_string(&mut heard).unwrap();
        Answer::read(&heard)
    }

    /// An image that only this site has.
    fn image(&self, site: u8, name: &str, content: &str) -> String {
        let made = self.send(site, IMAGE, "POST", "/v1/images", "", &json!({ "name": name }));
        assert_eq!(made.status, 201);
        let id = made.body["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/images/{id}/file");
        let sent = self.send(site, IMAGE, "PUT", &path, "", &json!(content));
        assert_eq!(sent.status, 204);
        id
    }

    fn boot(&self, site: u8, scope: &str, server: &Value) -> Answer {
        self.send(site, COMPUTE, "POST", "/v1/servers", scope, server)
    }
}

impl Answer {
    fn read(heard: &str) -> Self {
        let (head, body) = heard.split_once("\r\n\r\n").unwrap_or((heard, ""));
        let header = |name: &str| {
            let found = head.lines().filter_map(|line| line.split_once(": "));
            let mut found = found.filter(|(key, _)| key.eq_ignore_ascii_case(name));
            found.next().map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        // Bodies of these services are one line; chunks would be others.
        let body = body.lines().find(|line| line.starts_with('{')).unwrap_or("null");
        Self {
            status: head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0),
            site: header("x-cheops-site"),
            error: header("x-cheops-error"),
            incomplete: header("x-cheops-incomplete"),
            body: serde_json::from_str(body).unwrap(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_boots_at_one_site_from_an_image_of_another() {
    let application = Application::start().await;
    let image = application.image(2, "debian", "the bits of debian");
    let server = json!({ "name": "web", "image": image });
    let scope = "{compute: site1, image: site2}";

    // Without a scope nobody looks elsewhere.
    let alone = application.boot(1, "", &server);
    assert_eq!((alone.status, alone.site.as_str()), (422, "site1"), "{}", alone.body);

    for asked_at in [1, 3] {
        let booted = application.boot(asked_at, scope, &server);
        assert_eq!((booted.status, booted.site.as_str()), (201, "site1"), "{}", booted.body);
        assert!(booted.body["image_checksum"].is_string());
    }

    // A service that goes on working after its answer still does so under its scope.
    let later = json!({ "name": "later", "image": image, "later": true });
    let building = application.boot(1, scope, &later);
    assert_eq!(building.status, 202, "{}", building.body);
    let path = building.body["self"].as_str().unwrap().to_owned();
    until("the server is active", async || {
        let server = application.ask(1, COMPUTE, "GET", &path, "").body;
        assert_ne!(server["status"], "error", "{server}");
        server["status"] == "active"
    })
    .await;

    let servers = |site| {
        let listed = application.ask(site, COMPUTE, "GET", "/v1/servers", "").body;
        listed["servers"].as_array().unwrap().len()
    };
    assert_eq!([1, 2, 3].map(servers), [3, 0, 0], "all of them are at site1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_is_cut_off_works_alone_and_others_stand_in_for_it() {
    let application = Application::start().await;
    let image = application.image(2, "debian", "the bits of debian");
    let list = |site, scope| application.ask(site, IMAGE, "GET", "/v1/images", scope);
    let chain = "image: site2 ; site3";

    let answer = list(1, chain);
    assert_eq!((answer.status, answer.site.as_str()), (200, "site2"));

    application.cluster.cut_off(2);
    until("site2 is not heard", async || application.cluster[1].hears().await == 1).await;
    let answer = list(1, chain);
    assert_eq!((answer.status, answer.site.as_str()), (200, "site3"), "{}", answer.error);
    let answer = list(1, "image: site2");
    assert_eq!((answer.status, answer.error.as_str()), (503, "unreachable"));
    let server = json!({ "name": "web", "image": image });
    let answer = application.boot(1, "{compute: site1, image: site2}", &server);
    assert_eq!(answer.status, 502, "compute hears that image cannot be reached: {}", answer.body);
    // And at the site itself nothing has changed.
    let answer = application.boot(2, "", &server);
    assert_eq!((answer.status, answer.site.as_str()), (201, "site2"), "{}", answer.body);

    application.cluster.join(2);
    application.cluster.all_hear().await;
    let answer = application.boot(1, "{compute: site1, image: site2}", &server);
    assert_eq!((answer.status, answer.site.as_str()), (201, "site1"), "{}", answer.body);
    let answer = list(1, chain);
    assert_eq!((answer.status, answer.site.as_str()), (200, "site2"));
}

/// What users see of the images of a site: ids with what was said of them, and not what each site
/// adds by itself.
fn images(application: &Application, site: u8) -> Vec<Value> {
    let listed = application.ask(site, IMAGE, "GET", "/v1/images", "").body;
    let mut images = listed["images"].as_array().expect("a list").clone();
    images.iter_mut().for_each(|image| drop(image.as_object_mut().unwrap().remove("created")));
    images.sort_by_key(|image| image["id"].as_str().unwrap().to_owned());
    images
}

async fn all_have(application: &Application, sites: &[u8], names: &[&str]) {
    until("the sites have the same images", async || {
        let all: Vec<_> = sites.iter().map(|site| images(application, *site)).collect();
        let mut listed: Vec<_> =
            all[0].iter().map(|image| image["name"].as_str().unwrap()).collect();
        listed.sort_unstable();
        listed == names && all.iter().all(|images| *images == all[0])
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_kept_at_two_sites_under_one_id() {
    let application = Application::start().await;
    let both = "image: site1 & site2";
    let wanted = json!({ "name": "debian", "os": "linux" });
    let made = application.send(1, IMAGE, "POST", "/v1/images", both, &wanted);
    assert_eq!((made.status, made.site.as_str()), (201, "site1"), "{}", made.body);
    let path = made.body["self"].as_str().unwrap().to_owned();
    let id = made.body["id"].as_str().unwrap().to_owned();
    assert_eq!(path, format!("/v1/images/{id}"));
    let sent = application.send(1, IMAGE, "PUT", &format!("{path}/file"), "", &json!("bits"));
    assert_eq!(sent.status, 204);
    all_have(&application, &[1, 2], &["debian"]).await;
    until("both have its file", async || {
        [1, 2].iter().all(|site| images(&application, *site)[0]["status"] == "active")
    })
    .await;
    all_have(&application, &[1, 2], &["debian"]).await;

    // A service that is given the id finds the image of its own site, and knows of no other.
    let server = json!({ "name": "web", "image": id });
    for site in [1, 2] {
        let booted = application.boot(site, "", &server);
        assert_eq!((booted.status, booted.site), (201, format!("site{site}")), "{}", booted.body);
    }
    let alone = application.boot(3, "", &server);
    assert_eq!(alone.status, 422, "site3 has none: {}", alone.body);
    let shared = application.boot(3, both, &server);
    assert_eq!((shared.status, shared.site.as_str()), (201, "site3"), "{}", shared.body);

    let renamed = application.send(2, IMAGE, "PATCH", &path, "", &json!({ "name": "debian 12" }));
    assert_eq!((renamed.status, renamed.site.as_str()), (200, "site2"));
    assert_eq!(renamed.body["id"], json!(id));
    all_have(&application, &[1, 2], &["debian 12"]).await;
    let gone = application.ask(3, IMAGE, "DELETE", &path, both);
    assert_eq!(gone.status, 204);
    all_have(&application, &[1, 2], &[]).await;
    for site in [1, 2] {
        assert_eq!(application.ask(site, IMAGE, "GET", &path, "").status, 404);
    }
    assert!(images(&application, 3).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn sites_that_are_cut_off_change_the_same_images_and_agree_when_they_meet() {
    let application = Application::start().await;
    let all = "image: site1 & site2 & site3";
    let make = |site: u8, name: &str| {
        let wanted = json!({ "name": name });
        let made = application.send(site, IMAGE, "POST", "/v1/images", all, &wanted);
        assert_eq!(made.status, 201, "{}", made.body);
        made.body["self"].as_str().unwrap().to_owned()
    };
    let change = |site: u8, method: &str, path: &str, body: &Value| {
        let answer = application.send(site, IMAGE, method, path, "", body);
        assert!((200..300).contains(&answer.status), "{method} {path}: {}", answer.body);
    };
    let (patched, replaced, ended) = (make(1, "patched"), make(2, "replaced"), make(3, "ended"));
    all_have(&application, &[1, 2, 3], &["ended", "patched", "replaced"]).await;

    application.cluster.cut();
    application.cluster.nobody_hears().await;
    // Everyone is answered at once, by its own site.
    change(1, "PATCH", &patched, &json!({ "os": "linux", "by": "site1" }));
    change(2, "PATCH", &patched, &json!({ "version": 12, "by": "site2" }));
    change(3, "PUT", &format!("{patched}/file"), &json!("bits"));
    change(1, "PUT", &replaced, &json!({ "name": "replaced at 1" }));
    change(2, "PATCH", &replaced, &json!({ "os": "bsd" }));
    change(3, "PUT", &replaced, &json!({ "name": "replaced at 3" }));
    change(1, "PATCH", &ended, &json!({ "os": "linux" }));
    change(2, "DELETE", &ended, &Value::Null);
    let made: Vec<String> = [1, 2, 3].map(|site| make(site, &format!("of site{site}"))).into();
    for site in [1, 2, 3] {
        let has = |path: &String| application.ask(site, IMAGE, "GET", path, "").status == 200;
        assert_eq!(made.iter().filter(|path| has(path)).count(), 1, "only its own");
    }

    application.cluster.heal();
    application.cluster.all_hear().await;
    let names = ["of site1", "of site2", "of site3", "patched", "replaced at 3"];
    all_have(&application, &[1, 2, 3], &names).await;
    let image = application.ask(2, IMAGE, "GET", &patched, "").body;
    let kept = (&image["os"], &image["version"], &image["by"], &image["status"]);
    assert_eq!(kept, (&json!("linux"), &json!(12), &json!("site2"), &json!("active")), "{image}");
    let image = application.ask(1, IMAGE, "GET", &replaced, "").body;
    assert_eq!(image["os"], Value::Null, "a concurrent patch gives way to what replaces: {image}");
    for path in [patched, replaced] {
        application.cluster.converges(path.rsplit('/').next().unwrap()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_answered_for_outlives_a_kill_of_the_agent_that_took_it_in() {
    let mut application = Application::start().await;
    let wanted = json!({ "name": "debian" });
    let both = "image: site1 & site2";
    let made = application.send(1, IMAGE, "POST", "/v1/images", both, &wanted);
    let path = made.body["self"].as_str().unwrap().to_owned();
    all_have(&application, &[1, 2], &["debian"]).await;

    application.cluster.cut_off(1);
    for site in [2, 3] {
        until("site1 is not heard", async || application.cluster[site].hears().await == 1).await;
    }
    let bits = json!("bits".repeat(50_000));
    let sent = application.send(1, IMAGE, "PUT", &format!("{path}/file"), "", &bits);
    assert_eq!(sent.status, 204);
    application.cluster[1].kill();
    assert_eq!(images(&application, 2)[0]["size"], 0, "nobody else has heard of it");
    application.cluster.restart(1).await;
    application.cluster.join(1);
    until("site2 has the file", async || {
        let size = bits.to_string().len();
        [1, 2].iter().all(|site| images(&application, *site)[0]["size"] == size)
    })
    .await;
    all_have(&application, &[1, 2], &["debian"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_spans_two_sites_and_says_what_is_missing_when_one_is_cut_off() {
    let application = Application::start().await;
    let wanted = json!({ "name": "debian" });
    let both = "image: site1 & site2";
    let made = application.send(1, IMAGE, "POST", "/v1/images", both, &wanted);
    let path = format!("{}/file", made.body["self"].as_str().unwrap());
    assert_eq!(application.send(1, IMAGE, "PUT", &path, "", &json!("bits")).status, 204);
    until("both have its file", async || {
        let status = |site: u8| images(&application, site).first().map(|one| one["status"].clone());
        [1, 2].iter().all(|site| status(*site) == Some(json!("active")))
    })
    .await;

    let spread = "compute: site1 % site2";
    let server = json!({ "name": "web", "image": made.body["id"], "cpus": 6 });
    let booted = application.boot(3, spread, &server);
    assert_eq!(booted.status, 201, "{}", booted.body);
    let parts = ["site1", "site2"].map(|site| &booted.body["sites"][site]["cpus"]);
    assert_eq!((&booted.body["cpus"], parts), (&json!(6), [&json!(3), &json!(3)]));
    let path = booted.body["self"].as_str().unwrap().to_owned();
    let capacity = |scope| application.ask(1, COMPUTE, "GET", "/v1/capacity", scope).body;
    let used = |capacity: Value| (capacity["cpus"].clone(), capacity["used"].clone());
    assert_eq!(used(capacity(spread)), (json!(16), json!(6)));
    assert_eq!(used(capacity("")), (json!(8), json!(3)), "a part is a server like any other");
    let servers = application.ask(3, COMPUTE, "GET", "/v1/servers", spread).body;
    assert_eq!(servers["servers"].as_array().unwrap().len(), 2, "{servers}");

    application.cluster.cut_off(2);
    // By none of the two, or one would go on with a link that the other side has given up.
    for site in [1, 3] {
        until("site2 is not heard", async || application.cluster[site].hears().await == 1).await;
    }
    let shown = application.ask(1, COMPUTE, "GET", &path, "");
    assert_eq!((shown.status, shown.incomplete.as_str()), (200, "site2"), "{}", shown.body);
    assert_eq!(shown.body["cpus"], json!(3));
    let refused = application.boot(1, spread, &server);
    assert_eq!((refused.status, refused.error.as_str()), (503, "not-created"), "{}", refused.body);
    assert_eq!(used(capacity("")), (json!(8), json!(3)), "nothing of it is left");

    application.cluster.join(2);
    application.cluster.all_hear().await;
    let shown = application.ask(1, COMPUTE, "GET", &path, "");
    assert_eq!((shown.status, shown.incomplete.as_str()), (200, ""), "{}", shown.body);
    assert_eq!(shown.body["cpus"], json!(6));
    assert_eq!(application.ask(2, COMPUTE, "DELETE", &path, "").status, 204);
    let gone = application.ask(3, COMPUTE, "GET", &path, "");
    assert_eq!(gone.status, 404, "{} {}", gone.error, gone.body);
    assert_eq!(used(capacity(spread)), (json!(16), json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_near_answers_and_another_one_when_that_is_cut_off() {
    let application = Application::start().await;
    let scope = "image: around(site2, 30s)";
    let list = |site| application.ask(site, IMAGE, "GET", "/v1/images", scope);
    // Nobody is nearer to a site than itself, wherever the user is.
    for site in [1, 2, 3] {
        let answer = list(site);
        assert_eq!((answer.status, answer.site.as_str()), (200, "site2"), "{}", answer.error);
    }
    application.cluster.cut_off(2);
    until("site2 is not heard", async || application.cluster[1].hears().await == 1).await;
    let answer = list(1);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(["site1", "site3"].contains(&answer.site.as_str()), "{}", answer.site);
    application.cluster.join(2);
    application.cluster.all_hear().await;
    assert_eq!(list(1).site, "site2");
}
