//! Paths with gaps, in which `*` stands for one segment.

use std::fmt;
use std::str::FromStr;

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
