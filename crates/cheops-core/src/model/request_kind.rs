//! The kinds of requests that change a resource of a service, and which of them may be sent again.

use super::OperationType;

/// What kind of change a request to a service is. Its word is the type of its operation, as the
/// `http` profile knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestKind {
    /// Makes the resource under an id that it gives.
    Create,
    /// Gives the whole resource.
    Put,
    /// Sets some of the resource.
    Patch,
    /// Sets something below the resource.
    Part,
    /// Ends the resource.
    Delete,
    /// May depend on what was there.
    Post,
}

impl RequestKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Create, Self::Put, Self::Patch, Self::Part, Self::Delete, Self::Post];

    /// The type of its operations.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Put => "put",
            Self::Patch => "patch",
            Self::Part => "part",
            Self::Delete => "delete",
            Self::Post => "post",
        }
    }

    /// The kind of operations of that type; none if that is a type of somebody's own.
    pub fn of(kind: &OperationType) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == kind.as_str())
    }

    /// Whether a request of this kind may be sent again where nobody knows whether it was carried
    /// out: twice comes to the same as once. The one place where that is said; the `http` profile
    /// says the same of its types.
    pub fn may_be_sent_again(self) -> bool {
        match self {
            Self::Create | Self::Put | Self::Patch | Self::Part | Self::Delete => true,
            Self::Post => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::profile;

    #[test]
    fn a_kind_may_be_sent_again_exactly_if_the_profile_says_that_its_type_is_idempotent() {
        let types = &profile("http").unwrap().config.types;
        assert_eq!(types.len(), RequestKind::ALL.len());
        for kind in RequestKind::ALL {
            let word = OperationType::new(kind.word()).unwrap();
            assert_eq!(kind.may_be_sent_again(), types[&word].idempotent, "{kind:?}");
            assert_eq!(RequestKind::of(&word), Some(kind));
        }
        assert_eq!(RequestKind::of(&OperationType::new("set").unwrap()), None);
    }
}
