//! Files of operations that other sites sent, until the log itself knows that they are needed.

use std::collections::BTreeMap;

use cheops_core::engine::Engine;
use cheops_core::model::{OperationId, ResourceId};
use cheops_mesh::{Brought, FilePin};

/// What is held on to. An operation whose past has not arrived waits in the engine's memory, where
/// the log does not see that it needs its files: they stay for as long as it waits, so there is a
/// bound to them where the engine has one to what waits.
#[derive(Default)]
pub(super) struct HeldFiles(BTreeMap<ResourceId, BTreeMap<OperationId, Vec<FilePin>>>);

impl HeldFiles {
    pub(super) fn take(&mut self, brought: Brought) {
        self.0.entry(brought.resource).or_default().extend(brought.operations);
    }

    /// Lets go of what no operation waits for. What was taken in must be durable by now.
    pub(super) fn release(&mut self, engine: &Engine) {
        self.0.retain(|resource, operations| {
            operations.retain(|operation, _| engine.awaits_past(resource, operation));
            !operations.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cheops_core::engine::{Event, Message, Now, Settings, Update};
    use cheops_core::model::{
        Author, BlobId, Declaration, Entry, EntryBody, EntryId, Incarnation, Operation,
        OperationType, Payload, Replaces, SiteId, Stamp,
    };

    use super::*;

    fn author(site: &str) -> Author {
        Author { site: SiteId::new(site).unwrap(), incarnation: Incarnation(1) }
    }

    fn of_lyon(n: u64) -> OperationId {
        OperationId(EntryId { author: author("lyon"), n })
    }

    fn resource() -> ResourceId {
        ResourceId::new("image").unwrap()
    }

    /// Lyon's `n`th operation, which rests on the one before it.
    fn heard(n: u64) -> Event {
        let id = of_lyon(n);
        let sites = ["paris", "lyon"].map(|site| SiteId::new(site).unwrap()).into();
        let operation = Operation {
            id: id.clone(),
            resource: resource(),
            stamp: Stamp { wall_ms: n, counter: 0 },
            claimed: Stamp { wall_ms: n, counter: 0 },
            parents: Vec::new(),
            kind: OperationType::new("put").unwrap(),
            payload: Payload::shell("put"),
            replaces: Replaces::Nothing,
            declares: Some(Arc::new(Declaration { sites, config: None })),
            needs: Default::default(),
            asked_by: None,
        };
        let message = Message::Update(Box::new(Update {
            incarnation: Incarnation(1),
            resource: resource(),
            base: None,
            entries: vec![Arc::new(Entry::new(
                &resource(),
                (n - 1, Default::default()),
                EntryBody::Operation(operation),
                Vec::new(),
            ))],
            knows: [id.0].into_iter().collect(),
            chain: Default::default(),
            you_may_have_run: cheops_core::model::Vector::default(),
            asks: false,
        }));
        Event::Heard { from: author("lyon").site, message }
    }

    #[test]
    fn files_stay_while_their_operation_waits_for_its_past_whatever_else_arrives() {
        let dir = tempfile::tempdir().unwrap();
        let options = cheops_store::StoreOptions::default();
        let site = author("paris").site;
        let opened = cheops_store::open(dir.path(), &site, || 1, options).unwrap();
        let settings = Settings::new(author("paris"), [author("lyon").site]);
        let (mut engine, _) = Engine::recover(settings, [], Now::default());
        let mut held = HeldFiles::default();
        let hear = |engine: &mut Engine, held: &mut HeldFiles, n: u64| {
            drop(engine.handle(Now::default(), heard(n)));
            let pin = opened.blobs.pin(BlobId([u8::try_from(n).unwrap(); 32]));
            held.take(Brought {
                resource: resource(),
                operations: vec![(of_lyon(n), vec![Arc::new(pin)])],
            });
            held.release(engine);
        };
        let files = |held: &HeldFiles| held.0.get(&resource()).map_or(0, BTreeMap::len);

        // Given an operation whose files are here, and the one before it is still on its way.
        hear(&mut engine, &mut held, 1);
        assert_eq!(files(&held), 0, "nothing waits");
        hear(&mut engine, &mut held, 3);

        // When the same is sent again, and again.
        for _ in 0..10_000 {
            hear(&mut engine, &mut held, 3);
        }

        // Then its files stay, once, until it is taken in.
        assert_eq!(files(&held), 1);
        hear(&mut engine, &mut held, 2);
        assert!(engine.knows(&resource(), &of_lyon(3)));
        assert_eq!(files(&held), 0);
    }
}
