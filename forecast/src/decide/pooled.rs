//! Distribution of the load in one window ahead: scenarios around the forecast, pooled with windows of the past.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::share::{PoolShare, SHARES};
use super::{Distribution, PastWindows, ResidualPaths, Statistic};

/// Windows that teach the share, in one length of a window.
const TAUGHT_A_WINDOW: usize = 8;
/// Least tail probability that the share is learned for.
const LEAST_TAIL: f64 = 1e-5;

/// Distributions of one statistic of a load over the steps of a window ahead.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PooledForecast {
    residuals: ResidualPaths,
    past: PastWindows,
    share: PoolShare,
    window: Range<usize>,
    statistic: Statistic,
    /// Forecast of the steps from the present one on.
    point: Vec<f64>,
    now: usize,
    /// Distributions of the window ahead by share, where they were made for this step already.
    #[serde(skip)]
    ahead: Option<[Distribution; SHARES.len()]>,
    /// Steps from one window that teaches the share to the next.
    stride: usize,
}

impl PooledForecast {
    /// Nothing is known yet. `window` counts steps from the present one, the mean size of the load is `mean`, and
    /// the share of past windows is learned for each tail probability of `tails`.
    pub fn new(window: Range<usize>, statistic: Statistic, day_steps: usize, mean: f64, tails: &[f64]) -> Self {
        let stride = (window.len() / TAUGHT_A_WINDOW).max(1);
        let tails: Vec<f64> = tails.iter().map(|tail| tail.clamp(LEAST_TAIL, 1.0)).collect();
        Self {
            residuals: ResidualPaths::new(window.end, day_steps, mean),
            past: PastWindows::new(window.end, day_steps),
            share: PoolShare::new(&tails, day_steps.max(1) as f64 / stride as f64),
            window,
            statistic,
            point: Vec::new(),
            now: 0,
            ahead: None,
            stride,
        }
    }

    /// Takes in the forecast of the next steps, the present one first.
    pub fn issue(&mut self, point: Vec<f64>) {
        self.residuals.issue(&point);
        self.point = point;
        self.ahead = if self.now.is_multiple_of(self.stride) { self.by_share() } else { None };
        if let Some(by_share) = &self.ahead {
            let quantiles = |&tail: &f64| by_share.each_ref().map(|share| share.exceeded_with(tail));
            let quantiles = self.share.tails().iter().map(quantiles).collect();
            self.share.expect(self.now, quantiles);
        }
    }

    /// Takes in the load of the present step, `None` for a gap, and goes to the next step.
    pub fn learn(&mut self, load: Option<f64>) {
        self.residuals.learn(load);
        self.past.learn(load);
        self.ahead = None;
        self.now += 1;
        while let Some(origin) = self.share.oldest().filter(|origin| origin + self.window.end <= self.now) {
            let window = self.past.window(self.now - origin);
            let steps = window.get(self.window.clone()).unwrap_or_default().iter().copied();
            let measured = steps.filter(|load| load.is_finite());
            let outcomes: Vec<f64> = match self.statistic {
                Statistic::EachStep => measured.collect(),
                Statistic::Largest => measured.reduce(f64::max).into_iter().collect(),
            };
            self.share.settle(&outcomes);
        }
    }

    /// Forecast of the steps from the present one on.
    pub fn point(&self) -> &[f64] {
        &self.point
    }

    /// Loads that are exceeded with the probabilities `tails`, each at the share learned for the probability of
    /// [`new`](Self::new) in its place; `None` while too few errors of forecasts are known.
    pub fn exceeded_with(&self, tails: &[f64]) -> Option<Vec<f64>> {
        let made;
        let by_share = match &self.ahead {
            Some(ahead) => ahead,
            None => {
                made = self.by_share()?;
                &made
            }
        };
        let each = tails.iter().enumerate();
        Some(each.map(|(number, &tail)| by_share[self.share.chosen(number)].exceeded_with(tail)).collect())
    }

    /// Distribution of the statistic for each share of [`SHARES`].
    fn by_share(&self) -> Option<[Distribution; SHARES.len()]> {
        let scenarios = self.residuals.scenarios(&self.point)?;
        let ahead = scenarios.distribution(&self.window, self.statistic)?;
        let past = self.past.scenarios().and_then(|past| past.distribution(&self.window, self.statistic));
        Some(SHARES.map(|share| match &past {
            Some(past) if share > 0.0 => ahead.pooled(past, share),
            _ => ahead.clone(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Load that a service of ten requests a step keeps, and that is gone for six hours of every other day.
    fn load(step: usize) -> f64 {
        let (day, hour) = (step / 24, step % 24);
        if day.is_multiple_of(2) && (9..15).contains(&hour) { 0.0 } else { 10.0 }
    }

    /// A forecaster that takes the last load for the next one.
    fn told(days: usize, gap: bool) -> PooledForecast {
        let mut pooled = PooledForecast::new(0..1, Statistic::EachStep, 24, 10.0, &[0.02]);
        for step in 0..24 * days {
            let (last, now) = if gap { (load(step.max(1) - 1), load(step)) } else { (10.0, 10.0) };
            pooled.issue(vec![last]);
            pooled.learn(Some(now));
        }
        pooled
    }

    #[test]
    fn a_load_that_breaks_off_is_expected_back() {
        let mut pooled = told(40, true);
        // Nine hours into an even day the load is gone, and the forecast with it.
        for step in 24 * 40..24 * 40 + 12 {
            pooled.issue(vec![load(step - 1)]);
            pooled.learn(Some(load(step)));
        }
        pooled.issue(vec![0.0]);
        assert!(SHARES[pooled.share.chosen(0)] > 0.0);
        assert!(pooled.exceeded_with(&[0.02]).unwrap()[0] >= 9.0, "{:?}", pooled.exceeded_with(&[0.02]));
    }

    #[test]
    fn a_forecast_without_errors_is_left_alone() {
        let mut pooled = told(10, false);
        pooled.issue(vec![12.0]);
        assert_eq!(pooled.share.chosen(0), 0);
        assert_eq!(pooled.exceeded_with(&[0.02]).unwrap(), [12.0]);
        assert!(told(0, false).exceeded_with(&[0.02]).is_none());
    }
}
