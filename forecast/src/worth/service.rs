//! The load that a study serves, and the parts that it is divided into.

use std::ops::Range;

use crate::{Adaptive, Fit, FitError, Predict, Series};

/// Parts of a series: what rules know in advance, what their dials are set on, and what they are judged on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// Steps on which the dials are set.
    pub validation: Range<usize>,
    /// Steps on which rules are judged.
    pub test: Range<usize>,
}

/// Load of one service with the forecasts of it.
#[derive(Debug, Clone)]
pub struct ServiceLoad {
    /// Load by step, gaps as NaN.
    pub load: Vec<f64>,
    /// Load by step with gaps filled from the past, as rules see it.
    pub seen: Vec<f64>,
    /// Load that one accelerator serves, above 0.
    pub load_per_accelerator: f64,
    /// Accelerators that serve the load or are lent.
    pub fleet: u32,
    /// Steps in a day, at least 1.
    pub day_steps: usize,
    /// Seconds of a step.
    pub step_secs: f64,
    /// Parts of the series.
    pub parts: Parts,
    /// First step for which there is a forecast.
    pub first: usize,
    /// Point forecasts at each step from [`Self::first`] on, shape `[steps, reach]`; the present step comes first.
    pub points: Vec<f64>,
    /// Steps of a point forecast.
    pub reach: usize,
}

/// Days of a series on which a forecaster is fitted, at least.
const FIT_DAYS: usize = 3;

impl ServiceLoad {
    /// Service of `series`, with one accelerator for each hundredth of the 0.99 quantile of the load before the test,
    /// or what `accelerators` says in place of a hundred. Forecasts look `reach` steps ahead. They are those of the
    /// default forecaster, which is fitted on the first half of what comes before the validation, at least three days,
    /// and then told one step after another. `None` where that quantile is 0.
    ///
    /// # Errors
    /// A series that cannot be fitted.
    pub fn new(
        series: &Series,
        day_steps: usize,
        accelerators: u32,
        reach: usize,
        parts: Parts,
    ) -> Result<Option<Self>, FitError> {
        let load = series.values().to_vec();
        let first = (parts.validation.start / 2).max(FIT_DAYS * day_steps).min(parts.validation.start);
        let mut known: Vec<f64> = load[..parts.test.start].iter().copied().filter(|load| !load.is_nan()).collect();
        known.sort_by(f64::total_cmp);
        let Some(high) = crate::quantile::of_sorted(&known, 0.99).filter(|high| *high > 0.0) else { return Ok(None) };
        let model = Adaptive { horizon_steps: reach.max(1), ..Adaptive::daily(day_steps) };
        let head = series.slice(0..first.max(1)).unwrap_or_else(|_| series.clone());
        let mut forecaster = model.fit(&head)?;
        let mut points = Vec::with_capacity((load.len() - first) * reach);
        for (step, &load) in load.iter().enumerate().skip(first) {
            if step > first && (step - first).is_multiple_of(day_steps) {
                forecaster.refresh();
            }
            points.extend(forecaster.uncorrected(reach));
            forecaster.update(&[load]);
        }
        Ok(Some(Self {
            seen: series.fill_gaps(day_steps).iter().map(|load| load.unwrap_or(0.0)).collect(),
            load,
            load_per_accelerator: high / f64::from(accelerators.max(1)),
            fleet: accelerators.max(1),
            day_steps,
            step_secs: series.step_millis() as f64 / 1e3,
            parts,
            first,
            points,
            reach,
        }))
    }

    /// Accelerators that the load of a step needs; `None` in a gap.
    pub fn need(&self, step: usize) -> Option<u32> {
        let load = self.load[step];
        (!load.is_nan()).then(|| self.accelerators(load))
    }

    /// Accelerators that serve `load`. A load without a bound needs a million times the one of an accelerator.
    pub fn accelerators(&self, load: f64) -> u32 {
        // `as` saturates at 0.
        (load / self.load_per_accelerator).ceil().min(1e6) as u32
    }

    /// Forecast at step `at` of the steps from it on.
    pub fn point(&self, at: usize) -> &[f64] {
        let row = (at - self.first) * self.reach;
        &self.points[row..row + self.reach]
    }
}
