//! The bytes of everything, checked in: whoever changes one of them breaks what is on somebody's
//! disk or what a neighbour says.

use std::fmt::Write;

use cheops_record::disk::{decode_notice, decode_record, encode_notice, encode_record};
use cheops_record::wire::{self, Frame};
use expect_test::expect_file;

use cheops_core::model::{Proof, SealTree, SignedBy, resource_hash};

use crate::samples::{
    entries, entries_of_logic, messages, more_entries, notices, records, resource, site,
};

fn hex(bytes: &[u8]) -> String {
    let mut lines = String::new();
    for row in bytes.chunks(48) {
        lines.push_str("  ");
        for byte in row {
            write!(lines, "{byte:02x}").unwrap();
        }
        lines.push('\n');
    }
    lines
}

#[test]
fn records_are_written_as_ever_and_read_back() {
    let mut golden = String::new();
    for (name, record) in records() {
        let body = encode_record(&record);
        assert_eq!(decode_record(&body).unwrap(), record, "{name}");
        write!(golden, "{name}\n{}", hex(&body)).unwrap();
    }
    expect_file!["golden/records.txt"].assert_eq(&golden);
}

#[test]
fn notices_are_written_as_ever_and_read_back() {
    let mut golden = String::new();
    for notice in notices() {
        let body = encode_notice(&notice);
        assert_eq!(decode_notice(&body).unwrap(), notice);
        write!(golden, "{notice:?}\n{}", hex(&body)).unwrap();
    }
    expect_file!["golden/notices.txt"].assert_eq(&golden);
}

#[test]
fn messages_are_written_as_ever_and_read_back() {
    let mut golden = String::new();
    let frames = messages().into_iter().map(|(name, message)| (name, Frame::Message(message)));
    let certificate = ("certificate", Frame::Certificate(vec![0x30, 0x82, 1, 2, 3]));
    for (name, frame) in frames.chain([certificate]) {
        let mut bytes = Vec::new();
        wire::encode(&frame, &mut bytes);
        let received = wire::decode(&bytes).unwrap();
        assert_eq!((received.frame, received.left_out), (Some(frame), Vec::new()), "{name}");
        write!(golden, "{name}\n{}", hex(&bytes)).unwrap();
    }
    expect_file!["golden/messages.txt"].assert_eq(&golden);
}

/// Signatures are over these: where one changes, every entry that was ever signed is refused.
#[test]
fn what_is_signed_is_as_ever() {
    let first = entries().into_iter().map(|(name, entry)| (name.to_owned(), entry));
    let all: Vec<_> = first.chain(more_entries()).collect();
    let album = resource("album");
    let mut golden = format!("resource\n{}", hex(&resource_hash(&album)));
    for (name, entry) in all.iter().chain(&entries_of_logic()) {
        let header = entry.header(&album);
        assert_eq!(header.hash(), entry.hash(), "{name}");
        write!(golden, "{name}: said\n{}", hex(&header.said)).unwrap();
        write!(golden, "{name}: header\n{}", hex(&entry.hash().0)).unwrap();
        let Some(root) = entry.proof().and_then(|proof| proof.root(entry.hash())) else { continue };
        write!(golden, "{name}: root by its proof\n{}", hex(&root)).unwrap();
    }
    for by in [SignedBy::Author, SignedBy::Voucher(site("nantes"))] {
        for count in [1, 2, 3, all.len()] {
            let hashes = all.iter().take(count).map(|(_, entry)| entry.hash());
            let root = SealTree::over(by.clone(), hashes).unwrap().root();
            write!(golden, "{by:?}: root of {count}\n{}", hex(&root)).unwrap();
        }
    }
    write!(golden, "signed text\n{}", hex(&Proof::signed_text(&[7; 32]))).unwrap();
    expect_file!["golden/signed.txt"].assert_eq(&golden);
}
