//! What statements come to does not depend on the order in which they come, or on how often.

use cheops_directory::{
    Applied, Existence, Membership, NotTakenIn, Removal, Revocation, SignedStatement,
    SiteDirectory, SiteRecord, Statement,
};
use proptest::prelude::*;

use crate::keys::{AUTHORITY, Keys, certificate, key, signature, site};

const SITES: [&str; 3] = ["paris", "lyon", "nice"];

fn record(name: usize, nth: u8, epoch: u64, software: u8) -> SignedStatement {
    let site = site(SITES[name]);
    let statement = Statement::Record(SiteRecord {
        site: site.clone(),
        epoch,
        state: if software == 0 { Membership::Left } else { Membership::Alive },
        addresses: vec![format!("{site}:{epoch}")],
        labels: [].into(),
        services: [].into(),
        software: software.to_string(),
    });
    let sign = |text: &[u8]| Some(signature(key(&site, nth), text));
    SignedStatement::new(&statement, &certificate(&site, nth), sign).unwrap()
}

fn by_authority(statement: &Statement) -> SignedStatement {
    SignedStatement::new(statement, b"", |text| Some(signature(AUTHORITY, text))).unwrap()
}

fn removal(name: usize, when_ms: u64) -> SignedStatement {
    let (site, asked_by) = (site(SITES[name]), "admin".to_owned());
    by_authority(&Statement::Removal(Removal { site, dead: true, when_ms, asked_by }))
}

fn revocation(name: usize, nth: u8, when_ms: u64) -> SignedStatement {
    let site = site(SITES[name]);
    let key = key(&site, nth);
    by_authority(&Statement::Revocation(Revocation { site, key, when_ms }))
}

fn any_statement() -> impl Strategy<Value = SignedStatement> {
    prop_oneof![
        6 => (0..3_usize, 0..3_u8, 0..4_u64, 0..3_u8).prop_map(|(a, b, c, d)| record(a, b, c, d)),
        1 => (0..3_usize, 0..3_u64).prop_map(|(name, when)| removal(name, when)),
        2 => (0..3_usize, 0..3_u8, 0..3_u64).prop_map(|(a, b, c)| revocation(a, b, c)),
    ]
}

fn all_of(statements: &[SignedStatement]) -> SiteDirectory {
    let notary = Keys::of(&site("oslo"));
    let mut directory = SiteDirectory::default();
    for signed in statements {
        let _refused = directory.apply(signed, &notary);
    }
    directory
}

fn merged(one: &SiteDirectory, other: &SiteDirectory) -> SiteDirectory {
    let statements: Vec<_> = one.statements().chain(other.statements()).cloned().collect();
    all_of(&statements)
}

proptest! {
    #[test]
    fn merging_is_commutative_associative_and_idempotent(
        statements in proptest::collection::vec(any_statement(), 0..40),
        cuts in (0..40_usize, 0..40_usize),
    ) {
        let len = statements.len();
        let (low, high) = (cuts.0.min(cuts.1).min(len), cuts.0.max(cuts.1).min(len));
        let a = all_of(&statements[..low]);
        let b = all_of(&statements[low..high]);
        let c = all_of(&statements[high..]);
        let bytes = |directory: &SiteDirectory| directory.to_bytes();
        prop_assert_eq!(bytes(&merged(&a, &b)), bytes(&merged(&b, &a)));
        prop_assert_eq!(bytes(&merged(&a, &a)), bytes(&a));
        let left = merged(&merged(&a, &b), &c);
        prop_assert_eq!(bytes(&left), bytes(&merged(&a, &merged(&b, &c))));
        prop_assert_eq!(bytes(&left), bytes(&all_of(&statements)));
        let reversed: Vec<_> = statements.iter().rev().cloned().collect();
        prop_assert_eq!(bytes(&left), bytes(&all_of(&reversed)));
    }
}

#[test]
fn the_highest_epoch_counts_and_a_removal_beats_all() {
    let notary = Keys::of(&site("oslo"));
    let mut directory = SiteDirectory::default();
    let paris = site("paris");
    assert_eq!(directory.existence(&paris), Existence::Unknown);
    assert_eq!(directory.apply(&record(0, 0, 2, 1), &notary), Ok(Applied::News));
    assert_eq!(directory.apply(&record(0, 0, 2, 1), &notary), Ok(Applied::Known));
    assert_eq!(directory.apply(&record(0, 0, 1, 1), &notary), Ok(Applied::Known));
    assert_eq!(directory.record(&paris).unwrap().epoch, 2);
    assert_eq!(directory.apply(&record(0, 0, 3, 0), &notary), Ok(Applied::News));
    assert!(matches!(directory.existence(&paris), Existence::Left(_)));
    assert_eq!(directory.apply(&removal(0, 5), &notary), Ok(Applied::News));
    assert!(matches!(directory.existence(&paris), Existence::Removed(_)));
    let back = directory.apply(&record(0, 1, 9, 1), &notary);
    assert_eq!(back, Err(NotTakenIn::Removed(paris.clone())));
    assert_eq!(directory.is_refused(&paris, key(&paris, 1)), Some(NotTakenIn::Removed(paris)));
}

#[test]
fn where_a_key_is_revoked_what_the_site_said_with_another_counts_again() {
    let notary = Keys::of(&site("oslo"));
    let paris = site("paris");
    let mut directory = all_of(&[record(0, 0, 1, 1), record(0, 1, 1_000, 2)]);
    assert_eq!(directory.record(&paris).unwrap().epoch, 1_000);
    directory.apply(&revocation(0, 1, 1), &notary).unwrap();
    assert_eq!(directory.record(&paris).unwrap().epoch, 1);
    let again = directory.apply(&record(0, 1, 2_000, 1), &notary);
    assert_eq!(again, Err(NotTakenIn::Revoked(paris.clone())));
    assert_eq!(
        directory.is_refused(&paris, key(&paris, 1)),
        Some(NotTakenIn::Revoked(paris.clone()))
    );
    assert_eq!(directory.is_refused(&paris, key(&paris, 0)), None);
}

#[test]
fn only_a_site_says_what_it_is_and_only_the_authority_puts_one_out() {
    let notary = Keys::of(&site("oslo"));
    let (paris, lyon) = (site("paris"), site("lyon"));
    let Statement::Record(said) = record(0, 0, 1, 1).statement().clone() else { panic!() };
    let said = Statement::Record(said);
    let by = |shown: Vec<u8>, with| {
        SignedStatement::new(&said, &shown, |text| Some(signature(with, text))).unwrap()
    };
    let mut directory = SiteDirectory::default();
    let forged = by(certificate(&lyon, 0), key(&lyon, 0));
    assert_eq!(directory.apply(&forged, &notary), Err(NotTakenIn::Certificate(paris.clone())));
    let forged = by(certificate(&paris, 0), key(&lyon, 0));
    assert_eq!(directory.apply(&forged, &notary), Err(NotTakenIn::Signature(paris.clone())));

    let out = Removal { site: paris.clone(), dead: false, when_ms: 1, asked_by: "lyon".into() };
    let sign = |text: &[u8]| Some(signature(key(&lyon, 0), text));
    let forged = SignedStatement::new(&Statement::Removal(out), b"", sign).unwrap();
    assert_eq!(directory.apply(&forged, &notary), Err(NotTakenIn::Signature(paris)));
}
