//! What lets a program in where it is not known who runs it.

use std::fmt;

/// Anyone could guess a shorter one.
const SHORTEST: usize = 16;
/// Nobody needs a longer one.
const LONGEST: usize = 512;

/// The token of an agent's API. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// Why a text is no token.
#[derive(Debug, thiserror::Error)]
#[error("a token is one line of {SHORTEST} to {LONGEST} letters and digits, and this has {0}")]
pub struct BadToken(String);

impl Token {
    /// Takes what a token file holds.
    ///
    /// # Errors
    ///
    /// What is wrong with it, without the text itself.
    pub fn new(text: &str) -> Result<Self, BadToken> {
        let text = text.trim();
        if !(SHORTEST..=LONGEST).contains(&text.len()) {
            return Err(BadToken(format!("{} bytes", text.len())));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadToken("other characters".to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text, to be compared or sent and never to be printed.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_plain_and_does_not_show() {
        let token = Token::new("0123456789abcdef\n").unwrap();
        assert_eq!(
            (token.secret(), format!("{token:?}").as_str()),
            ("0123456789abcdef", "Token(…)")
        );
        for bad in ["", "short", "0123456789abcde f", "0123456789abcdefé", &"x".repeat(513)] {
            let error = Token::new(bad).unwrap_err().to_string();
            assert!(bad.len() < 2 || !error.contains(bad), "{error}");
        }
    }
}
