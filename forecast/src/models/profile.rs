//! Robust daily profile: the median of the last days around each time of day, relative to the
//! level, times the level now.
//!
//! Bursts of unforeseeable height make a mean profile wrong everywhere near them; the median is the
//! point forecast that the absolute error asks for.

use serde::{Deserialize, Serialize};

use super::Path;
use crate::history::LoadHistory;

/// Median profile over one season.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeasonProfile {
    season: usize,
    /// Seasons looked back.
    seasons: usize,
    /// Steps to each side of a time of day.
    radius: usize,
    /// Median ratio by phase.
    ratios: Vec<f64>,
    /// Factor by which the last deviation fades per step.
    carry: f64,
}

impl SeasonProfile {
    pub fn new(season: usize, seasons: usize, radius: usize, carry: f64) -> Self {
        Self { season: season.max(1), seasons, radius, ratios: vec![], carry }
    }

    /// Median ratio at a lag of `back` steps and whole seasons before it.
    fn ratio(&self, past: &LoadHistory, back: usize, scratch: &mut Vec<f64>) -> f64 {
        let y = past.values();
        scratch.clear();
        for season in 0..self.seasons {
            let centre = back + season * self.season;
            if centre + self.radius > y.len() {
                break;
            }
            let middle = y.len() - centre;
            // The level is centred on the phase where values after it are known, and trailing at
            // the end.
            let end = (middle + self.season / 2).min(y.len());
            let level = past.mean_before(end, self.season);
            if level > 0.0 {
                let from = middle.saturating_sub(self.radius);
                let to = (middle + self.radius + 1).min(y.len());
                scratch.extend(y[from..to].iter().map(|y| y / level));
            }
        }
        if scratch.is_empty() {
            return 1.0;
        }
        let middle = scratch.len() / 2;
        *scratch.select_nth_unstable_by(middle, f64::total_cmp).1
    }
}

impl Path for SeasonProfile {
    fn refit(&mut self, past: &LoadHistory) {
        let mut scratch = Vec::new();
        self.ratios = vec![1.0; self.season];
        for back in 1..=self.season.min(past.len()) {
            self.ratios[(past.len() - back) % self.season] = self.ratio(past, back, &mut scratch);
        }
    }

    fn push(&mut self, past: &LoadHistory) {
        if !self.ratios.is_empty() {
            // Only now are all values around this phase known, so its ratio can be updated.
            let back = self.radius + 1;
            if past.len() > back {
                let phase = (past.len() - back) % self.season;
                self.ratios[phase] = self.ratio(past, back, &mut Vec::new());
            }
        }
    }

    fn path(&self, past: &LoadHistory, out: &mut [f64]) {
        if self.ratios.is_empty() {
            return out.fill(past.lag(1));
        }
        let level = past.mean_before(past.values().len(), self.season);
        let at = |index: usize| level * self.ratios[index % self.season];
        let last = past.len().saturating_sub(1);
        let mut deviation = past.lag(1) - at(last);
        for (step, out) in out.iter_mut().enumerate() {
            deviation *= self.carry;
            *out = at(past.len() + step) + deviation;
        }
    }
}
