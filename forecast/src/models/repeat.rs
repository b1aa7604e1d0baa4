//! As it was one period ago: `y[T+h] = y[T+h-P]`, naive for a period of one step.

use serde::{Deserialize, Serialize};

use super::Path;
use crate::history::History;

/// Repeats the last period; where it is not known yet, the last day.
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
    fn refit(&mut self, _: &History) {}

    fn push(&mut self, _: &History) {}

    fn path(&self, past: &History, out: &mut [f64]) {
        let period = if past.len() >= self.period { self.period } else { past.season() };
        for (step, out) in out.iter_mut().enumerate() {
            *out = past.lag(period - step % period);
        }
    }
}
