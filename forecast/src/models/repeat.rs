//! Repetition of the last period: `y[T+h] = y[T+h-P]`, the naive forecast for a period of one step.

use serde::{Deserialize, Serialize};

use super::Path;
use crate::history::LoadHistory;

/// Model that repeats the last period, or the last day where the period is not yet known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Repeat {
    period: usize,
}

impl Repeat {
    pub fn new(period: usize) -> Self {
        Self { period: period.max(1) }
    }
}

impl Path for Repeat {
    fn refit(&mut self, _: &LoadHistory) {}

    fn push(&mut self, _: &LoadHistory) {}

    fn path(&self, past: &LoadHistory, out: &mut [f64]) {
        let period = if past.len() >= self.period { self.period } else { past.season() };
        for (step, out) in out.iter_mut().enumerate() {
            *out = past.lag(period - step % period);
        }
    }
}
