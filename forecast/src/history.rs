//! History of a series as models see it: the values so far, with gaps filled from the past.

use serde::{Deserialize, Serialize};

/// Values so far, with gaps filled causally: by the value one season before, else by the value just
/// before. Values older than the length to keep are dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoadHistory {
    values: Vec<f64>,
    /// `sums[i]` is the sum of the first `i` values.
    sums: Vec<f64>,
    /// Index of `values[0]` in the whole series.
    first: usize,
    season: usize,
    week: usize,
    keep: usize,
}

impl LoadHistory {
    /// An empty history that keeps at least `keep` values.
    pub fn new(season: usize, week: usize, keep: usize) -> Self {
        Self {
            values: Vec::new(),
            sums: vec![0.0],
            first: 0,
            season: season.max(1),
            week: week.max(1),
            keep: keep.max(week + season + 1),
        }
    }

    /// Steps in the short season, a day as a rule.
    pub fn season(&self) -> usize {
        self.season
    }

    /// Steps in the long season, a week as a rule.
    pub fn week(&self) -> usize {
        self.week
    }

    /// Steps seen so far, the forgotten ones included.
    pub fn len(&self) -> usize {
        self.first + self.values.len()
    }

    /// Index of the oldest value still known.
    pub fn first(&self) -> usize {
        self.first
    }

    /// The values still known, oldest first.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Takes in the next value, which is a gap if it is not finite, and returns the value that
    /// fills it.
    pub fn push(&mut self, value: f64) -> f64 {
        let value = if value.is_finite() { value } else { self.filling() };
        if self.values.len() >= 2 * self.keep {
            self.first += self.values.len() - self.keep;
            self.values.drain(..self.values.len() - self.keep);
            self.sums = sums(&self.values);
        }
        self.sums.push(self.sums.last().copied().unwrap_or(0.0) + value);
        self.values.push(value);
        value
    }

    /// The value `lag` steps before the next one, at least 1; the oldest known where that is
    /// forgotten, 0 where there is none.
    pub fn lag(&self, lag: usize) -> f64 {
        let known = self.values.len();
        known.checked_sub(lag).and_then(|index| self.values.get(index)).or(self.values.first()).copied().unwrap_or(0.0)
    }

    /// Mean of the `steps` values, or fewer where fewer are known, that end before position `end`
    /// of [`Self::values`].
    pub fn mean_before(&self, end: usize, steps: usize) -> f64 {
        let end = end.min(self.values.len());
        let start = end.saturating_sub(steps);
        if start == end { 0.0 } else { (self.sums[end] - self.sums[start]) / (end - start) as f64 }
    }

    /// Copy of this history with every value mapped by `change`.
    pub fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        let values: Vec<f64> = self.values.iter().map(|&value| change(value)).collect();
        Self { sums: sums(&values), values, ..*self }
    }

    fn filling(&self) -> f64 {
        let season_before = self.values.len().checked_sub(self.season).map(|index| self.values[index]);
        season_before.or(self.values.last().copied()).unwrap_or(0.0)
    }
}

fn sums(values: &[f64]) -> Vec<f64> {
    let running = values.iter().scan(0.0, |sum, value| {
        *sum += value;
        Some(*sum)
    });
    std::iter::once(0.0).chain(running).collect()
}
