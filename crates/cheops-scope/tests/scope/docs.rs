//! What `docs/scope-lang.md` shows is what the code says.

use crate::world::france;
use cheops_scope::{
    Look, MAX_DEPTH, MAX_PROBLEMS, MAX_SCOPE_BYTES, MAX_SERVICE_BYTES, MAX_SITE_BYTES, parse,
    resolve,
};
use serde_json::Value;

const DOCS: &str = include_str!("../../../../docs/scope-lang.md");

fn is_shown(text: &str) {
    assert!(DOCS.contains(text), "docs/scope-lang.md should show:\n{text}");
}

#[test]
fn the_rendering_shown_is_real() {
    let text = "{imag: pariss & & lyon, compute: around(nante, 10m)}";
    is_shown(&format!("$ cheops scope '{text}' \\\n"));
    let problems = resolve(text, &france()).expect_err("this should be wrong");
    is_shown(&problems.render(Look::Plain));
}

#[test]
fn the_json_shown_is_real() {
    let text = "{image: pariss & (lyon}";
    is_shown(text);
    let (_, after) = DOCS.split_once("```json\n").unwrap();
    let (shown, _) = after.split_once("```").unwrap();
    let problems = resolve(text, &france()).expect_err("this should be wrong");
    let shown: Value = serde_json::from_str(shown).unwrap();
    assert_eq!(shown, serde_json::to_value(&problems).unwrap());
}

#[test]
fn the_sentences_shown_are_real() {
    for text in [
        "image: paris & lyon, compute: nice % brest % lyon, network: paris ; lyon ; nice",
        "image: around(paris, 10ms)",
    ] {
        is_shown(&resolve(text, &france()).unwrap().explain());
    }
}

#[test]
fn the_canonical_text_shown_is_real() {
    let text = "image:((paris&lyon));around(nice,1.5ms)";
    is_shown(text);
    is_shown(&parse(text).unwrap().to_string());
}

#[test]
fn the_readings_shown_are_real() {
    for (written, read_as) in
        [("a ; b % c & d", "a ; (b % (c & d))"), ("a & b % c ; d", "((a & b) % c) ; d")]
    {
        is_shown(&format!("| `{written}` | `{read_as}` |"));
        let tree = |location: &str| parse(&format!("s: {location}")).unwrap().without_spans();
        assert_eq!(tree(written), tree(read_as));
    }
}

#[test]
fn the_limits_shown_are_real() {
    is_shown(&format!("| {MAX_SCOPE_BYTES} bytes |"));
    is_shown(&format!("| the name of a service | {MAX_SERVICE_BYTES} bytes |"));
    is_shown(&format!("| the name of a site | {MAX_SITE_BYTES} bytes |"));
    is_shown(&format!("| {MAX_DEPTH} deep |"));
    is_shown(&format!("| {MAX_PROBLEMS}; the rest are counted |"));
    assert_eq!(cheops_scope::MAX_STEPS, 262_144);
    is_shown("| 262,144 |");
}
