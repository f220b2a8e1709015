//! The bytes of everything, checked in, and bytes that are wrong.

use std::fmt::Write;

use cheops_core::model::KeyId;
use cheops_directory::{
    GossipMessage, Hears, LinkState, Membership, NotTakenIn, Removal, Revocation, SignedStatement,
    SiteDirectory, SiteRecord, Statement,
};
use cheops_record::{ByteReader, Writer};
use expect_test::expect_file;
use proptest::prelude::*;

use crate::keys::{AUTHORITY, Keys, certificate, key, signature, site};

fn record() -> SiteRecord {
    SiteRecord {
        site: site("paris"),
        epoch: 1_763_593_200_000,
        state: Membership::Alive,
        addresses: vec!["paris.example:8078".into(), "192.0.2.1:8078".into()],
        labels: [("region".into(), "eu".into())].into(),
        services: ["image".into(), "identity".into()].into(),
        software: "0.1.0".into(),
    }
}

fn signed(statement: &Statement) -> SignedStatement {
    let site = statement.site();
    let (by, shown) = match statement {
        Statement::Record(_) => (key(site, 0), certificate(site, 0)),
        Statement::LinkState(_) => (key(site, 0), Vec::new()),
        Statement::Removal(_) | Statement::Revocation(_) => (AUTHORITY, Vec::new()),
    };
    SignedStatement::new(statement, &shown, |text| Some(signature(by, text))).unwrap()
}

fn statements() -> Vec<(&'static str, Statement)> {
    let hears = |name, round_trip_us| Hears { site: site(name), round_trip_us };
    let hears = vec![hears("lyon", 7_000), hears("nice", 12_345)];
    let left = SiteRecord {
        state: Membership::Left,
        addresses: Vec::new(),
        labels: [].into(),
        services: [].into(),
        ..record()
    };
    vec![
        ("a site", Statement::Record(record())),
        ("a site that left", Statement::Record(left)),
        (
            "whom it hears",
            Statement::LinkState(LinkState { site: site("paris"), number: 300, hears }),
        ),
        (
            "a site that is dead",
            Statement::Removal(Removal {
                site: site("nantes"),
                dead: true,
                when_ms: 1_763_593_200_001,
                asked_by: "admin".into(),
            }),
        ),
        (
            "a key that is revoked",
            Statement::Revocation(Revocation {
                site: site("lyon"),
                key: KeyId([9; 32]),
                when_ms: 1_763_593_200_002,
            }),
        ),
    ]
}

