//! Server-sent events, as the WHATWG describes them: lines in, events out.

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerEvent {
    /// Its name; empty if none was given.
    pub(super) name: String,
    /// Its data: the data lines, joined.
    pub(super) data: String,
    /// The last id said, by this event or one before it.
    pub(super) id: String,
}

/// The data of an event is longer than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {limit} bytes")]
pub(super) struct EventTooLong {
    limit: usize,
}

/// Puts events together.
#[derive(Debug)]
pub(super) struct EventReader {
    name: String,
    data: Option<String>,
    last_id: String,
    is_first_line: bool,
    limit: usize,
}

impl EventReader {
    pub(super) fn new(limit: usize) -> Self {
        Self { name: String::new(), data: None, last_id: String::new(), is_first_line: true, limit }
    }

    /// Takes in a line; the event, if it ends one.
    pub(super) fn line(&mut self, line: &str) -> Result<Option<ServerEvent>, EventTooLong> {
        let line = if std::mem::take(&mut self.is_first_line) {
            line.strip_prefix('\u{feff}').unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            return Ok(self.ended());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "id" if !value.contains('\0') => value.clone_into(&mut self.last_id),
            "data" => return self.more(value).map(|()| None),
            // Comments (an empty name), and what newer servers may say.
            _ => {}
        }
        Ok(None)
    }

    fn more(&mut self, value: &str) -> Result<(), EventTooLong> {
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            none => *none = Some(value.to_owned()),
        }
        let length = self.data.as_ref().map_or(0, String::len);
        if length > self.limit { Err(EventTooLong { limit: self.limit }) } else { Ok(()) }
    }

    fn ended(&mut self) -> Option<ServerEvent> {
        let name = std::mem::take(&mut self.name);
        let data = self.data.take()?;
        Some(ServerEvent { name, data, id: self.last_id.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String, String)> {
        let mut reader = EventReader::new(100);
        text.lines()
            .filter_map(|line| reader.line(line).unwrap())
            .map(|event| (event.name, event.data, event.id))
            .collect()
    }

    fn event(name: &str, data: &str, id: &str) -> (String, String, String) {
        (name.to_owned(), data.to_owned(), id.to_owned())
    }

    #[test]
    fn events_are_read_as_browsers_read_them() {
        for (text, want) in [
            ("", vec![]),
            ("data: a\n\n", vec![event("", "a", "")]),
            ("data:a\ndata\ndata:  b\n\n", vec![event("", "a\n\n b", "")]),
            ("\u{feff}data: a\n\n", vec![event("", "a", "")]),
            (": hello\n\nid: 1\nevent: reply\ndata: {}\n\n", vec![event("reply", "{}", "1")]),
            // An id stays until another is said, a name does not.
            (
                "id: 1\nevent: x\ndata: a\n\ndata: b\n\n",
                vec![event("x", "a", "1"), event("", "b", "1")],
            ),
            // Without data there is no event, but its id counts.
            ("id: 7\nevent: x\n\ndata: b\n\n", vec![event("", "b", "7")]),
            ("id: 1\nid: a\0b\nretry: 10\nnew: x\ndata: b\n\n", vec![event("", "b", "1")]),
            // What is not ended is no event.
            ("data: a\n", vec![]),
        ] {
            assert_eq!(read(text), want, "{text:?}");
        }
    }

    #[test]
    fn an_event_of_many_lines_is_bounded_too() {
        let mut reader = EventReader::new(10);
        assert!(reader.line("data: 12345").is_ok());
        assert!(reader.line("data: 12345").is_err());
    }
}
