//! Many times in a few numbers.

use std::time::Duration;

use serde::Serialize;

/// How times are spread, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) count: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Spread {
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self {
            count: times.len(),
            p50_ms: quantile(&times, 50),
            p95_ms: quantile(&times, 95),
            p99_ms: quantile(&times, 99),
        }
    }
}

/// The figure in the middle, which a moment of noise does not move.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    let at = figures.len() / 2;
    match figures.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => figures[at],
        _ => f64::midpoint(figures[at - 1], figures[at]),
    }
}

/// The smallest time that so many percent of the times do not exceed.
fn quantile(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().map_or(0.0, ms)
}

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// How many a second.
pub(crate) fn rate(count: u64, took: Duration) -> f64 {
    if took.is_zero() { 0.0 } else { count as f64 / took.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_time_that_was_measured() {
        let times = (1..=100).rev().map(Duration::from_millis).collect();
        let spread = Spread { count: 100, p50_ms: 50.0, p95_ms: 95.0, p99_ms: 99.0 };
        assert_eq!(Spread::of(times), spread);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![9.0, 1.0, 2.0, 4.0]), 3.0);
        assert_eq!(median(Vec::new()), 0.0);
    }

    #[test]
    fn few_times_and_none_have_a_spread_too() {
        let one = Spread::of(vec![Duration::from_millis(7)]);
        assert_eq!(one, Spread { count: 1, p50_ms: 7.0, p95_ms: 7.0, p99_ms: 7.0 });
        let none = Spread::of(Vec::new());
        assert_eq!(none, Spread { count: 0, p50_ms: 0.0, p95_ms: 0.0, p99_ms: 0.0 });
    }
}
