//! What is written and sent, apart from what it means.
//!
//! The types of the model may change; what is on disks and in the hands of other agents may not. So
//! each has a written form of its own, with a version: [`disk`] has the bodies of a log's rows,
//! [`wire`] what agents say to each other, and [`v1`] reads the bodies of the version before.
//!
//! [`SiteKey`] signs what a site writes, and a [`Keyring`] tells whose word an entry is.

mod code;
pub mod disk;
mod form;
mod seal;
pub mod v1;
pub mod wire;

pub use code::FormError;
pub use seal::{CertificateError, KeyError, Keyring, ProofError, SiteKey, TextChecked, site_of};
