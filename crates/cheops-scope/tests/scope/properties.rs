//! Laws that hold for every tree and every text.

use crate::world::{france, service, site};
use cheops_scope::{
    Binding, Consistency, Location, LocationKind, LocationOptions, Look, Micros, Scope, Span,
    Spanned, parse, resolve,
};
use proptest::prelude::*;

/// A tree of which the sites are not yet named: they must differ within one list, so they are
/// numbered when the tree is made.
#[derive(Clone, Debug)]
enum Shape {
    Site(String),
    Both(Vec<Shape>),
    Spread(Vec<Shape>),
    Otherwise(Vec<Shape>),
    Around(Box<Shape>, u64),
}

fn shapes() -> impl Strategy<Value = Shape> {
    let name = prop_oneof![
        Just("around".to_owned()),
        Just("10ms".to_owned()),
        "[A-Za-z0-9][A-Za-z0-9._-]{0,6}",
    ];
    name.prop_map(Shape::Site).prop_recursive(6, 40, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            list.clone().prop_map(Shape::Both),
            list.clone().prop_map(Shape::Spread),
            list.prop_map(Shape::Otherwise),
            (inner, 0..=Micros::MAX.get())
                .prop_map(|(centre, micros)| Shape::Around(Box::new(centre), micros)),
        ]
    })
}

fn location(shape: &Shape, count: &mut usize) -> Location {
    let mut all = |parts: &[Shape]| parts.iter().map(|part| location(part, count)).collect();
    let kind = match shape {
        Shape::Both(parts) => LocationKind::Both(all(parts)),
        Shape::Spread(parts) => LocationKind::Spread(all(parts)),
        Shape::Otherwise(parts) => LocationKind::Otherwise(all(parts)),
        Shape::Around(centre, micros) => LocationKind::Around {
            centre: Box::new(location(centre, count)),
            within: Micros::new(*micros),
        },
        Shape::Site(name) => {
            *count += 1;
            // The first keeps its name, so that odd ones are seen as they are.
            let number = if *count == 1 { String::new() } else { format!(".{count}") };
            LocationKind::Site(site(&format!("{name}{number}")))
        }
    };
    let span = Span::default();
    Location { kind, span }
}

fn scopes() -> impl Strategy<Value = Scope> {
    let consistency = prop::option::of(prop::sample::select(Consistency::ALL.to_vec()));
    let binding = (shapes(), consistency);
    prop::collection::vec(binding, 1..4).prop_map(|bindings| Scope {
        bindings: bindings
            .iter()
            .enumerate()
            .map(|(index, (shape, consistency))| Binding {
                service: Spanned::new(service(&format!("s{index}")), Span::default()),
                location: location(shape, &mut 0),
                options: LocationOptions {
                    consistency: consistency.map(|value| Spanned::new(value, Span::default())),
                },
            })
            .collect(),
    })
}

/// Texts that get far: pieces of the grammar in any order.
fn nearly_scopes() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "image",
        "compute",
        "paris",
        "lyon",
        "pariss",
        "around",
        "10ms",
        "1.5",
        "ms",
        "around(",
        ":",
        ",",
        "&",
        "%",
        ";",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "=",
        "consistency",
        "strong",
        " ",
        "\n",
        "|",
        "é",
        "😀",
        "-",
        "\"",
        "image: paris",
        "[consistency=strong]",
        ", 10ms)",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

/// Whatever the text: no panic, every span lies in it, and what is right stays so when printed.
fn holds(text: &str) -> Result<(), TestCaseError> {
    match parse(text) {
        Ok(scope) => {
            let printed = scope.to_string();
            let again = parse(&printed);
            prop_assert_eq!(again.map(|scope| scope.without_spans()), Ok(scope.without_spans()));
            let _ = scope.explain();
        }
        Err(problems) => {
            prop_assert!(!problems.as_slice().is_empty());
            for problem in problems.as_slice() {
                let at = problem.span.start..problem.span.end;
                prop_assert!(text.get(at).is_some(), "{problem:?}");
                prop_assert!(!problem.message.is_empty());
            }
            let _ = problems.render(Look::Plain);
        }
    }
    match resolve(text, &france()) {
        Ok(placement) => drop(placement.explain()),
        Err(problems) => prop_assert!(!problems.render(Look::Coloured).is_empty()),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn reading_what_was_printed_gives_the_same_tree(scope in scopes()) {
        let printed = scope.to_string();
        let read = parse(&printed).map(|scope| scope.without_spans());
        prop_assert_eq!(read, Ok(scope));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        holds(&text)?;
    }

    #[test]
    fn any_nearly_right_text_is_read_or_refused(text in nearly_scopes()) {
        holds(&text)?;
    }
}
