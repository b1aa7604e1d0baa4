//! Interval of a wait, calibrated on past predictions.

use std::collections::VecDeque;

use serde::Serialize;

/// Past predictions that count, the latest ones.
const LATEST: usize = 200;
/// Fewest past predictions for which an interval is calibrated.
const FEWEST: usize = 20;
/// Waits are compared as logarithms of the seconds above this.
const OFFSET: f64 = 60.0;
/// Share of waits beyond each end of an interval.
const TAIL: f64 = 0.05;

/// Wait of a job from now, seconds: its median, and an interval that nine of ten waits lie in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WaitInterval {
    /// Wait that one of twenty waits lies below.
    pub low: f64,
    /// Wait that half of the waits lie below.
    pub median: f64,
    /// Wait that one of twenty waits lies above.
    pub high: f64,
}

/// Errors of past predictions of one policy on one cluster.
///
/// Both ends of an interval are moved by a quantile of how far past waits lay beyond them: conformalised quantile
/// regression (Romano, Patterson, Candes, NeurIPS 2019, equation 8, with its asymmetric form in section 3), on the
/// scale of the logarithm. A quantile that is negative makes the interval narrower.
#[derive(Clone, Debug)]
pub struct StartCalibration {
    /// Share of waits beyond each end.
    tail: f64,
    /// By past prediction: how far the wait lay below the lower end, and above the upper end.
    beyond: VecDeque<[f64; 2]>,
}

impl WaitInterval {
    /// Interval of simulated waits, seconds, in any order; a wait of which only the beginning was seen is infinite.
    /// `None` where there is none.
    pub fn of(waits: Vec<f64>) -> Option<Self> {
        Self::with_tail(waits, TAIL)
    }

    /// Interval of simulated waits with a share `tail` of them beyond each end, else as [`Self::of`].
    pub fn with_tail(mut waits: Vec<f64>, tail: f64) -> Option<Self> {
        waits.sort_by(f64::total_cmp);
        let last = waits.len().checked_sub(1)?;
        let at = |share: f64| waits[(share * last as f64).round() as usize];
        Some(Self { low: at(tail), median: at(0.5), high: at(1.0 - tail) })
    }

    /// Whether a wait lies within.
    pub fn holds(&self, wait: f64) -> bool {
        (self.low..=self.high).contains(&wait)
    }
}

impl Default for StartCalibration {
    fn default() -> Self {
        Self::with_tail(TAIL)
    }
}

impl StartCalibration {
    /// Errors of no prediction yet, for intervals with a share `tail` of waits beyond each end.
    pub fn with_tail(tail: f64) -> Self {
        Self { tail, beyond: VecDeque::new() }
    }

    /// Adds a prediction as it was before calibration, and the wait that came, seconds.
    pub fn add(&mut self, predicted: &WaitInterval, wait: f64) {
        let beyond = [scale(predicted.low) - scale(wait), scale(wait) - scale(predicted.high)];
        if beyond.iter().all(|by| by.is_finite()) {
            self.beyond.push_back(beyond);
        }
        if self.beyond.len() > LATEST {
            self.beyond.pop_front();
        }
    }

    /// Number of past predictions that an interval is calibrated on; 0 where there are too few.
    pub fn count(&self) -> usize {
        if self.beyond.len() < FEWEST { 0 } else { self.beyond.len() }
    }

    /// The interval with its ends moved; as it is where there are too few past predictions.
    #[must_use]
    pub fn calibrated(&self, predicted: WaitInterval) -> WaitInterval {
        if self.count() == 0 {
            return predicted;
        }
        let margin = |end: usize| {
            let mut by: Vec<f64> = self.beyond.iter().map(|beyond| beyond[end]).collect();
            by.sort_by(f64::total_cmp);
            let rank = ((by.len() + 1) as f64 * (1.0 - self.tail)).ceil() as usize;
            by[rank.min(by.len()) - 1]
        };
        let low = seconds(scale(predicted.low) - margin(0)).min(predicted.median);
        let high = seconds(scale(predicted.high) + margin(1)).max(predicted.median);
        WaitInterval { low, high, ..predicted }
    }
}

fn scale(secs: f64) -> f64 {
    (secs.max(0.0) + OFFSET).ln()
}

fn seconds(scaled: f64) -> f64 {
    (scaled.exp() - OFFSET).max(0.0)
}

#[cfg(test)]
mod tests {
    use goodput_env::seed::{Stream, rng};
    use rand::RngExt;

    use super::*;

    /// Whatever the predictions are like, nine of ten later waits lie in the calibrated interval.
    #[test]
    fn coverage_is_as_promised_for_intervals_too_narrow_and_too_wide() {
        for factor in [1.01_f64, 1.5, 3.0, 50.0] {
            let mut random = rng(7, Stream::Futures);
            let mut calibration = StartCalibration::default();
            let (mut held, count) = (0, 2000);
            for at in 0..count + 200 {
                let guess = 1000.0 * 10_f64.powf(random.random::<f64>());
                let wait = guess * 4_f64.powf(random.random_range(-1.0..1.0));
                let predicted = WaitInterval { low: guess / factor, median: guess, high: guess * factor };
                if at >= 200 {
                    held += usize::from(calibration.calibrated(predicted).holds(wait));
                }
                calibration.add(&predicted, wait);
            }
            let share = held as f64 / count as f64;
            assert!((0.88..0.93).contains(&share), "factor {factor}: {share}");
        }
    }

    #[test]
    fn a_few_past_predictions_change_nothing() {
        let predicted = WaitInterval::of(vec![5.0, 1.0, 3.0]).expect("three waits");
        assert_eq!(predicted, WaitInterval { low: 1.0, median: 3.0, high: 5.0 });
        let mut calibration = StartCalibration::default();
        (0..19).for_each(|_| calibration.add(&predicted, 9.0));
        assert_eq!((calibration.calibrated(predicted), calibration.count()), (predicted, 0));
        calibration.add(&predicted, 9.0);
        assert!((calibration.calibrated(predicted).high - 9.0).abs() < 1e-9);
        assert_eq!(WaitInterval::of(Vec::new()), None);
    }
}
