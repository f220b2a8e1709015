//! Short bodies of requests, which travel inside the entry of their operation.
//!
//! The operation names its body by its hash, as it does a long one; the bytes stand beside it, as an
//! extension that need not be understood. So a version that does not know of it takes the entry as
//! any other, passes it on as it is, and fetches the content by its hash from whoever has it.

use super::{BlobId, Entry, EntryBody, Extension, FileRef, Operation, Payload};

/// The longest body that a site writes into an entry, in bytes. A longer one is a file of its own.
pub const MAX_INLINE_BODY_BYTES: usize = 16 * 1024;

const NAME: &str = "body";

impl FileRef {
    /// What an operation says of a file with this content.
    pub fn of(name: impl Into<String>, content: &[u8]) -> Self {
        Self { name: name.into(), blob: hash(content), size: content.len() as u64 }
    }

    fn is_of(&self, content: &[u8]) -> bool {
        self.size == content.len() as u64 && self.blob == hash(content)
    }
}

fn hash(content: &[u8]) -> BlobId {
    BlobId(*blake3::hash(content).as_bytes())
}

impl Extension {
    /// The body of the request that the entry holds.
    pub(crate) fn inline_body(content: &[u8]) -> Self {
        Self { name: NAME.to_owned(), must_understand: false, value: content.to_vec() }
    }
}

impl Entry {
    /// The body of the request that it holds, if that is in it and what the operation says it is.
    /// Whoever wrote the entry may have put other bytes there: those are nobody's body.
    pub fn inline_body(&self) -> Option<&[u8]> {
        let EntryBody::Operation(Operation { payload, .. }) = &self.body else { return None };
        let Payload::Http { body: Some(file), .. } = payload else { return None };
        let named = self.extra.iter().filter(|extension| extension.name == NAME);
        named.map(|extension| extension.value.as_slice()).find(|content| file.is_of(content))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Author, EntryId, Incarnation, OperationId, OperationType, Replaces, ResourceId, SiteId,
        Stamp,
    };
    use super::*;

    fn entry(named: &[u8], beside: Vec<Extension>) -> Entry {
        let resource = ResourceId::new("x").unwrap();
        let author = Author { site: SiteId::new("paris").unwrap(), incarnation: Incarnation(1) };
        let operation = Operation {
            id: OperationId(EntryId { author, n: 1 }),
            resource: resource.clone(),
            stamp: Stamp::default(),
            claimed: Stamp::default(),
            parents: Vec::new(),
            kind: OperationType::new("put").unwrap(),
            payload: Payload::Http {
                service: "image".to_owned(),
                method: "PUT".to_owned(),
                path: "/".to_owned(),
                headers: Vec::new(),
                body: Some(FileRef::of("body", named)),
                service_ref: None,
            },
            replaces: Replaces::Nothing,
            declares: None,
            needs: Default::default(),
            asked_by: None,
        };
        Entry::new(&resource, Default::default(), EntryBody::Operation(operation), beside)
    }

    #[test]
    fn only_the_bytes_that_the_operation_names_are_its_body() {
        let other = Extension { name: "note".to_owned(), ..Extension::inline_body(b"short") };
        let must = Extension { must_understand: true, ..Extension::inline_body(b"short") };
        let cases: [(Vec<Extension>, Option<&[u8]>); 6] = [
            (vec![Extension::inline_body(b"short")], Some(b"short")),
            (vec![must], Some(b"short")),
            (vec![], None),
            (vec![other], None),
            (vec![Extension::inline_body(b"wrong")], None),
            (
                vec![Extension::inline_body(b"wrong"), Extension::inline_body(b"short")],
                Some(b"short"),
            ),
        ];
        for (beside, expected) in cases {
            assert_eq!(entry(b"short", beside.clone()).inline_body(), expected, "{beside:?}");
        }
    }

    #[test]
    fn the_longest_is_within_the_limits_of_any_version_and_counts_as_what_is_sent() {
        let longest = [7; MAX_INLINE_BODY_BYTES];
        let with = entry(&longest, vec![Extension::inline_body(&longest)]);
        assert_eq!(with.check_limits(), Ok(()));
        let without = entry(&longest, Vec::new());
        assert!(with.size() >= without.size() + longest.len());
        assert_ne!(with.hash(), without.hash(), "it is signed with the rest");
    }
}
