//! From when until when a certificate is good: read from its bytes (RFC 5280, 4.1), since the library that
//! checks certificates does not tell.

use std::time::Duration;

use rustls_pki_types::{CertificateDer, UnixTime};

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The seconds since 1970 from which on, and until which, a certificate is good.
pub fn validity_of(certificate: &CertificateDer<'_>) -> Option<(u64, u64)> {
    let (_, mut outer) = Element::take(&mut &certificate[..])?.open(SEQUENCE)?;
    let (_, mut fields) = Element::take(&mut outer)?.open(SEQUENCE)?;
    let mut field = Element::take(&mut fields)?;
    if field.tag == VERSION {
        field = Element::take(&mut fields)?;
    }
    // The serial number, the algorithm and the issuer come before.
    field.open(INTEGER)?;
    Element::take(&mut fields)?.open(SEQUENCE)?;
    Element::take(&mut fields)?.open(SEQUENCE)?;
    let (_, mut validity) = Element::take(&mut fields)?.open(SEQUENCE)?;
    let from = time(&Element::take(&mut validity)?)?;
    let until = time(&Element::take(&mut validity)?)?;
    Some((from, until))
}

/// That moment, or the nearest one at which the certificate is good.
pub(crate) fn within(certificate: &CertificateDer<'_>, now: UnixTime) -> UnixTime {
    match validity_of(certificate) {
        Some((from, until)) if from <= until => {
            UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs().clamp(from, until)))
        }
        _ => now,
    }
}

/// A piece of DER.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
}

impl<'a> Element<'a> {
    /// The first one of these bytes, which is taken off.
    fn take(from: &mut &'a [u8]) -> Option<Self> {
        let (&tag, rest) = from.split_first()?;
        let (&short, rest) = rest.split_first()?;
        let (length, rest) = match short {
            0..=0x7f => (usize::from(short), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
                let length =
                    digits.iter().fold(0_usize, |sum, digit| sum << 8 | usize::from(*digit));
                (length, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        *from = rest;
        Some(Self { tag, content })
    }

    /// What is in it, if it is one of these.
    fn open(self, tag: u8) -> Option<(u8, &'a [u8])> {
        (self.tag == tag).then_some((tag, self.content))
    }
}

/// `YYMMDDHHMMSSZ`, or the same with all digits of the year.
fn time(element: &Element<'_>) -> Option<u64> {
    let text = std::str::from_utf8(element.content).ok()?.strip_suffix('Z')?;
    let (year, rest) = match element.tag {
        UTC_TIME => text.split_at_checked(2)?,
        GENERALIZED_TIME => text.split_at_checked(4)?,
        _ => return None,
    };
    if rest.len() != 10 || !text.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let year: u64 = year.parse().ok()?;
    let year = match element.tag {
        UTC_TIME if year >= 50 => 1900 + year,
        UTC_TIME => 2000 + year,
        _ => year,
    };
    let part = |at: usize| rest[at..at + 2].parse::<u64>().ok();
    let seconds = part(4)? * 3_600 + part(6)? * 60 + part(8)?;
    Some(days_since_1970(year, part(0)?, part(2)?)? * 86_400 + seconds)
}

/// Nothing before 1970 is told apart from it.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have the day that comes and goes at their end.
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + of_year;
    Some(days.saturating_sub(719_468))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_as_the_calendar_does() {
        for ((year, month, day), want) in [
            ((1970, 1, 1), Some(0)),
            ((1970, 3, 1), Some(59)),
            ((2000, 2, 29), Some(11_016)),
            ((2000, 3, 1), Some(11_017)),
            ((2024, 12, 31), Some(20_088)),
            ((2026, 11, 20), Some(20_777)),
            ((4096, 1, 1), Some(776_506)),
            ((1950, 1, 1), Some(0)),
            ((2026, 13, 1), None),
            ((2026, 0, 1), None),
            ((2026, 1, 0), None),
        ] {
            assert_eq!(days_since_1970(year, month, day), want, "{year}-{month}-{day}");
        }
    }

    #[test]
    fn the_time_of_a_certificate_is_read_and_nonsense_is_not() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(["paris".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 11, 20);
        params.not_after = rcgen::date_time_ymd(2051, 2, 3);
        let made = params.self_signed(&key).unwrap();
        let (from, until) = (1_795_132_800, 2_558_995_200);
        assert_eq!(validity_of(made.der()), Some((from, until)));
        for (now, at) in [(0, from), (from + 7, from + 7), (until + 1, until)] {
            let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
            assert_eq!(within(made.der(), now).as_secs(), at);
        }
        let bytes = made.der().to_vec();
        for length in 0..bytes.len() {
            let _nothing = validity_of(&CertificateDer::from(&bytes[..length]));
        }
        for at in 0..bytes.len().min(200) {
            let mut broken = bytes.clone();
            broken[at] ^= 0xff;
            let _anything = validity_of(&CertificateDer::from(broken));
        }
    }
}
