//! A real application of two services at three sites, which knows nothing of the others: what a
//! scope makes of it, also when sites are cut off.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{Setup, Stage, until};

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
"#;

/// The application of all sites; ends when dropped.
struct Application {
    // First, so that it ends before the network it runs in.
    services: Vec<Child>,
    stage: Stage,
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
    body: Value,
}

impl Application {
    async fn start() -> Self {
        let stage = Setup::sites(3).config(SERVICES).start().await;
        let mut application = Self { services: Vec::new(), stage };
        for site in application.stage.numbers() {
            let address = application.stage.address_of(site);
            application.run(site, "image.mjs", &format!("{address}:{IMAGE}"), &[]);
            let image = format!("http://{address}:{}", PROXY + IMAGE);
            let compute = format!("{address}:{COMPUTE}");
            application.run(site, "compute.mjs", &compute, &["--image-url", &image]);
        }
        application
    }

    fn run(&mut self, site: u8, program: &str, listen: &str, more: &[&str]) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/imagery/");
        let data = self.stage.folder().join(format!("site{site}/{program}-data"));
        let mut command = self.stage.command(site, "node");
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
        let address = SocketAddr::new(self.stage.address_of(site), PROXY + service);
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

    application.stage.cut_off(2);
    until("site2 is not heard", async || application.stage[1].hears().await == 1).await;
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

    application.stage.join(2);
    application.stage.all_hear().await;
    let answer = application.boot(1, "{compute: site1, image: site2}", &server);
    assert_eq!((answer.status, answer.site.as_str()), (201, "site1"), "{}", answer.body);
    let answer = list(1, chain);
    assert_eq!((answer.status, answer.site.as_str()), (200, "site2"));
}
