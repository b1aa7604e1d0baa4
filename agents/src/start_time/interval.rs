//! Interval of a wait, calibrated on past predictions.

use serde::Serialize;

/// Past predictions that have come true and count, the latest ones.
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
/// Both ends of an interval are moved by a quantile of how far past waits lay from them: conformalised quantile
/// regression (Romano, Patterson, Candes, NeurIPS 2019, with its asymmetric form in section 3), on the scale of the
/// logarithm. It moves them inwards where the intervals were too wide. Two things differ from independent errors:
///
/// - Many past waits have not ended when the next prediction is made, and those are the long ones. Their errors are
///   known to be larger than what has passed, so the quantiles are those of Kaplan and Meier (JASA 1958).
/// - Jobs that wait at one time wait for one cause, and their errors are alike. So the count of independent errors is
///   that of waits that did not overlap, and the quantiles lie farther out the fewer those are: at the level
///   `(1 - tail) (1 + 1/count)` of conformal prediction.
#[derive(Clone, Debug)]
pub struct StartCalibration {
    /// Share of waits beyond each end.
    tail: f64,
    /// Predictions that have come true, by the moments of their questions.
    came: Vec<PastError>,
    /// Predictions of which the start has not come.
    open: Vec<PastError>,
}

/// Past prediction and its wait, or as much of the wait as has passed.
#[derive(Clone, Copy, Debug)]
struct PastError {
    /// Moment of the question, seconds on any clock.
    asked: f64,
    /// The wait, seconds.
    wait: f64,
    /// Distances of the wait above the lower and the upper end.
    above: [f64; 2],
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
        Self { tail, came: Vec::new(), open: Vec::new() }
    }

    /// Adds a prediction as it was before calibration, and the wait that came, seconds. `asked`: the moment of the
    /// question, seconds on a clock that all questions share.
    pub fn add(&mut self, asked: f64, predicted: &WaitInterval, wait: f64) {
        let Some(past) = PastError::new(asked, predicted, wait) else { return };
        let at = self.came.partition_point(|other| other.asked <= asked);
        self.came.insert(at, past);
        if self.came.len() > LATEST {
            self.came.remove(0);
        }
    }

    /// The calibration with a prediction of which the start has not come after `passed` seconds.
    #[must_use]
    pub fn with_open(mut self, asked: f64, predicted: &WaitInterval, passed: f64) -> Self {
        self.open.extend(PastError::new(asked, predicted, passed));
        self
    }

    /// Number of past predictions that an interval is calibrated on; 0 where there are too few.
    pub fn count(&self) -> usize {
        if self.came.len() < FEWEST { 0 } else { self.came.len() }
    }

    /// The interval with its ends moved; as it is where there are too few past predictions.
    #[must_use]
    pub fn calibrated(&self, predicted: WaitInterval) -> WaitInterval {
        if self.count() == 0 {
            return predicted;
        }
        let level = (1.0 - self.tail) * (1.0 + 1.0 / self.apart() as f64);
        let [below, above] = [self.quantile(0, 1.0 - level), self.quantile(1, level)];
        let low = seconds(scale(predicted.low) + below).min(predicted.median);
        let high = seconds(scale(predicted.high) + above).max(predicted.median);
        WaitInterval { low, high, ..predicted }
    }

    /// Largest number of past waits that do not overlap.
    fn apart(&self) -> usize {
        let mut waits: Vec<(f64, f64)> = self.came.iter().map(|past| (past.asked + past.wait, past.asked)).collect();
        waits.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut count, mut last) = (0, f64::NEG_INFINITY);
        for (end, asked) in waits {
            if asked >= last {
                (count, last) = (count + 1, end);
            }
        }
        count.max(1)
    }

    /// Smallest error above an end that at least the share `level` of errors does not exceed, by the estimator of
    /// Kaplan and Meier; the largest one where the errors that are known do not reach that share.
    fn quantile(&self, end: usize, level: f64) -> f64 {
        let since = self.came.first().map_or(f64::INFINITY, |past| past.asked);
        let came = self.came.iter().map(|past| (past.above[end], true));
        let open = self.open.iter().filter(|past| past.asked >= since).map(|past| (past.above[end], false));
        let mut errors: Vec<(f64, bool)> = came.chain(open).collect();
        // Of equal errors, those that came count first: what is open goes on.
        errors.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        let mut beyond = 1.0;
        for (at, (error, _)) in errors.iter().enumerate().filter(|(_, (_, came))| *came) {
            beyond *= 1.0 - 1.0 / (errors.len() - at) as f64;
            if 1.0 - beyond >= level - 1e-12 {
                return *error;
            }
        }
        errors.last().map_or(0.0, |(error, _)| *error)
    }
}

