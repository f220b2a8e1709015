//! The answers of several sites made into one.

use cheops_core::model::SiteId;
use serde_json::{Map, Number, Value, json};

use super::Over;
use crate::config::CrossConfig;
use crate::id_directory::Naming;

/// What a site answered.
#[derive(Debug)]
pub(super) struct AnswerPiece {
    pub(super) site: SiteId,
    pub(super) body: Value,
}

/// A site whose part is not in the answer, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) site: SiteId,
    pub(super) status: u16,
    pub(super) detail: String,
}

/// Why there is no one answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("site `{0}` answered with {1}, and site `{2}` with {3}")]
pub(super) struct NotAlike(SiteId, &'static str, SiteId, &'static str);

/// How answers of a service become one.
pub(super) struct Joiner<'a> {
    pub(super) naming: &'a Naming,
    pub(super) cross: &'a CrossConfig,
    pub(super) over: &'a Over,
}

impl Joiner<'_> {
    /// Joins what there is, in the order of the scope; `None` if there is nothing to say.
    pub(super) fn join(
        &self,
        pieces: &[AnswerPiece],
        missing: &[Missing],
    ) -> Result<Option<Value>, NotAlike> {
        let Some(first) = pieces.first() else {
            let breakdown = (!missing.is_empty()).then(|| Value::Object(Map::new()));
            return Ok(breakdown.map(|body| with_sites(body, pieces, missing)));
        };
        let is_alike = |piece: &&AnswerPiece| kind(&piece.body) == kind(&first.body);
        if let Some(other) = pieces.iter().find(|piece| !is_alike(piece)) {
            let (one, two) = (first.site.clone(), other.site.clone());
            return Err(NotAlike(one, kind(&first.body), two, kind(&other.body)));
        }
        if first.body.is_array() {
            let items = pieces.iter().filter_map(|piece| piece.body.as_array());
            return Ok(Some(items.flatten().cloned().collect()));
        }
        let mut joined = Value::Null;
        let is_collection = self.is_collection(&first.body);
        for (i, piece) in pieces.iter().enumerate() {
            let body = self.renamed(piece);
            if i == 0 { joined = body } else { merge(&mut joined, body, is_collection) }
        }
        self.sum(&mut joined, pieces);
        Ok(Some(match is_collection {
            true => marked(joined, missing),
            false => with_sites(joined, pieces, missing),
        }))
    }

    /// A list of resources in an object, beside what is said of the list. A resource has an id.
    fn is_collection(&self, body: &Value) -> bool {
        let lists = body.as_object().is_some_and(|members| members.values().any(Value::is_array));
        let id = self.naming.local_id(http::StatusCode::OK, &http::HeaderMap::new(), Some(body));
        lists && id.is_none()
    }

    fn renamed(&self, piece: &AnswerPiece) -> Value {
        let mut body = piece.body.clone();
        if let Some(renaming) = self.over.renaming_back(&piece.site) {
            self.naming.rename(&mut body, renaming);
        }
        body
    }

    fn sum(&self, joined: &mut Value, pieces: &[AnswerPiece]) {
        for field in self.cross.divide.iter().chain(&self.cross.sum) {
            let numbers = pieces.iter().filter_map(|piece| field.find(&piece.body)?.as_number());
            if let (Some(field), Some(sum)) = (field.find_mut(joined), sum(numbers)) {
                *field = Value::Number(sum);
            }
        }
    }
}

fn kind(body: &Value) -> &'static str {
    match body {
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        _ => "a single value",
    }
}

/// What only one says is kept, and what both say alike; else the first counts. Lists are joined:
/// those of resources, if they are different ones.
fn merge(joined: &mut Value, other: Value, is_collection: bool) {
    match (joined, other) {
        (Value::Object(joined), Value::Object(other)) => {
            for (name, value) in other {
                match joined.get_mut(&name) {
                    Some(joined) => merge(joined, value, is_collection),
                    None => {
                        joined.insert(name, value);
                    }
                }
            }
        }
        (Value::Array(joined), Value::Array(other)) if is_collection || *joined != other => {
            joined.extend(other);
        }
        _ => {}
    }
}

fn sum<'n>(numbers: impl Iterator<Item = &'n Number> + Clone) -> Option<Number> {
    numbers.clone().next()?;
    let integer = |number: &Number| {
        number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
    };
    match numbers.clone().map(integer).sum::<Option<i128>>() {
        Some(sum) => {
            let signed = i64::try_from(sum).ok().map(Number::from);
            signed.or_else(|| u64::try_from(sum).ok().map(Number::from))
        }
        None => Number::from_f64(numbers.filter_map(Number::as_f64).sum()),
    }
}

fn with_sites(joined: Value, pieces: &[AnswerPiece], missing: &[Missing]) -> Value {
    let mut joined = marked(joined, missing);
    let there = pieces.iter().map(|piece| (piece.site.to_string(), piece.body.clone()));
    let not_there = missing.iter().map(|missing| {
        let error = json!({"status": missing.status, "detail": missing.detail});
        (missing.site.to_string(), json!({"error": error}))
    });
    if let Some(members) = joined.as_object_mut() {
        members.insert("sites".to_owned(), Value::Object(there.chain(not_there).collect()));
    }
    joined
}

