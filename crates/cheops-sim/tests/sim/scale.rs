//! What an operation costs does not depend on how many sites there are. The benchmark of the same
//! name does this with a thousand of them.
#[path = "cluster/scale.rs"]
mod experiment;

use experiment::{Scale, measure};

#[test]
fn an_operation_costs_as_much_among_many_sites_as_among_few() {
    let few = measure(Scale { sites: 30, resources: 300 });
    let many = measure(Scale { sites: 120, resources: 300 });
    assert_eq!(few.operations, many.operations);
    let messages = many.messages_per_operation() / few.messages_per_operation();
    let bytes = many.bytes_per_operation() / few.bytes_per_operation();
    assert!(messages < 1.1 && bytes < 1.1, "{few:?} and {many:?}");
    // The operation, and three replies, each to the two others; now and then one of them twice.
    assert!((8.0..10.0).contains(&few.entries_per_operation()), "{few:?}");
    assert!(few.heartbeats_per_site_and_second() > 0.0 && few.events_per_second() > 0.0);
}
