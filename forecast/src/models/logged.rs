//! A model of `log(1 + y / c)`: bursts multiply, and the median survives the way back.

use serde::{Deserialize, Serialize};

use super::Path;
use crate::history::LoadHistory;

/// A model that sees the logarithm of the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Logged<P> {
    inner: P,
    /// The logarithms, once the scale is known.
    logs: Option<LoadHistory>,
    scale: f64,
    /// The largest logarithm so far.
    top: f64,
}

impl<P> Logged<P> {
    pub fn new(inner: P) -> Self {
        Self { inner, logs: None, scale: 1.0, top: 0.0 }
    }

    fn log(&self, y: f64) -> f64 {
        (y.max(0.0) / self.scale).ln_1p()
    }
}

impl<P: Path> Path for Logged<P> {
    fn refit(&mut self, past: &LoadHistory) {
        if self.logs.is_none() {
            // The scale stays that of the first fit, because the state of the model is in these
            // logarithms.
            let y = past.values();
            let mean = y.iter().map(|y| y.abs()).sum::<f64>() / y.len().max(1) as f64;
            self.scale = if mean > 0.0 { 0.1 * mean } else { 1.0 };
            let logs = past.map(|y| self.log(y));
            self.top = logs.values().iter().copied().fold(0.0, f64::max);
            self.logs = Some(logs);
        }
        if let Some(logs) = &self.logs {
            self.inner.refit(logs);
        }
    }

    fn push(&mut self, past: &LoadHistory) {
        let log = self.log(past.lag(1));
        self.top = self.top.max(log);
        if let Some(logs) = &mut self.logs {
            logs.push(log);
            self.inner.push(logs);
        }
    }

    fn path(&self, past: &LoadHistory, out: &mut [f64]) {
        let Some(logs) = &self.logs else { return out.fill(past.lag(1)) };
        self.inner.path(logs, out);
        for out in out {
            // A path of logarithms that runs away is cut at about e times the largest load so far.
            *out = self.scale * out.clamp(0.0, self.top + 1.0).exp_m1();
        }
    }
}
