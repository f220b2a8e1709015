//! What is said of a service's resources for their replication.

use std::fmt;
use std::str::FromStr;

use super::reader::{ConfigReader, ConfigTable};
use super::{Pointer, ReplicationConfig};

/// Reads the settings of one of `[[services]]`.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    service: &mut ConfigTable<'a>,
) -> ReplicationConfig {
    let default = ReplicationConfig::default();
    let a_pointer = "a JSON pointer such as `/id`";
    let client_chosen_id =
        reader.value(service, "client_chosen_id", a_pointer, str::parse::<Pointer>);
    let a_path = "a path such as `/v1/albums/*/photos`";
    let collections = reader.one_or_more(service, "collections", a_path, str::parse);
    let a_status = "an HTTP status from 400 to 499";
    let mut table = reader.table(service, "already");
    let done = reader.one_or_more(&mut table, "done", a_status, status);
    let gone = reader.one_or_more(&mut table, "gone", a_status, status);
    reader.end(&table);
    ReplicationConfig {
        client_chosen_id: client_chosen_id.map(|(pointer, _)| pointer),
        collections: collections.unwrap_or_default(),
        already_done: done.unwrap_or(default.already_done),
        already_gone: gone.unwrap_or(default.already_gone),
    }
}

fn status(text: &str) -> Result<u16, String> {
    let status = text.parse().ok().filter(|status| (400..500).contains(status));
    status.ok_or_else(|| "is no such status".to_owned())
}

/// A path in which `*` stands for one segment, whatever it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern(Vec<String>);

impl PathPattern {
    /// How many segments of the path it takes up, if the path begins like this.
    pub fn length_in(&self, path: &str) -> Option<usize> {
        let path = path.split('?').next().unwrap_or_default();
        let mut segments = path.trim_start_matches('/').split('/');
        let is_like =
            |wanted: &String| segments.next().is_some_and(|found| wanted == "*" || wanted == found);
        self.0.iter().all(is_like).then_some(self.0.len())
    }
}

impl FromStr for PathPattern {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let path = text.strip_prefix('/').ok_or("does not begin with `/`")?;
        let segments: Vec<String> =
            path.trim_end_matches('/').split('/').map(str::to_owned).collect();
        if segments.iter().any(String::is_empty) {
            return Err("has an empty segment".to_owned());
        }
        Ok(Self(segments))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_tells_how_much_of_a_path_it_takes_up() {
        let photos: PathPattern = "/v1/albums/*/photos".parse().unwrap();
        let cases = [
            ("/v1/albums/7/photos", Some(4)),
            ("/v1/albums/7/photos/3?x=/y", Some(4)),
            ("/v1/albums/7", None),
            ("/v1/albums/7/cover", None),
            ("/", None),
        ];
        for (path, expected) in cases {
            assert_eq!(photos.length_in(path), expected, "{path}");
        }
        assert!("v1".parse::<PathPattern>().is_err());
        assert!("/v1//x".parse::<PathPattern>().is_err());
        assert_eq!(photos.to_string(), "/v1/albums/*/photos");
    }
}
