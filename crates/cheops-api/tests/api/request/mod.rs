//! For tests that stand in for an agent, here and in `cheops`.

use std::io::Read;

/// All of one request: up to the end of its body, of which the head says how it ends.
pub(crate) fn request(stream: &mut impl Read) -> String {
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&heard);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let is_whole = match length {
                Some(length) => body.len() >= length.parse().unwrap(),
                None if head.contains("chunked") => body.ends_with("0\r\n\r\n"),
                None => true,
            };
            if is_whole {
                return text.into_owned();
            }
        }
        let read = stream.read(&mut piece).unwrap();
        assert_ne!(read, 0, "the request broke off");
        heard.extend_from_slice(&piece[..read]);
    }
}
