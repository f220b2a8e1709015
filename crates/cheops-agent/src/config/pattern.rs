//! Names with gaps: `*` stands for any text, `?` for any letter.

use std::fmt;

/// Such a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<char>);

impl Pattern {
    /// The longest there is: resource ids are not longer.
    const LONGEST: usize = 256;

    /// Takes any text that is not empty, nor longer than a resource's id.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Self, String> {
        match text.len() {
            0 => Err("is empty".to_owned()),
            length if length > Self::LONGEST => Err("is longer than any resource's id".to_owned()),
            _ => Ok(Self(text.chars().collect())),
        }
    }

    /// Whether a name fits. Takes time in proportion to the product of their lengths at most.
    pub fn fits(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut within) = (0, 0);
        // The last gap, and where in the name what it stands for ends so far.
        let mut gap: Option<(usize, usize)> = None;
        while at < name.len() {
            match self.0.get(within) {
                Some('*') => {
                    gap = Some((within, at));
                    within += 1;
                }
                Some(c) if *c == '?' || *c == name[at] => {
                    at += 1;
                    within += 1;
                }
                _ => {
                    let Some((start, end)) = gap else { return false };
                    gap = Some((start, end + 1));
                    at = end + 1;
                    within = start + 1;
                }
            }
        }
        self.0[within..].iter().all(|c| *c == '*')
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_iter(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_stand_for_anything() {
        let cases = [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("*", "anything/é", true),
            ("image/*", "image/1", true),
            ("image/*", "volume/1", false),
            ("*.txt", "a.txt.txt", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("?é?", "xéy", true),
            ("??", "x", false),
            ("**a", "ba", true),
        ];
        for (pattern, name, fits) in cases {
            assert_eq!(Pattern::new(pattern).unwrap().fits(name), fits, "{pattern} {name}");
        }
        let hard = Pattern::new(&"*a".repeat(100)).unwrap();
        assert!(!hard.fits(&"a".repeat(99)));
    }
}
