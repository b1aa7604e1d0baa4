//! Features of the trees: ratios to the mean of the last day, so that a pattern learnt at one level
//! serves at another.

use crate::history::LoadHistory;

/// Lags that are features, in steps.
const LAGS: [usize; 10] = [1, 2, 3, 4, 6, 9, 12, 18, 24, 36];
/// Steps of a short mean, and of the deviation around it.
const SHORT: usize = 6;
const SPREAD: usize = 12;
/// Steps to each side of the same time in a day before.
const RADIUS: usize = 3;
/// Cap on a ratio.
const LARGEST: f64 = 1e9;

const COMMON: usize = LAGS.len() + 3;
const OWN: usize = 7;
const OF_A_DAY: usize = 3;

/// Layout of the features of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Features<'a> {
    pub past: &'a LoadHistory,
    /// Whether values of the week before are features too.
    pub weekly: bool,
    /// A load below this cannot be a unit.
    pub least: f64,
}

impl Features<'_> {
    /// Days looked back.
    fn days(&self) -> impl Iterator<Item = usize> {
        let week = self.past.week() / self.past.season();
        [1, 2, 3].into_iter().chain(self.weekly.then_some(week))
    }

    /// Features of a row.
    pub fn width(&self) -> usize {
        COMMON + OWN + OF_A_DAY * self.days().count()
    }

    /// Values that have to be known at an origin.
    pub fn needs(&self) -> usize {
        let days = if self.weekly { self.past.week() + self.past.season() } else { 3 * self.past.season() };
        days.max(LAGS[LAGS.len() - 1]) + SHORT + RADIUS
    }

    /// The unit at an origin: the mean of the day before `end`.
    pub fn unit(&self, end: usize) -> f64 {
        self.past.mean_before(end, self.past.season()).abs().max(self.least)
    }

    /// Writes the features that all steps from the origin `end`, a position in the values, share.
    pub fn common(&self, end: usize, row: &mut [f64]) {
        let y = self.past.values();
        let unit = self.unit(end);
        let season = self.past.season();
        for (slot, lag) in LAGS.into_iter().enumerate() {
            row[slot] = ratio(y[end - lag], unit);
        }
        let tail = &y[end - SPREAD..end];
        let mean = self.past.mean_before(end, SPREAD) / unit;
        let square = tail.iter().map(|y| (ratio(*y, unit) - mean).powi(2)).sum::<f64>() / SPREAD as f64;
        row[LAGS.len()] = ratio(self.past.mean_before(end, SHORT), unit);
        row[LAGS.len() + 1] = ratio(unit, self.unit(end - season));
        row[LAGS.len() + 2] = ratio(square.sqrt(), 1.0);
        for (slot, day) in self.days().enumerate() {
            row[COMMON + OWN + OF_A_DAY * slot] = ratio(self.past.mean_before(end - day * season, SHORT), unit);
        }
    }

    /// Writes the features of step `h`, counted from 1, where the base forecasts `base`.
    pub fn of_step(&self, end: usize, h: usize, base: f64, row: &mut [f64]) {
        let y = self.past.values();
        let unit = self.unit(end);
        let season = self.past.season();
        let target = end + h - 1;
        let time = self.past.first() + target;
        let angle = std::f64::consts::TAU * (time % season) as f64 / season as f64;
        let (sin, cos) = angle.sin_cos();
        row[COMMON..COMMON + OWN].copy_from_slice(&[
            h as f64,
            ratio(base, unit),
            sin,
            cos,
            // The double angle is the second harmonic of the day.
            2.0 * sin * cos,
            cos * cos - sin * sin,
            (time % self.past.week() / season) as f64,
        ]);
        // Farther than a day ahead, the days before are those before the last known one.
        let known = h.div_ceil(season) - 1;
        for (slot, day) in self.days().enumerate() {
            let same = target.saturating_sub((known + day) * season).min(end - 1);
            let to = (same + RADIUS + 1).min(end);
            let slot = COMMON + OWN + OF_A_DAY * slot;
            row[slot + 1] = ratio(y[same], unit);
            row[slot + 2] = ratio(self.past.mean_before(to, 2 * RADIUS + 1), unit);
        }
    }
}

/// `value` in units of `unit`, finite whatever they are.
pub(super) fn ratio(value: f64, unit: f64) -> f64 {
    let ratio = value / unit;
    if ratio.is_nan() { 0.0 } else { ratio.clamp(-LARGEST, LARGEST) }
}