fn marked(mut joined: Value, missing: &[Missing]) -> Value {
    let names: Vec<_> = missing.iter().map(|missing| missing.site.as_str()).collect();
    if let Some(members) = joined.as_object_mut().filter(|_| !names.is_empty()) {
        members.insert("incomplete".to_owned(), json!(names));
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::super::id::SitePart;
    use super::super::id::tests::whole;
    use super::*;
    use crate::id_directory::Renaming;

    fn site(name: &str) -> SiteId {
        SiteId::new(name).unwrap()
    }

    fn joined(paris: Value, lyon: Value, missing: &[Missing]) -> Result<Value, NotAlike> {
        let (naming, part) = (Naming::default(), |name: &str, id: &str| SitePart {
            site: site(name),
            id: id.to_owned(),
        });
        let cross = CrossConfig {
            divide: vec!["/capacity".parse().unwrap()],
            sum: ["/used", "/stats/rate"].map(|field| field.parse().unwrap()).into(),
            ..CrossConfig::default()
        };
        let whole = whole(vec![part("paris", "p"), part("lyon", "l")]);
        let id = whole.as_str().to_owned();
        let over = Over::Whole(Box::new(whole));
        let joiner = Joiner { naming: &naming, cross: &cross, over: &over };
        let pieces = [("paris", paris), ("lyon", lyon)]
            .map(|(name, body)| AnswerPiece { site: site(name), body })
            .into_iter()
            .filter(|piece| !piece.body.is_null())
            .collect::<Vec<_>>();
        let mut joined = joiner.join(&pieces, missing)?.unwrap_or_default();
        naming.rename(&mut joined, Renaming { from: &id, to: "meta" });
        Ok(joined)
    }

    fn lyon_is_down() -> [Missing; 1] {
        [Missing { site: site("lyon"), status: 503, detail: "no link".to_owned() }]
    }

    #[test]
    fn a_whole_sums_what_is_declared_and_shows_every_part() {
        let paris = json!({"id": "p", "name": "web", "capacity": 6, "used": 1, "state": "up",
            "tags": ["a"], "stats": {"rate": 0.5}, "self": "/things/p", "hosts": ["h1"]});
        let lyon = json!({"id": "l", "name": "web", "capacity": 4, "state": "down",
            "tags": ["a"], "stats": {"rate": 1}, "self": "/things/l", "hosts": ["h2"], "only": 1});
        let expected = json!({"id": "meta", "name": "web", "capacity": 10, "used": 1, "state": "up",
            "tags": ["a"], "stats": {"rate": 1.5}, "self": "/things/meta", "hosts": ["h1", "h2"],
            "only": 1, "sites": {"paris": paris.clone(), "lyon": lyon.clone()}});
        assert_eq!(joined(paris, lyon, &[]), Ok(expected));
    }

    #[test]
    fn a_missing_part_is_named_and_why() {
        let paris = json!({"id": "p", "capacity": 6});
        let expected = json!({"id": "meta", "capacity": 6, "incomplete": ["lyon"],
            "sites": {"paris": paris.clone(), "lyon": {"error": {"status": 503, "detail": "no link"}}}});
        assert_eq!(joined(paris, Value::Null, &lyon_is_down()), Ok(expected));
        let nothing = joined(Value::Null, Value::Null, &lyon_is_down()).unwrap();
        assert_eq!(nothing["incomplete"], json!(["lyon"]), "an empty answer says so as well");
        assert_eq!(joined(Value::Null, Value::Null, &[]), Ok(Value::Null));
    }

    #[test]
    fn collections_are_one_after_the_other_in_the_order_of_the_scope() {
        let list = |ids: &[&str]| ids.iter().map(|id| json!({"id": id})).collect::<Value>();
        let cases = [
            (list(&["b", "a"]), list(&["a"]), list(&["b", "a", "a"])),
            (
                json!({"images": list(&["b"]), "next": null}),
                json!({"images": list(&["b"]), "more": 1}),
                json!({"images": list(&["b", "b"]), "next": null, "more": 1}),
            ),
            (json!({"images": []}), json!({"images": []}), json!({"images": []})),
        ];
        for (paris, lyon, expected) in cases {
            assert_eq!(joined(paris, lyon, &[]), Ok(expected));
        }
        let cut = joined(json!({"images": list(&["b"])}), Value::Null, &lyon_is_down());
        assert_eq!(cut, Ok(json!({"images": list(&["b"]), "incomplete": ["lyon"]})));
    }

    #[test]
    fn what_is_not_alike_is_not_joined() {
        let problem = joined(json!({}), json!([]), &[]).unwrap_err();
        let said = "site `paris` answered with an object, and site `lyon` with a list";
        assert_eq!(problem.to_string(), said);
    }
}
