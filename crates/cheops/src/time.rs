//! Times as people write and read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// No agent waits longer.
const LONGEST: Duration = Duration::from_secs(3600);
const DAY_MS: u64 = 24 * 3600 * 1000;

/// Reads `30s`, `500ms`, `1.5m`, `2h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "" if !number.is_empty() => return Err(format!("it needs a unit, such as `{number}s`")),
        _ => return Err("a time is a number and `ms`, `s`, `m` or `h`, such as `30s`".to_owned()),
    };
    let number: f64 = number
        .parse()
        .map_err(|_unsaid| "a time begins with a number, such as `30s`".to_owned())?;
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        _ => Err("it is at most an hour; the work goes on after that".to_owned()),
    }
}

/// How long something took: `7 ms`, `1.2 s`, `3 min`, `2 h`, `5 d`.
pub(crate) fn span(duration: Duration) -> String {
    let (ms, s) = (duration.as_millis(), duration.as_secs());
    match s {
        0 => format!("{ms} ms"),
        1..10 => format!("{}.{} s", s, (ms % 1000) / 100),
        10..120 => format!("{s} s"),
        120..7200 => format!("{} min", s / 60),
        7200..172_800 => format!("{} h", s / 3600),
        _ => format!("{} d", s / 86_400),
    }
}

/// Now, in milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// How long before `now_ms` an RFC 3339 time was; the text itself if it cannot be read.
pub(crate) fn ago(time: &str, now_ms: u64) -> String {
    match instant_ms(time) {
        Some(then) => span(Duration::from_millis(now_ms.saturating_sub(then))),
        None => time.to_owned(),
    }
}

/// The time of day, in UTC: `14:03:05`.
pub(crate) fn clock(ms: u64) -> String {
    let seconds = (ms % DAY_MS) / 1000;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// An RFC 3339 time, shortly: without the date if it is today's; in UTC.
pub(crate) fn moment(time: &str, now_ms: u64) -> String {
    let Some(ms) = instant_ms(time) else { return time.to_owned() };
    if ms / DAY_MS == now_ms / DAY_MS {
        return clock(ms);
    }
    let date = time.split(['T', 't', ' ']).next().unwrap_or_default();
    format!("{date} {}", clock(ms))
}

/// Milliseconds since the Unix epoch of an RFC 3339 time.
fn instant_ms(time: &str) -> Option<u64> {
    let (date, rest) = time.split_once(['T', 't', ' '])?;
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at(zone);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.splitn(3, ':').map(str::parse::<i64>);
    let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let in_range = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second)
        && (1970..=9999).contains(&year);
    if !in_range {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let ms = (seconds - offset_seconds(zone)?) * 1000 + thousandths.parse::<i64>().ok()?;
    u64::try_from(ms).ok()
}

fn offset_seconds(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60))
}

/// Days from the Unix epoch to a date: years are taken to begin in March, so that the day a leap
/// year adds is the last one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let months = (month + 9) % 12;
    let day_of_year = (153 * months + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_number_and_a_unit() {
        for (text, ms) in [
            ("30s", 30_000),
            ("500ms", 500),
            ("1.5m", 90_000),
            ("2min", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for (text, want) in [
            ("30", "it needs a unit, such as `30s`"),
            ("", "a time is a number and"),
            ("s", "a time begins with a number"),
            ("1.2.3s", "a time begins with a number"),
            ("3 s", "a time is a number and"),
            ("-3s", "a time is a number and"),
            ("2h", "it is at most an hour"),
            ("99999999999999999999999999h", "it is at most an hour"),
        ] {
            let error = duration(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn spans_are_as_exact_as_one_cares_to_know() {
        for (ms, want) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1234, "1.2 s"),
            (59_999, "59 s"),
            (119_000, "119 s"),
            (120_000, "2 min"),
            (7_200_000, "2 h"),
            (172_800_000, "2 d"),
        ] {
            assert_eq!(span(Duration::from_millis(ms)), want);
        }
    }

    #[test]
    fn times_are_read_whatever_their_zone() {
        for (time, want) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1970-01-01T01:00:00.5+01:00", Some(500)),
            ("2000-02-29T12:00:00Z", Some(951_825_600_000)),
            ("2026-11-15T23:56:13.123456Z", Some(1_794_786_973_123)),
            ("2026-13-15T23:56:13Z", None),
            ("1969-12-31T23:59:59Z", None),
            ("yesterday", None),
            ("2026-11-15", None),
        ] {
            assert_eq!(instant_ms(time), want, "{time}");
        }
    }

    #[test]
    fn the_date_is_told_only_if_it_is_another_day() {
        let now = instant_ms("2026-11-15T23:56:13Z").unwrap();
        assert_eq!(moment("2026-11-15T01:02:03.456Z", now), "01:02:03");
        assert_eq!(moment("2026-11-14T01:02:03.456Z", now), "2026-11-14 01:02:03");
        assert_eq!(moment("soon", now), "soon");
        assert_eq!(ago("2026-11-15T23:50:13Z", now), "6 min");
        assert_eq!(ago("2026-11-16T23:50:13Z", now), "0 ms");
    }
}
