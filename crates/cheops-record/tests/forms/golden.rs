//! The bytes of everything, checked in: whoever changes one of them breaks what is on somebody's
//! disk or what a neighbour says.

use std::fmt::Write;

use cheops_record::disk::{decode_notice, decode_record, encode_notice, encode_record};
use cheops_record::wire::{self, Frame};
use expect_test::expect_file;

use crate::samples::{messages, notices, records};

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
