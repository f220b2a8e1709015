//! What is written and sent, apart from what it means.
//!
//! [`SiteKey`] signs what a site writes, and a [`Keyring`] tells whose word an entry is.

mod seal;

pub use seal::{CertificateError, KeyError, Keyring, ProofError, SiteKey, site_of};