impl PastError {
    /// `None` where an end of the interval is not known.
    fn new(asked: f64, predicted: &WaitInterval, wait: f64) -> Option<Self> {
        let above = [predicted.low, predicted.high].map(|end| scale(wait) - scale(end));
        above.iter().all(|by| by.is_finite()).then_some(Self { asked, wait, above })
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

    /// Interval that is `factor` times too narrow or wide around a guess, and the wait.
    fn prediction(factor: f64, random: &mut impl RngExt) -> (WaitInterval, f64) {
        let guess = 1000.0 * 10_f64.powf(random.random::<f64>());
        let wait = guess * 4_f64.powf(random.random_range(-1.0..1.0));
        (WaitInterval { low: guess / factor, median: guess, high: guess * factor }, wait)
    }

    /// Whatever the predictions are like, nine of ten later waits lie in the calibrated interval.
    #[test]
    fn coverage_is_as_promised_for_intervals_too_narrow_and_too_wide() {
        for factor in [1.01_f64, 1.5, 3.0, 50.0] {
            let mut random = rng(7, Stream::Futures);
            let mut calibration = StartCalibration::default();
            let (mut held, count) = (0, 2000);
            for at in 0..count + 200 {
                let (predicted, wait) = prediction(factor, &mut random);
                if at >= 200 {
                    held += usize::from(calibration.calibrated(predicted).holds(wait));
                }
                // Each wait ends before the next question.
                calibration.add(1e6 * f64::from(at), &predicted, wait);
            }
            let share = held as f64 / f64::from(count);
            assert!((0.88..0.93).contains(&share), "factor {factor}: {share}");
        }
    }

    /// A question every minute, and waits of hours: what has come by now are the short waits.
    #[test]
    fn waits_that_have_not_ended_count() {
        let mut random = rng(7, Stream::Futures);
        let asked: Vec<(f64, WaitInterval, f64)> = (0..400)
            .map(|at| {
                let (predicted, wait) = prediction(1.2, &mut random);
                (60.0 * f64::from(at), predicted, 2.0 * wait)
            })
            .collect();
        let now = 60.0 * 400.0;
        let mut came = StartCalibration::with_tail(0.3);
        let settled = asked.iter().filter(|(at, _, wait)| at + wait <= now);
        settled.for_each(|(at, predicted, wait)| came.add(*at, predicted, *wait));
        let open = asked.iter().filter(|(at, _, wait)| at + wait > now);
        let all =
            open.clone().fold(came.clone(), |known, (at, predicted, _)| known.with_open(*at, predicted, now - at));
        assert!(came.count() > 100 && open.count() > 100, "{}", came.count());
        let predicted = WaitInterval { low: 2000.0, median: 2500.0, high: 3000.0 };
        assert!(all.calibrated(predicted).high > 1.02 * came.calibrated(predicted).high);
        assert!(all.calibrated(predicted).low >= came.calibrated(predicted).low);
    }

    /// Errors of waits at one time are one error: the interval reaches to the largest one.
    #[test]
    fn waits_that_overlap_are_one_case() {
        let predicted = WaitInterval { low: 500.0, median: 1000.0, high: 2000.0 };
        let of = |apart: f64| {
            let mut calibration = StartCalibration::default();
            (0..100).for_each(|at| calibration.add(apart * f64::from(at), &predicted, 500.0 + 20.0 * f64::from(at)));
            (calibration.apart(), calibration.calibrated(predicted))
        };
        let ((one, together), (all, separate)) = (of(1.0), of(1e6));
        assert_eq!((one, all), (1, 100));
        assert!((together.high - 2480.0).abs() < 1e-6 && (together.low - 500.0).abs() < 1e-6, "{together:?}");
        assert!((separate.high - 2400.0).abs() < 25.0 && separate.low > 520.0, "{separate:?}");
    }

    #[test]
    fn a_few_past_predictions_change_nothing() {
        let predicted = WaitInterval::of(vec![5.0, 1.0, 3.0]).expect("three waits");
        assert_eq!(predicted, WaitInterval { low: 1.0, median: 3.0, high: 5.0 });
        let mut calibration = StartCalibration::default();
        (0..19).for_each(|at| calibration.add(f64::from(at), &predicted, 9.0));
        assert_eq!((calibration.calibrated(predicted), calibration.count()), (predicted, 0));
        calibration.add(19.0, &predicted, 9.0);
        assert!((calibration.calibrated(predicted).high - 9.0).abs() < 1e-9);
        assert_eq!(WaitInterval::of(Vec::new()), None);
    }
}
