//! The sample application at three sites, under each of the five kinds of scope. It knows of no
//! other site; what happens is the scopes' doing.

use serde_json::{Value, json};

use super::Script;
use super::web::{WebAnswer, WebRequest};
use crate::failure::Failure;
use crate::look::{DIM, styled};

const IMAGES: &str = "/v1/images";
const SERVERS: &str = "/v1/servers";
/// How near is near.
const NEAR_MS: f64 = 10.0;

pub(super) async fn play(script: &mut Script<'_>) -> Result<(), Failure> {
    script.sharing().await?;
    let image = script.replication().await?;
    script.cross(&image).await?;
    script.otherwise().await?;
    script.around().await
}

/// The list in an answer, in an order and without what each site adds by itself.
fn images(answer: &WebAnswer) -> Vec<Value> {
    let mut images = answer.body["images"].as_array().cloned().unwrap_or_default();
    for image in images.iter_mut().filter_map(Value::as_object_mut) {
        image.remove("created");
    }
    images.sort_by_key(|image| image["id"].to_string());
    images
}

fn names(list: &Value) -> Vec<&str> {
    let names = list.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str());
    names.collect()
}

impl Script<'_> {
    async fn sharing(&mut self) -> Result<(), Failure> {
        let scope = "{compute: site1, image: site3}";
        self.heading("Sharing: a server at site1, from an image that only site3 has")?;
        let wanted = json!({ "name": "debian" });
        let made = self.ask(WebRequest::of(2, "image", "POST", IMAGES).json(&wanted)).await?;
        let file = format!("{IMAGES}/{}/file", made.text("id"));
        self.ask(WebRequest::of(2, "image", "PUT", &file).file("the bits of debian")).await?;
        let server = json!({ "name": "web", "image": made.text("id") });
        let alone = self.ask(WebRequest::of(0, "compute", "POST", SERVERS).json(&server)).await?;
        self.claim("without a scope, nobody looks elsewhere", alone.status == 422, &alone.brief())?;
        let request = WebRequest::of(0, "compute", "POST", SERVERS).under(scope).json(&server);
        let booted = self.ask(request).await?;
        let holds = (booted.status, booted.site.as_str()) == (201, "site1");
        let what = "with it, compute of site1 got the image of site3, and never knew";
        self.claim(what, holds, &booted.brief())
    }

    /// The id of an image that two sites keep.
    async fn replication(&mut self) -> Result<String, Failure> {
        let scope = "{image: site1 & site2}";
        self.heading("Replication: the same image, made and kept at two sites")?;
        let wanted = json!({ "name": "alpine" });
        let request = WebRequest::of(0, "image", "POST", IMAGES).under(scope).json(&wanted);
        let made = self.ask(request).await?;
        self.claim("site1 answers at once", made.status == 201, &made.brief())?;
        let id = made.text("id").to_owned();
        let path = format!("{IMAGES}/{id}");
        let file = format!("{path}/file");
        self.ask(WebRequest::of(0, "image", "PUT", &file).file("the bits of alpine")).await?;
        self.have_the_same(&["alpine"], &id, &[("status", json!("active"))]).await?;
        self.have_ids_of_their_own(&id).await?;

        self.cut(&[0, 1]).await?;
        for (at, patch, name) in
            [(0, json!({ "os": "linux" }), "arch"), (1, json!({ "version": 3 }), "void")]
        {
            self.ask(WebRequest::of(at, "image", "PATCH", &path).json(&patch)).await?;
            let wanted = json!({ "name": name });
            self.ask(WebRequest::of(at, "image", "POST", IMAGES).under(scope).json(&wanted))
                .await?;
        }
        let here = self.ask(WebRequest::of(0, "image", "GET", IMAGES)).await?;
        let there = self.ask(WebRequest::of(1, "image", "GET", IMAGES)).await?;
        let (here, there) = (&here.body["images"], &there.body["images"]);
        let holds = names(here) == ["alpine", "arch"] && names(there) == ["alpine", "void"];
        self.claim("each site goes on alone", holds, &format!("{here} and {there}"))?;

        self.heal().await?;
        let both = [("os", json!("linux")), ("version", json!(3))];
        self.have_the_same(&["alpine", "arch", "void"], &id, &both).await?;
        for at in [0, 1] {
            self.ask(WebRequest::of(at, "image", "GET", &path)).await?;
        }
        Ok(id)
    }

    /// Whether both sites list these images, under the same ids and with the same content, that
    /// one of them with these fields.
    async fn have_the_same(
        &mut self,
        wanted: &[&str],
        id: &str,
        fields: &[(&str, Value)],
    ) -> Result<(), Failure> {
        let what = format!("both list the same, ids and all: {}", wanted.join(", "));
        self.claim_soon(&what, async |script: &Self| {
            let here = script.look(WebRequest::of(0, "image", "GET", IMAGES)).await?;
            let there = script.look(WebRequest::of(1, "image", "GET", IMAGES)).await?;
            let listed = images(&here);
            let is_it = |image: &&Value| image["id"] == id;
            let has = listed
                .iter()
                .find(is_it)
                .is_some_and(|image| fields.iter().all(|(field, value)| image[*field] == *value));
            let holds = has && names(&here.body["images"]) == wanted && listed == images(&there);
            Ok((holds, format!("{} and {}", here.body, there.body)))
        })
        .await
    }

    /// Whether users call the image otherwise than the services do.
    async fn have_ids_of_their_own(&mut self, id: &str) -> Result<(), Failure> {
        let mut own = Vec::new();
        for at in [0, 1] {
            let listed = self.look_behind(WebRequest::of(at, "image", "GET", IMAGES)).await?;
            own.push(listed.body["images"][0]["id"].as_str().unwrap_or_default().to_owned());
        }
        let short = |id: &str| id.chars().take(8).collect::<String>();
        let what = format!(
            "users call it {}… at both; the services call it {}… and {}…",
            short(id),
            short(&own[0]),
            short(&own[1])
        );
        let holds = own[0] != own[1] && own.iter().all(|own| *own != id && !own.is_empty());
        self.claim(&what, holds, &own.join(" and "))
    }

    async fn cross(&mut self, image: &str) -> Result<(), Failure> {
        let scope = "{compute: site1 % site2}";
        self.heading("Cross: one server over two sites")?;
        let wanted = json!({ "name": "big", "image": image, "cpus": 6 });
        let request = WebRequest::of(0, "compute", "POST", SERVERS).under(scope).json(&wanted);
        let made = self.ask(request).await?;
        let path = made.text("self").to_owned();
        self.is_whole("its cpus are divided, and summed again", &made, 201)?;
        let request = WebRequest::of(2, "compute", "GET", "/v1/capacity").under(scope);
        let both = self.ask(request).await?;
        let used = |at: &str| both.body["sites"][at]["used"].as_u64();
        let all = used("site1").zip(used("site2")).map(|(one, two)| one + two);
        let holds = both.body["cpus"] == 16 && both.body["used"].as_u64() == all && all >= Some(6);
        self.claim("with the scope, two sites look like one", holds, &both.body.to_string())?;

        self.cut(&[0, 1]).await?;
        let read = self.ask(WebRequest::of(0, "compute", "GET", &path)).await?;
        let holds = read.body["incomplete"] == json!(["site2"]) && read.body["cpus"] == 3;
        let what = "site1 answers with its part, and says what is missing";
        self.claim(what, holds, &read.body.to_string())?;
        let read = self.ask(WebRequest::of(2, "compute", "GET", &path)).await?;
        self.is_whole("site3 still reaches both", &read, 200)?;
        self.heal().await?;
        let read = self.ask(WebRequest::of(0, "compute", "GET", &path)).await?;
        self.is_whole("it is whole again", &read, 200)?;

        let gone = self.ask(WebRequest::of(1, "compute", "DELETE", &path)).await?;
        let mut left = Vec::new();
        for at in [0, 1] {
            let listed = self.look(WebRequest::of(at, "compute", "GET", SERVERS)).await?;
            left.push(names(&listed.body["servers"]).join(", "));
        }
        let holds = gone.status == 204 && !left.concat().contains("big");
        self.claim("both parts are deleted", holds, &format!("{left:?}, {}", gone.brief()))
    }

    fn is_whole(&mut self, what: &str, answer: &WebAnswer, status: u16) -> Result<(), Failure> {
        let body = &answer.body;
        let parts = [&body["sites"]["site1"]["cpus"], &body["sites"]["site2"]["cpus"]];
        let holds = answer.status == status
            && body["cpus"] == 6
            && parts.iter().all(|part| **part == 3)
            && body.get("incomplete").is_none();
        self.claim(what, holds, &body.to_string())
    }

    async fn otherwise(&mut self) -> Result<(), Failure> {
        let scope = "{image: site2 ; site3}";
        self.heading("Otherwise: site2, or site3 if site2 cannot be reached")?;
        self.answers(scope, &["site2"]).await?;
        self.cut(&[0, 1]).await?;
        self.answers(scope, &["site3"]).await?;
        self.heal().await?;
        self.answers(scope, &["site2"]).await
    }

    async fn around(&mut self) -> Result<(), Failure> {
        let scope = "{image: around(site1, 10ms)}";
        self.heading("Around: the nearest site that works, of those within 10 ms of site1")?;
        self.answers(scope, &["site1"]).await?;
        let name = self.cluster.sites[0].name.clone();
        self.others_are_near().await?;
        self.cluster.kill(&name, Some("image")).await.map_err(Failure::ours)?;
        self.output.line(styled(DIM, "  the image service of site1 is killed"))?;
        self.answers(scope, &["site2", "site3"]).await?;
        self.cluster.revive(&name, Some("image")).await.map_err(Failure::ours)?;
        self.output.line(styled(DIM, "  it is started again"))?;
        self.answers(scope, &["site1"]).await
    }

    /// Waits until site1 measures another site as near. On a machine that has much else to do, that
    /// may take a while.
    async fn others_are_near(&mut self) -> Result<(), Failure> {
        let client = self.client(0)?;
        self.until("another site is near", async || {
            let mut sites = client.sites().await?.sites.into_iter();
            Ok(sites.any(|site| site.round_trip_ms.is_some_and(|time| time < NEAR_MS)))
        })
        .await
    }

    /// Whether one of these sites answers who asks at site1.
    async fn answers(&mut self, scope: &str, expected: &[&str]) -> Result<(), Failure> {
        let answer = self.ask(WebRequest::of(0, "image", "GET", IMAGES).under(scope)).await?;
        let holds = answer.status == 200 && expected.contains(&answer.site.as_str());
        self.claim(&format!("{} answers", expected.join(" or ")), holds, &answer.brief())
    }
}
