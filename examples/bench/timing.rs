//! Repeated timing and medians.

use std::time::{Duration, Instant};

/// Rounds of a measurement.
pub const ROUNDS: usize = 7;

/// The median of `values`: of an even number of values, the mean of the middle two. Panics if there are none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    (low + high) / 2.0
}

/// The number of repetitions of something that took `once` so that it takes about `target`.
pub fn repeats(once: Duration, target: Duration) -> usize {
    let ratio = target.as_secs_f64() / once.as_secs_f64().max(1e-9);
    (ratio.ceil() as usize).clamp(1, 1000)
}

/// Seconds since `start`.
pub fn seconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_order_and_outliers() {
        assert_eq!(median(vec![9000.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(vec![5.0]), 5.0);
    }

    #[test]
    fn repeats_fill_the_target_within_bounds() {
        let target = Duration::from_millis(50);
        assert_eq!(repeats(Duration::from_millis(10), target), 5);
        assert_eq!(repeats(Duration::from_secs(3), target), 1);
        assert_eq!(repeats(Duration::ZERO, target), 1000);
    }
}
