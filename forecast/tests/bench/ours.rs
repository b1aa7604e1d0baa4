//! Our forecasts in the protocol's form.

use std::num::NonZeroUsize;

use goodput_forecast::{Adaptive, Backtest, Horizon, Refit, Series};

use super::protocol::{Issue, Split, levels};

/// Forecasts at all origins, parameters refreshed once a day.
pub fn issues(split: &Split, model: &Adaptive) -> Vec<Issue> {
    let series = Series::new(0, split.step_minutes * 60_000, split.masked().into()).unwrap();
    let backtest = Backtest {
        initial_steps: split.cal_start,
        stride_steps: split.stride,
        horizon: Horizon::steps(split.horizon),
        refit: Refit::RefreshEvery(NonZeroUsize::new(split.season / split.stride).unwrap()),
        levels: levels(),
        scale_season_steps: split.season,
    };
    let report = backtest.run(model, &series).unwrap();
    let issue = |origin: &goodput_forecast::OriginReport| Issue {
        origin: origin.origin,
        point: origin.forecast.point().to_vec(),
        quantiles: Some(origin.forecast.quantiles().rows().into_iter().map(|row| row.to_vec()).collect()),
    };
    report.origins.iter().map(issue).collect()
}

/// Geometric mean of ratios.
pub fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}
