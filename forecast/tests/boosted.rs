//! Boosted trees as a forecaster of their own: the future is not seen, and no series makes them
//! fail.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::num::NonZeroUsize;

use goodput_forecast::{Adaptive, Backtest, Fit, Horizon, Model, Predict, Refit, Series};
use proptest::prelude::*;

const DAY: usize = 12;
const LEVELS: [f64; 3] = [0.1, 0.5, 0.9];

fn settings() -> Adaptive {
    Adaptive::single(Model::Boosted, DAY)
}

fn series(values: &[f64]) -> Series {
    Series::from_options(0, 60_000, values.iter().map(|value| value.is_finite().then_some(*value))).unwrap()
}

/// A day of any shape, repeated with noise.
fn daily() -> impl Strategy<Value = Vec<f64>> {
    (prop::collection::vec(0.0..100.0, DAY), prop::collection::vec(0.0..10.0, 30 * DAY))
        .prop_map(|(shape, noise)| noise.iter().enumerate().map(|(step, noise)| shape[step % DAY] + noise).collect())
}

/// Values that are no numbers, huge, tiny, negative, equal, or missing.
fn malformed() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![
        4 => Just(0.0),
        2 => -1e3..1e3,
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(1e308),
        1 => Just(-1e308),
        1 => Just(1e-308),
    ];
    prop::collection::vec(value, 1..25 * DAY)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn a_backtest_does_not_see_the_future(values in daily(), other in daily(), cut in 22 * DAY..28 * DAY) {
        let mut changed = values.clone();
        changed[cut..].copy_from_slice(&other[cut..]);
        let backtest = Backtest {
            initial_steps: 20 * DAY,
            stride_steps: 5,
            horizon: Horizon::steps(DAY),
            refit: Refit::RefreshEvery(NonZeroUsize::MIN),
            levels: LEVELS.to_vec(),
            scale_season_steps: DAY,
        };
        let before = backtest.run(&settings(), &series(&values)).unwrap();
        let after = backtest.run(&settings(), &series(&changed)).unwrap();
        for (before, after) in before.origins.iter().zip(&after.origins).filter(|(before, _)| before.origin <= cut) {
            prop_assert_eq!(&before.forecast, &after.forecast, "origin {}", before.origin);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_series_makes_it_fail(values in malformed(), next in malformed()) {
        prop_assume!(values.iter().any(|value| value.is_finite()));
        let mut fitted = settings().fit(&series(&values)).unwrap();
        fitted.update(&next);
        fitted.refresh();
        let forecast = fitted.predict(Horizon::steps(3 * DAY), &LEVELS);
        for row in forecast.quantiles().rows() {
            prop_assert!(row.iter().all(|quantile| quantile.is_finite()) && row.iter().is_sorted(), "{row}");
        }
    }
}
