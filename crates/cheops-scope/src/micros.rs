//! Round-trip times, in microseconds.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A time span in whole microseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Micros(u64);

/// Why a text is not a round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadDuration {
    /// It does not begin with a number such as `10` or `1.5`.
    NoNumber,
    /// A number without `us`, `ms` or `s`.
    NoUnit,
    /// A number with another unit.
    UnknownUnit,
    /// It has a fraction of a microsecond.
    TooFine,
    /// It is longer than [`Micros::MAX`].
    TooLong,
}

impl fmt::Display for BadDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber => write!(f, "a round-trip time begins with a number"),
            Self::NoUnit => write!(f, "a round-trip time ends with `us`, `ms` or `s`"),
            Self::UnknownUnit => write!(f, "the units of time are `us`, `ms` and `s`"),
            Self::TooFine => write!(f, "a round-trip time is a whole number of microseconds"),
            Self::TooLong => write!(f, "a round-trip time is at most `{}`", Micros::MAX),
        }
    }
}

impl std::error::Error for BadDuration {}

impl Micros {
    /// No time at all: the distance of a site to itself.
    pub const ZERO: Self = Self(0);

    /// The longest round-trip time a scope can ask for: an hour.
    pub const MAX: Self = Self(3_600_000_000);

    /// So many microseconds.
    #[must_use]
    pub const fn new(micros: u64) -> Self {
        Self(micros)
    }

    /// As a plain number of microseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl std::str::FromStr for Micros {
    type Err = BadDuration;

    fn from_str(text: &str) -> Result<Self, BadDuration> {
        let (number, unit) = split_unit(text);
        let (whole, fraction) = split_number(number).ok_or(BadDuration::NoNumber)?;
        let decimals = match unit {
            "us" => 0,
            "ms" => 3,
            "s" => 6,
            "" => return Err(BadDuration::NoUnit),
            _ => return Err(BadDuration::UnknownUnit),
        };
        let micros = scaled(whole, fraction, decimals)?;
        if micros > Self::MAX {
            return Err(BadDuration::TooLong);
        }
        Ok(micros)
    }
}

/// `10ms` → `10` and `ms`.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

/// `1.5` → `1` and `5`; `10` → `10` and nothing.
fn split_number(number: &str) -> Option<(&str, &str)> {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    match number.split_once('.') {
        None => digits(number).then_some((number, "")),
        Some((whole, fraction)) => (digits(whole) && digits(fraction)).then_some((whole, fraction)),
    }
}

/// The number `whole.fraction` times ten to the power of `decimals`.
fn scaled(whole: &str, fraction: &str, decimals: usize) -> Result<Micros, BadDuration> {
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > decimals {
        return Err(BadDuration::TooFine);
    }
    let digits = format!("{whole}{fraction:0<decimals$}");
    digits.parse().map(Micros).map_err(|_| BadDuration::TooLong)
}

/// In the largest unit that needs no fraction, so that it reads back as the same value.
impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => write!(f, "0ms"),
            us if us % 1_000_000 == 0 => write!(f, "{}s", us / 1_000_000),
            us if us % 1_000 == 0 => write!(f, "{}ms", us / 1_000),
            us => write!(f, "{us}us"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_three_units_with_or_without_a_fraction() {
        for (text, want) in [
            ("10ms", Ok(10_000)),
            ("1.5ms", Ok(1_500)),
            ("1.50ms", Ok(1_500)),
            ("250us", Ok(250)),
            ("2.000000s", Ok(2_000_000)),
            ("0s", Ok(0)),
            ("000001s", Ok(1_000_000)),
            ("3600s", Ok(3_600_000_000)),
            ("3600.000001s", Err(BadDuration::TooLong)),
            ("99999999999999999999999s", Err(BadDuration::TooLong)),
            ("0.5us", Err(BadDuration::TooFine)),
            ("10", Err(BadDuration::NoUnit)),
            ("10m", Err(BadDuration::UnknownUnit)),
            ("1e3ms", Err(BadDuration::UnknownUnit)),
            ("ms", Err(BadDuration::NoNumber)),
            ("1.ms", Err(BadDuration::NoNumber)),
            ("1.2.3ms", Err(BadDuration::NoNumber)),
            ("", Err(BadDuration::NoNumber)),
        ] {
            assert_eq!(text.parse::<Micros>().map(Micros::get), want, "{text}");
        }
    }

    #[test]
    fn a_time_prints_in_its_largest_whole_unit() {
        for (micros, want) in
            [(0, "0ms"), (7, "7us"), (1_500, "1500us"), (10_000, "10ms"), (3_000_000, "3s")]
        {
            assert_eq!(Micros::new(micros).to_string(), want);
        }
    }
}
