//! Boosted trees on a robust profile.
//!
//! The target is what [`SeasonProfile`] misses,
//! `(y[T+h] - profile[T+h]) / (mean of the last day) / (usual error at that distance)`; the model
//! is its conditional median by gradient boosted histogram trees ([`boosting`], [`tree`], [`bins`])
//! with the distance as one of the features ([`features`]): direct forecasts, all horizons in one
//! model.
//! - The base carries the level, which trees alone forecast badly a step ahead. Replaying the past
//!   through the base gives its errors.
//! - Errors near and far differ in size: in units of the usual one, what is learnt of far steps
//!   does not swamp near ones, of which the rows hold more for the same reason.
//! - Trees cost far more than any other model here, so they are grown anew once a week.

mod bins;
mod boosting;
mod features;
mod tree;

use serde::{Deserialize, Serialize};

use self::boosting::{Boosting, Trees};
use self::features::{Features, ratio};
use self::tree::Limits;
use super::Path;
use super::profile::SeasonProfile;
use crate::history::LoadHistory;

const BOOSTING: Boosting = Boosting { level: 0.5, trees: 100, rate: 0.05, limits: Limits { leaves: 31, rows: 50 } };
/// Rows the trees are grown on, at most, and of each origin.
const ROWS: usize = 24_000;
const ROWS_OF_ORIGIN: usize = 12;
/// Days between two growths.
const GROWTH_DAYS: usize = 7;
/// Weeks that have to be known for the week before to be a feature.
const WEEKS: usize = 3;
/// The least unit, relative to the mean of all.
const LEAST: f64 = 1e-6;
/// The golden ratio less one: multiples of it spread evenly over a circle.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Daily profile with boosted trees on top.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Boosted {
    base: SeasonProfile,
    /// The base before it has seen anything.
    fresh: SeasonProfile,
    horizon: usize,
    grown: Option<Grown>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Grown {
    /// Number of steps seen at the last growth.
    at: usize,
    weekly: bool,
    least: f64,
    /// Mean absolute error of the base by distance, in units of the day's mean.
    usual: Vec<f64>,
    trees: Trees,
}

impl Boosted {
    pub fn new(base: SeasonProfile, horizon: usize) -> Self {
        Self { fresh: base.clone(), base, horizon: horizon.max(1), grown: None }
    }

    /// Grows the trees on the errors of the base so far.
    fn grow(&self, past: &LoadHistory) -> Option<Grown> {
        let y = past.values();
        let weekly = past.week() > past.season() && y.len() >= WEEKS * past.week();
        let mean = y.iter().map(|y| y.abs()).sum::<f64>() / y.len().max(1) as f64;
        let least = if mean > 0.0 { LEAST * mean } else { 1.0 };
        let features = Features { past, weekly, least };
        let (width, begin) = (features.width(), features.needs());
        let origins = y.len().checked_sub(begin).filter(|origins| *origins > 0)?;
        let count = ROWS.min(origins * ROWS_OF_ORIGIN);
        let (mut rows, mut targets) = (Vec::with_capacity(count * width), Vec::with_capacity(count));
        let mut steps = Vec::with_capacity(count);
        // The base in use has seen all that is replayed here; errors of one that has not are
        // honest.
        let mut base = self.fresh.clone();
        let mut known = LoadHistory::new(past.season(), past.week(), y.len());
        for &value in &y[..begin] {
            known.push(value);
        }
        base.refit(&known);
        let mut path = vec![0.0; self.horizon];
        let mut row = vec![0.0; width];
        let mut next = 0;
        for end in begin..y.len() {
            // The base is refitted daily, as it is in use, so that its replayed errors are honest.
            if end > begin && (end - begin).is_multiple_of(past.season()) {
                base.refit(&known);
            }
            // Rows are spread evenly over the origins, whatever their number.
            let upto = (end + 1 - begin) * count / origins;
            if next < upto {
                base.path(&known, &mut path);
                features.common(end, &mut row);
            }
            for number in next..upto {
                // Squared: half of the rows look less than a quarter of the horizon ahead.
                let step = ((number as f64 * GOLDEN).fract().powi(2) * self.horizon as f64) as usize;
                if let Some(target) = y.get(end + step) {
                    features.of_step(end, step + 1, path[step], &mut row);
                    rows.extend_from_slice(&row);
                    steps.push(step);
                    targets.push(ratio(target - path[step], features.unit(end)));
                }
            }
            next = upto;
            known.push(y[end]);
            base.push(&known);
        }
        let usual = usual(&steps, &targets, self.horizon);
        for (target, step) in targets.iter_mut().zip(&steps) {
            // Far errors are larger; in units of the usual error they do not swamp the near ones.
            *target /= usual[distance(*step)];
        }
        let trees = BOOSTING.fit(&rows, width, &targets)?;
        Some(Grown { at: past.len(), weekly, least, usual, trees })
    }
}

impl Path for Boosted {
    fn refit(&mut self, past: &LoadHistory) {
        self.base.refit(past);
        let due = |grown: &Grown| past.len() >= grown.at + GROWTH_DAYS * past.season();
        if self.grown.as_ref().is_none_or(due) {
            self.grown = self.grow(past);
        }
    }

    fn push(&mut self, past: &LoadHistory) {
        self.base.push(past);
    }

