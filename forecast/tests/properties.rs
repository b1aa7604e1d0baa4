//! Invariants for every series: nothing leaks, nothing crosses, and gaps do no harm.
#![expect(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

use std::num::NonZeroUsize;

use goodput_forecast::{Backtest, Fit, FittedSeasonalNaive, Horizon, Predict, Refit, SeasonalNaive, Series, metrics};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

const LEVELS: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

fn series(values: Vec<Option<f64>>) -> Series {
    Series::from_options(0, 60_000, values).unwrap()
}

/// Values with gaps, the first one measured, so that there is something to fit.
fn values(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Option<f64>>> {
    (-1e6..1e6, vec(weighted(0.8, -1e6..1e6), len)).prop_map(|(first, rest)| {
        let mut values = vec![Some(first)];
        values.extend(rest);
        values
    })
}

fn fitted(season_steps: usize, values: &[Option<f64>]) -> FittedSeasonalNaive {
    SeasonalNaive { season_steps }.fit(&series(values.to_vec())).unwrap()
}

fn refit() -> impl Strategy<Value = Refit> {
    prop_oneof![Just(Refit::Never), (1..5_usize).prop_map(|k| Refit::EveryOrigins(NonZeroUsize::new(k).unwrap()))]
}

proptest! {
    #[test]
    fn a_backtest_does_not_see_the_future(
        values in values(40..80),
        other in vec(weighted(0.8, -1e6..1e6), 80),
        cut in 12..60_usize,
        season_steps in 1..10_usize,
        refit in refit(),
    ) {
        let backtest = Backtest {
            initial_steps: 10,
            stride_steps: 3,
            horizon: Horizon::steps(7),
            refit,
            levels: LEVELS.to_vec(),
            scale_season_steps: season_steps,
        };
        let model = SeasonalNaive { season_steps };
        let cut = cut.min(values.len());
        let mut changed = values.clone();
        changed[cut..].copy_from_slice(&other[cut..values.len()]);

        let report = backtest.run(&model, &series(values)).unwrap();
        let after = backtest.run(&model, &series(changed)).unwrap();
        prop_assert_eq!(report.mase_scale, after.mase_scale);
        for (origin, after) in report.origins.iter().zip(&after.origins) {
            if origin.origin <= cut {
                prop_assert_eq!(&origin.forecast, &after.forecast, "origin {}", origin.origin);
            }
            if origin.origin + 7 <= cut {
                prop_assert_eq!(&origin.scores, &after.scores, "origin {}", origin.origin);
            }
        }
    }

    #[test]
    fn quantiles_never_cross_and_hold_the_point(values in values(0..60), season_steps in 1..12_usize) {
        let forecast = fitted(season_steps, &values).predict(Horizon::steps(30), &LEVELS);
        for (row, &point) in forecast.quantiles().rows().into_iter().zip(forecast.point()) {
            prop_assert!(row.iter().is_sorted(), "{row}");
            prop_assert_eq!(row[2], point);
        }
    }

    #[test]
    fn the_spread_does_not_shrink_with_the_horizon(values in vec(-1e6..1e6, 1..60), season_steps in 1..12_usize) {
        let values: Vec<Option<f64>> = values.into_iter().map(Some).collect();
        let forecast = fitted(season_steps, &values).predict(Horizon::steps(36), &[0.1, 0.9]);
        let width: Vec<f64> = forecast.quantiles().rows().into_iter().map(|row| row[1] - row[0]).collect();
        prop_assert!(width.windows(2).all(|pair| pair[1] >= pair[0] - 1e-6), "{width:?}");
    }

    #[test]
    fn updating_points_where_refitting_does(values in values(30..60), known in 12..30_usize, season_steps in 1..12_usize) {
        let mut updated = fitted(season_steps, &values[..known]);
        let rest: Vec<f64> = values[known..].iter().map(|value| value.unwrap_or(f64::NAN)).collect();
        updated.update(&rest);
        let refitted = fitted(season_steps, &values);
        let horizon = Horizon::steps(2 * season_steps);
        prop_assert_eq!(updated.predict(horizon, &[]), refitted.predict(horizon, &[]));
    }

    #[test]
    fn gaps_in_a_periodic_series_change_nothing(
        season in vec(-1e6..1e6, 1..8),
        measured in vec(any::<bool>(), 64),
    ) {
        // The first season is whole, after it any value may be missing.
        let steps = season.len();
        let values: Vec<Option<f64>> =
            (0..64).map(|index| (index < steps || measured[index]).then(|| season[index % steps])).collect();
        let forecast = fitted(steps, &values).predict(Horizon::steps(2 * steps), &LEVELS);
        for (step, row) in forecast.quantiles().rows().into_iter().enumerate() {
            prop_assert!(row.iter().all(|&quantile| quantile == season[(64 + step) % steps]));
        }
    }

    #[test]
    fn a_snapshot_predicts_what_the_model_does(values in values(0..40), season_steps in 1..12_usize, next in -1e6..1e6) {
        let mut model = fitted(season_steps, &values);
        let json = serde_json::to_string(&model).unwrap();
        let mut restored: FittedSeasonalNaive = serde_json::from_str(&json).unwrap();
        model.update(&[next]);
        restored.update(&[next]);
        let horizon = Horizon::steps(20);
        prop_assert_eq!(model.predict(horizon, &LEVELS), restored.predict(horizon, &LEVELS));
    }

    #[test]
    fn a_series_survives_its_file(values in values(0..20), start in -1_000_000..1_000_000_i64, step in 1..1_000_000_i64) {
        let series = Series::from_options(start, step, values).unwrap();
        let json = serde_json::to_string(&series).unwrap();
        prop_assert_eq!(serde_json::from_str::<Series>(&json).unwrap(), series);
    }

    #[test]
    fn the_sample_quantile_has_the_least_pinball_loss(values in vec(-1e3..1e3, 5..40), shift in -50.0..50.0, level in 0.05..0.95) {
        let mut ascending = values.clone();
        ascending.sort_by(f64::total_cmp);
        // Any value between the two order statistics around `level * n` is a minimiser.
        let best = ascending[(level * values.len() as f64) as usize];
        let loss = |quantile: f64| metrics::pinball(&values, &vec![quantile; values.len()], level).unwrap();
        prop_assert!(loss(best) <= loss(best + shift) + 1e-9);
    }

    #[test]
    fn ratios_do_not_depend_on_the_unit(pairs in vec((1.0..1e3, 1.0..1e3), 1..30), unit in 0.1..10.0) {
        let (actual, point): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let scaled = |values: &[f64]| values.iter().map(|value| value * unit).collect::<Vec<f64>>();
        let close = |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() < 1e-9;
        prop_assert!(close(metrics::wape(&actual, &point), metrics::wape(&scaled(&actual), &scaled(&point))));
        prop_assert!(close(metrics::smape_percent(&actual, &point), metrics::smape_percent(&scaled(&actual), &scaled(&point))));
        prop_assert!(close(metrics::mase(&actual, &point, 3.0), metrics::mase(&scaled(&actual), &scaled(&point), 3.0 * unit)));
    }
}
