//! Boosted trees on a robust profile.
//!
//! The target is what [`Profile`] misses, `(y[T+h] - profile[T+h]) / (mean of the last day)`, the model its conditional median by gradient boosted histogram trees ([`boosting`], [`tree`], [`bins`]) with
//! the distance as one of the features ([`features`]): direct forecasts, all horizons in one model. The base carries the level, which trees alone forecast badly a step ahead.
//! What the base missed is known by playing the past through it. Trees cost far more than any other model here, so they are grown anew once a week.

mod bins;
mod boosting;
mod features;
mod tree;

use serde::{Deserialize, Serialize};

use self::boosting::{Boosting, Trees};
use self::features::{Features, ratio};
use self::tree::Limits;
use super::Path;
use super::profile::Profile;
use crate::history::History;

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

/// A profile with trees on top.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Boosted {
    base: Profile,
    /// The base before it has seen anything.
    fresh: Profile,
    horizon: usize,
    grown: Option<Grown>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Grown {
    /// Steps seen then.
    at: usize,
    weekly: bool,
    least: f64,
    trees: Trees,
}

impl Boosted {
    pub fn new(base: Profile, horizon: usize) -> Self {
        Self { fresh: base.clone(), base, horizon: horizon.max(1), grown: None }
    }

    /// Grows the trees on what the base missed so far.
    fn grow(&self, past: &History) -> Option<Grown> {
        let y = past.values();
        let weekly = past.week() > past.season() && y.len() >= WEEKS * past.week();
        let mean = y.iter().map(|y| y.abs()).sum::<f64>() / y.len().max(1) as f64;
        let least = if mean > 0.0 { LEAST * mean } else { 1.0 };
        let features = Features { past, weekly, least };
        let (width, begin) = (features.width(), features.needs());
        let origins = y.len().checked_sub(begin).filter(|origins| *origins > 0)?;
        let count = ROWS.min(origins * ROWS_OF_ORIGIN);
        let (mut rows, mut targets) = (Vec::with_capacity(count * width), Vec::with_capacity(count));
        let mut base = self.fresh.clone();
        let mut known = History::new(past.season(), past.week(), y.len());
        for &value in &y[..begin] {
            known.push(value);
        }
        base.refit(&known);
        let mut path = vec![0.0; self.horizon];
        let mut row = vec![0.0; width];
        let mut next = 0;
        for end in begin..y.len() {
            let upto = (end + 1 - begin) * count / origins;
            if next < upto {
                base.path(&known, &mut path);
                features.common(end, &mut row);
            }
            for number in next..upto {
                let step = ((number as f64 * GOLDEN).fract() * self.horizon as f64) as usize;
                if let Some(target) = y.get(end + step) {
                    features.of_step(end, step + 1, path[step], &mut row);
                    rows.extend_from_slice(&row);
                    targets.push(ratio(target - path[step], features.unit(end)));
                }
            }
            next = upto;
            known.push(y[end]);
            base.push(&known);
        }
        let trees = BOOSTING.fit(&rows, width, &targets)?;
        Some(Grown { at: past.len(), weekly, least, trees })
    }
}

impl Path for Boosted {
    fn refit(&mut self, past: &History) {
        self.base.refit(past);
        let due = |grown: &Grown| past.len() >= grown.at + GROWTH_DAYS * past.season();
        if self.grown.as_ref().is_none_or(due) {
            self.grown = self.grow(past);
        }
    }

    fn push(&mut self, past: &History) {
        self.base.push(past);
    }

    fn path(&self, past: &History, out: &mut [f64]) {
        self.base.path(past, out);
        let Some(Grown { weekly, least, trees, .. }) = &self.grown else { return };
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
        for (out, correction) in out.iter_mut().zip(corrections) {
            *out += correction * unit;
        }
    }
}

/// A number made of two that looks like chance and is none (the finaliser of splitmix64: Steele, Lea, Flood, OOPSLA 2014).
fn mix(a: u64, b: u64) -> u64 {
    let mut z = (a.wrapping_mul(0x0001_0000_0001) ^ b).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
