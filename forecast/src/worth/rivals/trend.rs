//! Kalman filter of a local linear trend: a level that moves by a trend, and a trend that wanders.

/// Filter with the state `[level, trend]`.
pub(in crate::worth) struct LocalTrend {
    level_variance: f64,
    trend_variance: f64,
    noise: f64,
    /// State and its covariance `[level, both, trend]`; `None` before the first value.
    state: Option<([f64; 2], [f64; 3])>,
}

/// Variance of the state before any value.
const VAGUE: f64 = 1000.0;

impl LocalTrend {
    /// Filter with variances of the level, of the trend and of the measurement, in squares of the load a step.
    pub fn new(level_variance: f64, trend_variance: f64, noise: f64) -> Self {
        Self { level_variance, trend_variance, noise, state: None }
    }

    /// Takes in a value, and returns what the next one is expected to be.
    pub fn next(&mut self, value: f64) -> f64 {
        let Some(([level, trend], [a, b, c])) = self.state else {
            self.state = Some(([value, 0.0], [VAGUE, 0.0, VAGUE]));
            return value;
        };
        let expected = level + trend;
        let (a, b, c) = (a + 2.0 * b + c + self.level_variance, b + c, c + self.trend_variance);
        let error = value - expected;
        let gains = [a / (a + self.noise), b / (a + self.noise)];
        let (level, trend) = (expected + gains[0] * error, trend + gains[1] * error);
        self.state = Some(([level, trend], [(1.0 - gains[0]) * a, (1.0 - gains[0]) * b, c - gains[1] * b]));
        level + trend
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_continued() {
        let mut filter = LocalTrend::new(1.0, 0.1, 10.0);
        let next: Vec<f64> = (0..200).map(|step| filter.next(3.0 * f64::from(step))).collect();
        assert!((next[199] - 600.0).abs() < 1e-6, "{}", next[199]);
    }
}
