//! JSON pointers (RFC 6901): where something is in a body.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// Such a pointer, to something within a body.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pointer(String);

impl Pointer {
    /// Nobody writes a longer one.
    const LONGEST: usize = 256;

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What it points to.
    pub fn find<'v>(&self, body: &'v Value) -> Option<&'v Value> {
        body.pointer(&self.0)
    }

    /// Puts a value there, if there is an object to hold it; whether there was.
    pub fn insert(&self, body: &mut Value, value: Value) -> bool {
        let Some((parent, name)) = self.0.rsplit_once('/') else { return false };
        let name = name.replace("~1", "/").replace("~0", "~");
        match body.pointer_mut(parent) {
            Some(Value::Object(members)) => {
                members.insert(name, value);
                true
            }
            _ => false,
        }
    }

    /// The same, to be changed.
    pub fn find_mut<'v>(&self, body: &'v mut Value) -> Option<&'v mut Value> {
        body.pointer_mut(&self.0)
    }
}

impl FromStr for Pointer {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut after_tildes = text.split('~').skip(1);
        if !text.starts_with('/') {
            Err("does not begin with `/`".to_owned())
        } else if text.len() > Self::LONGEST {
            Err(format!("has more than {} bytes", Self::LONGEST))
        } else if !after_tildes.all(|after| after.starts_with(['0', '1'])) {
            Err("has a `~` that is not part of `~0` or `~1`".to_owned())
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_begins_with_a_slash_and_escapes_tildes() {
        for good in ["/id", "/server/id", "/a~1b/~0", "/", "/0"] {
            assert_eq!(good.parse::<Pointer>().unwrap().as_str(), good);
        }
        for bad in ["", "id", "/a~", "/a~2", &"/".repeat(257)] {
            assert!(bad.parse::<Pointer>().is_err(), "{bad}");
        }
    }
}