fn hex(bytes: &[u8]) -> String {
    let rows = bytes.chunks(48).map(|row| {
        row.iter().fold("  ".to_owned(), |mut line, byte| {
            write!(line, "{byte:02x}").unwrap();
            line
        })
    });
    rows.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn everything_is_written_as_ever_and_read_back() {
    let mut golden = String::new();
    let mut all = Vec::new();
    for (name, statement) in statements() {
        let signed = signed(&statement);
        let bytes = signed.to_bytes();
        let read = SignedStatement::take(&mut ByteReader::new(&bytes)).unwrap().unwrap();
        assert_eq!((read.statement(), &read), (&statement, &signed), "{name}");
        write!(golden, "{name}\n{}", hex(&bytes)).unwrap();
        all.push(signed);
    }
    let held = GossipMessage::Digest {
        parts: 0x8000_0001,
        asks: true,
        held: vec![cheops_directory::Held { id: 1, order: 300, hash: u64::MAX }],
    };
    let messages = [
        ("ping", GossipMessage::Ping),
        ("summary", GossipMessage::Summary(vec![0, 1, u64::MAX])),
        ("digest", held),
        ("said", GossipMessage::Said { statements: all, left_out: Vec::new() }),
    ];
    for (name, message) in messages {
        let bytes = message.to_bytes();
        assert_eq!(GossipMessage::from_bytes(&bytes).unwrap(), message, "{name}");
        write!(golden, "message: {name}\n{}", hex(&bytes)).unwrap();
    }
    expect_file!["golden/forms.txt"].assert_eq(&golden);
}

#[test]
fn a_directory_is_written_and_read_back_and_passes_on_what_a_later_version_added() {
    let notary = Keys::of(&site("oslo"));
    let mut directory = SiteDirectory::default();
    for (_, statement) in statements() {
        if !matches!(statement, Statement::LinkState(_)) {
            directory.apply(&signed(&statement), &notary).unwrap();
        }
    }
    // As a later version would sign it: with more at the end.
    let mut said = Vec::new();
    signed(&Statement::Record(SiteRecord { site: site("oslo"), ..record() })).put(&mut said);
    let mut from = ByteReader::new(&said);
    let mut longer = from.bytes().unwrap().to_vec();
    longer.extend_from_slice(b"and more");
    let text = [&b"cheops directory 1\0"[..], &longer].concat();
    let mut bytes = Vec::new();
    bytes.bytes(&longer);
    bytes.bytes(&signature(key(&site("oslo"), 0), &text));
    bytes.bytes(&certificate(&site("oslo"), 0));
    let later = SignedStatement::take(&mut ByteReader::new(&bytes)).unwrap().unwrap();
    directory.apply(&later, &notary).unwrap();

    let (read, left_out) = SiteDirectory::from_bytes(&directory.to_bytes(), &notary).unwrap();
    assert_eq!(left_out, Vec::new());
    assert_eq!(read.to_bytes(), directory.to_bytes());
    assert!(read.statements().any(|signed| signed.to_bytes() == bytes), "as it came");
}

#[test]
fn what_exceeds_a_limit_is_refused_by_name() {
    let many = |count: usize| (0..count).map(|n| n.to_string());
    let cases = [
        (
            SiteRecord { addresses: many(17).collect(), ..record() },
            "it has 17 addresses, and there are at most 16",
        ),
        (
            SiteRecord { labels: many(65).map(|n| (n, String::new())).collect(), ..record() },
            "it has 65 labels, and there are at most 64",
        ),
        (
            SiteRecord { services: many(257).collect(), ..record() },
            "it has 257 services, and there are at most 256",
        ),
        (
            SiteRecord { software: "x".repeat(257), ..record() },
            "it has 257 bytes in the name of its release, and there are at most 256",
        ),
        (SiteRecord { epoch: u64::MAX, ..record() }, "`paris` counts beyond what any site gets to"),
    ];
    for (record, expected) in cases {
        let statement = Statement::Record(record);
        // Nobody signs what nobody takes in.
        assert!(
            SignedStatement::new(&statement, b"", |_| Some(Vec::new())).is_none(),
            "{expected}"
        );
        let said = cheops_directory::said_for_tests(&statement);
        let mut bytes = Vec::new();
        [&said[..], b"signature", b""].iter().for_each(|part| bytes.bytes(part));
        let why = SignedStatement::take(&mut ByteReader::new(&bytes)).unwrap().unwrap_err();
        assert_eq!(why.to_string(), expected);
    }
}

#[test]
fn one_that_cannot_be_understood_hides_none_behind_it() {
    let good = signed(&Statement::Record(record()));
    let mut bytes = vec![3, 2];
    for part in [&[1, 99, 1, 2][..], b"signature", b""] {
        bytes.bytes(part);
    }
    good.put(&mut bytes);
    let read = GossipMessage::from_bytes(&bytes).unwrap();
    let GossipMessage::Said { statements, left_out } = read else { panic!("{read:?}") };
    assert_eq!(statements, [good]);
    let [NotTakenIn::Form(why)] = &left_out[..] else { panic!("{left_out:?}") };
    assert!(why.is_of_a_later_version(), "{why}");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _any = GossipMessage::from_bytes(&bytes);
        let _any = SiteDirectory::from_bytes(&bytes, &Keys::of(&site("paris")));
    }

    #[test]
    fn neither_do_bytes_that_are_nearly_right(at in 0_usize..2_000, to in any::<u8>()) {
        let statements = statements().into_iter().map(|(_, statement)| signed(&statement)).collect();
        let mut bytes = GossipMessage::Said { statements, left_out: Vec::new() }.to_bytes();
        let len = bytes.len();
        bytes[at % len] = to;
        let _any = GossipMessage::from_bytes(&bytes);
    }
}
