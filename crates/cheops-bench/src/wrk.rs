//! `wrk`, which asks as fast as it gets answers, and what it prints.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::process::Command;

use crate::failure::{BenchFailure, cannot};

/// Beyond the time that it is told.
const PATIENCE: Duration = Duration::from_secs(30);

/// What it measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WrkResult {
    pub(crate) requests: u64,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// Asks by so many connections that stay open. An answer that is no success is a failure.
pub(crate) async fn wrk(
    program: &Path,
    to: SocketAddr,
    header: Option<&str>,
    connections: usize,
    time: Duration,
) -> Result<WrkResult, BenchFailure> {
    // It knows whole seconds only.
    let seconds = time.as_secs_f64().ceil();
    let mut arguments: Vec<OsString> =
        vec!["-t1".into(), format!("-c{connections}").into(), format!("-d{seconds}s").into()];
    arguments.push("--latency".into());
    arguments.extend(header.iter().flat_map(|header| ["-H".into(), header.into()]));
    arguments.push(format!("http://{to}/").into());
    let running = Command::new(program).args(arguments).kill_on_drop(true).output();
    let late = |_| BenchFailure::new("`wrk` did not end", "time is up");
    let output = tokio::time::timeout(time + PATIENCE, running).await.map_err(late)?;
    let output = output.map_err(cannot("run `wrk`"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match (heard_in(&text), failed_in(&text)) {
        (_, Some(failed)) => Err(BenchFailure::new(format!("requests to {to} failed"), failed)),
        (Some(heard), None) => Ok(heard),
        (None, None) => Err(BenchFailure::new(
            "cannot read what `wrk` says",
            format!("{text}{}", String::from_utf8_lossy(&output.stderr)),
        )),
    }
}

fn heard_in(text: &str) -> Option<WrkResult> {
    let after = |start: &str| {
        let mut lines = text.lines().map(str::trim);
        lines.find_map(|line| line.strip_prefix(start)).map(str::trim)
    };
    let requests = text.lines().find_map(|line| line.trim().split_once(" requests in "))?.0;
    Some(WrkResult {
        requests: requests.parse().ok()?,
        per_second: after("Requests/sec:")?.parse().ok()?,
        p50_ms: milliseconds(after("50%")?)?,
        p99_ms: milliseconds(after("99%")?)?,
    })
}

/// What it says of requests that were not answered, or not well.
fn failed_in(text: &str) -> Option<&str> {
    let is_of_failures =
        |line: &&str| line.starts_with("Socket errors:") || line.starts_with("Non-2xx");
    text.lines().map(str::trim).find(is_of_failures)
}

fn milliseconds(text: &str) -> Option<f64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let factor = match unit {
        "us" => 0.001,
        "ms" => 1.0,
        "s" => 1000.0,
        "m" => 60_000.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
Running 3s test @ http://127.0.0.1:7102/
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.25ms  533.83us  20.50ms   92.28%
    Req/Sec    25.85k     2.07k   29.41k    76.67%
  Latency Distribution
     50%  750.00us
     75%    1.42ms
     90%    1.72ms
     99%    2.50ms
  77212 requests in 3.00s, 13.99MB read
Requests/sec:  25712.34
Transfer/sec:      4.66MB
";

    #[test]
    fn what_wrk_prints_is_understood() {
        let heard =
            WrkResult { requests: 77_212, per_second: 25_712.34, p50_ms: 0.75, p99_ms: 2.5 };
        assert_eq!(heard_in(PRINTED), Some(heard));
        assert_eq!(failed_in(PRINTED), None);
        assert_eq!(heard_in("unable to connect to 127.0.0.1:1 Connection refused\n"), None);
    }

    #[test]
    fn requests_that_failed_are_noticed() {
        for line in
            ["Non-2xx or 3xx responses: 12", "Socket errors: connect 0, read 3, write 0, timeout 0"]
        {
            assert_eq!(failed_in(&format!("{PRINTED}  {line}\n")), Some(line));
        }
    }

    #[test]
    fn every_unit_of_time_is_known() {
        let known = [("1.50us", 0.0015), ("2.00ms", 2.0), ("1.00s", 1000.0), ("1.00m", 60_000.0)];
        for (text, wanted) in known {
            assert_eq!(milliseconds(text), Some(wanted));
        }
        assert_eq!(milliseconds("1.00h"), None);
        assert_eq!(milliseconds("1.00"), None);
    }
}
