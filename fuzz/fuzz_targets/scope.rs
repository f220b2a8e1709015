//! Any text through scope-lang: it is read or refused, never panics, and what it says about a text
//! holds together.

#![no_main]

use cheops_scope::{
    Known, Look, MAX_PROBLEMS, MAX_SCOPE_BYTES, Micros, Problems, RoundTrips, ServiceName, SiteId,
    parse, parse_location, resolve, resolve_location,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let known = known();
    scope_is_read_or_refused(text, &known);
    location_is_read_or_refused(text, &known);
});

fn scope_is_read_or_refused(text: &str, known: &Known) {
    let parsed = parse(text);
    match &parsed {
        Err(problems) => hold_together(text, problems),
        Ok(scope) => {
            let printed = scope.to_string();
            assert!(printed.len() <= MAX_SCOPE_BYTES);
            let again = parse(&printed).expect("what was printed can be read");
            assert_eq!(again.without_spans(), scope.without_spans());
            assert_eq!(again.to_string(), printed);
            assert_eq!(scope.explain().lines().count(), scope.bindings.len());
        }
    }
    match resolve(text, known) {
        Err(problems) => {
            hold_together(text, &problems);
            renders(&problems);
        }
        Ok(placement) => {
            let scope = parsed.expect("what can be placed can be read");
            assert_eq!(placement.services.len(), scope.bindings.len());
            for placed in &placement.services {
                let sites = placed.target.sites();
                assert!(!sites.is_empty());
                assert!(sites.into_iter().all(|site| known.sites().contains(site)));
            }
            assert!(!placement.explain().is_empty());
        }
    }
}

fn location_is_read_or_refused(text: &str, known: &Known) {
    match parse_location(text) {
        Err(problems) => hold_together(text, &problems),
        Ok(location) => {
            let again = parse_location(&location.to_string()).expect("what was printed is read");
            assert_eq!(again.without_spans(), location.without_spans());
        }
    }
    if let Err(problems) = resolve_location(text, known) {
        hold_together(text, &problems);
    }
}

fn hold_together(text: &str, problems: &Problems) {
    assert!(!problems.as_slice().is_empty());
    assert!(problems.as_slice().len() <= MAX_PROBLEMS);
    for problem in problems.as_slice() {
        assert!(!problem.message.is_empty());
        assert!(text.get(problem.span.start..problem.span.end).is_some());
        assert!(problem.position.line >= 1 && problem.position.column >= 1);
    }
    assert!(!problems.to_string().is_empty());
}

/// Apart, since it costs a hundred times what finding the problems does.
fn renders(problems: &Problems) {
    assert!(!problems.render(Look::Plain).contains('\u{1b}'));
}

/// Short names, so that the fuzzer finds them.
fn known() -> Known {
    let sites = ["a", "b", "c", "d", "paris", "lyon"].map(|name| SiteId::new(name).unwrap());
    let services = ["s", "t", "image"].map(|name| ServiceName::new(name).unwrap());
    let mut times = RoundTrips::default();
    for (index, pair) in sites.windows(2).enumerate() {
        times.set(pair[0].clone(), pair[1].clone(), Micros::new(index as u64 * 700));
    }
    Known::new(services, sites).with_round_trips(times)
}