    fn path(&self, past: &LoadHistory, out: &mut [f64]) {
        self.base.path(past, out);
        let Some(Grown { weekly, least, usual, trees, .. }) = &self.grown else { return };
        let features = Features { past, weekly: *weekly, least: *least };
        let (width, end) = (features.width(), past.values().len());
        if end < features.needs() {
            return;
        }
        let mut rows = vec![0.0; width * out.len()];
        let mut common = vec![0.0; width];
        features.common(end, &mut common);
        for (step, (row, base)) in rows.chunks_exact_mut(width).zip(&*out).enumerate() {
            row.copy_from_slice(&common);
            features.of_step(end, step + 1, *base, row);
        }
        let mut corrections = vec![0.0; out.len()];
        trees.values(&rows, width, &mut corrections);
        let unit = features.unit(end);
        for (step, (out, correction)) in out.iter_mut().zip(corrections).enumerate() {
            *out += correction * unit * usual[distance(step.min(self.horizon - 1))];
        }
    }
}

/// Mean absolute error by distance, that of all where there is none.
fn usual(steps: &[usize], errors: &[f64], horizon: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); distance(horizon - 1) + 1];
    let mut all = (0.0, 0.0);
    for (step, error) in steps.iter().zip(errors) {
        for (sum, count) in [&mut sums[distance(*step)], &mut all] {
            *sum += error.abs();
            *count += 1.0;
        }
    }
    let mean = |(sum, count): (f64, f64)| if sum > 0.0 { sum / count } else { 1.0 };
    sums.into_iter().map(|sum| if sum.1 > 0.0 { mean(sum) } else { mean(all) }).collect()
}

/// Number of doublings of the distance of a step, counted from 0: what is near is not like what is
/// far.
fn distance(step: usize) -> usize {
    (step + 1).ilog2() as usize
}

/// Pseudo-random number made of two numbers (the finaliser of splitmix64: Steele, Lea, Flood,
/// OOPSLA 2014).
fn mix(a: u64, b: u64) -> u64 {
    let mut z = (a.wrapping_mul(0x0001_0000_0001) ^ b).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "helpers of tests")]
mod tests {
    use super::*;

    const DAY: usize = 24;

    /// Daily shape with a second half that depends on the first hour, which trees can learn and a
    /// profile cannot.
    fn load(days: u64) -> Vec<f64> {
        let hour = |day, hour: u64| {
            let busy = mix(5, day).is_multiple_of(2);
            let noise = (mix(day, hour) % 100) as f64 / 50.0;
            100.0 + noise + if busy == (hour % 24 < 6) { 40.0 } else { 0.0 }
        };
        (0..days * 24).map(|step| hour(step / 24, step % 24)).collect()
    }

    fn known(values: &[f64]) -> LoadHistory {
        let mut past = LoadHistory::new(DAY, 7 * DAY, 52 * DAY);
        values.iter().for_each(|&value| {
            past.push(value);
        });
        past
    }

    fn model() -> Boosted {
        Boosted::new(SeasonProfile::new(DAY, 7, 2, 0.9), DAY)
    }

    /// Mean absolute error of the next twelve hours, at 06:00 of the days from the 60th on.
    fn error(mut model: impl Path, values: &[f64]) -> f64 {
        model.refit(&known(&values[..60 * DAY]));
        let mut past = known(&values[..60 * DAY]);
        let (mut sum, mut count) = (0.0, 0.0);
        for end in 60 * DAY..values.len() - DAY {
            if end % DAY == 6 {
                let mut path = [0.0; 12];
                model.path(&past, &mut path);
                sum += path.iter().zip(&values[end..]).map(|(path, y)| (path - y).abs()).sum::<f64>();
                count += 12.0;
            }
            past.push(values[end]);
            model.push(&past);
        }
        sum / count
    }

    #[test]
    fn trees_learn_what_the_profile_cannot() {
        let values = load(80);
        let (base, boosted) = (error(SeasonProfile::new(DAY, 7, 2, 0.9), &values), error(model(), &values));
        assert!(boosted < 0.5 * base, "{boosted} of {base}");
    }

    #[test]
    fn trees_are_grown_weekly_and_not_before_there_is_enough() {
        let values = load(30);
        let mut boosted = model();
        boosted.refit(&known(&values[..DAY]));
        assert_eq!(boosted.grown, None);
        boosted.refit(&known(&values[..10 * DAY]));
        let first = boosted.grown.clone();
        assert_eq!(first.as_ref().map(|grown| (grown.at, grown.weekly)), Some((10 * DAY, false)));
        boosted.refit(&known(&values[..16 * DAY]));
        assert_eq!(boosted.grown, first);
        boosted.refit(&known(&values[..28 * DAY]));
        assert_eq!(boosted.grown.map(|grown| (grown.at, grown.weekly)), Some((28 * DAY, true)));
    }

    #[test]
    fn a_model_read_from_its_snapshot_is_the_same_and_so_is_one_fitted_twice() {
        let past = known(&load(30));
        let mut boosted = model();
        boosted.refit(&past);
        let mut again = model();
        again.refit(&past);
        assert_eq!(boosted, again);
        let read: Boosted = serde_json::from_str(&serde_json::to_string(&boosted).unwrap()).unwrap();
        let path = |model: &Boosted| {
            let mut out = vec![0.0; 3 * DAY];
            model.path(&past, &mut out);
            out
        };
        for (read, written) in path(&read).iter().zip(path(&boosted)) {
            assert!((read - written).abs() < 1e-9 * written.abs(), "{read} is not {written}");
        }
    }
}
