//! Bytes of nobody in particular: they may be refused, and never make a reader fall.

use cheops_record::disk::{decode_notice, decode_record, encode_notice, encode_record};
use cheops_record::{v1, wire};
use proptest::prelude::*;

use crate::samples::{messages, notices, records};

fn read_all(bytes: &[u8]) {
    let _refused = decode_record(bytes);
    let _refused = decode_notice(bytes);
    let _refused = v1::decode_record(bytes);
    let _refused = v1::decode_notice(bytes);
    let _refused = wire::decode(bytes);
}

/// Bytes that are nearly right.
fn written() -> Vec<Vec<u8>> {
    let records = records().into_iter().map(|(_, record)| encode_record(&record));
    let notices = notices().into_iter().map(|notice| encode_notice(&notice));
    let messages = messages().into_iter().map(|(_, message)| {
        let mut bytes = Vec::new();
        wire::encode_message(&message, &mut bytes);
        bytes
    });
    records.chain(notices).chain(messages).collect()
}

#[test]
fn what_is_cut_is_refused_wherever_it_is_cut() {
    for body in records().into_iter().map(|(_, record)| encode_record(&record)) {
        for length in 0..body.len() {
            assert!(decode_record(&body[..length]).is_err());
        }
    }
}

#[test]
fn a_number_alone_claims_no_memory() {
    let mut body = vec![2, 9, 1, b'a'];
    body.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    assert!(decode_record(&body).unwrap_err().to_string().contains("at most 0"));
    let endless = [2, 7, 1, b'a', 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1];
    assert!(decode_record(&endless).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
        for version in [1, 2] {
            for kind in 0..18 {
                let mut body = vec![version, kind];
                body.extend(&bytes);
                read_all(&body);
                read_all(&body[1..]);
            }
        }
    }

    #[test]
    fn bytes_that_are_nearly_right_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let all = written();
        let mut bytes = which.get(&all).clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        read_all(&bytes);
        read_all(&bytes[..cut.index(bytes.len())]);
        // The same as of the version before.
        bytes[0] = 1;
        read_all(&bytes);
    }
}
