//! Real load series, against figures that were not made with this crate.
#![expect(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use goodput_forecast::{Backtest, Fit, ForecastScores, Horizon, Predict, Refit, SeasonalNaive, Series, metrics};
use serde_json::Value;

/// Text of a file of public data or reference results.
fn shared(path: &str) -> String {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{} is needed by this test: {error}", path.display()))
}

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

/// Electricity demand in megawatts every 30 minutes: 12 weeks.
fn taylor() -> Series {
    let text = shared("data/load/taylor_halfhourly_MW.csv");
    let values = rows(&text).map(|row| Some(row[0].parse().unwrap()));
    Series::from_options(0, 30 * 60 * 1000, values).unwrap()
}

#[track_caller]
fn assert_close(what: &str, actual: Option<f64>, expected: f64, tolerance: f64) {
    let actual = actual.unwrap_or_else(|| panic!("{what} is missing"));
    assert!((actual - expected).abs() <= tolerance * expected.abs(), "{what}: {actual} is not {expected}");
}

/// Figures of `taylor_seasonal_naive.py` under numpy 2.4.6, 12 digits, in the order of its output.
#[track_caller]
fn assert_numpy(scores: &ForecastScores, expected: [f64; 9]) {
    let [low, high] = &scores.levels[..] else { panic!("two levels") };
    let actual = [
        ("mae", scores.mae),
        ("rmse", scores.rmse),
        ("wape", scores.wape),
        ("smape", scores.smape_percent),
        ("mase", scores.mase),
        ("pinball at 0.1", low.pinball),
        ("pinball at 0.9", high.pinball),
        ("coverage at 0.1", low.coverage),
        ("coverage at 0.9", high.coverage),
    ];
    for ((what, actual), expected) in actual.into_iter().zip(expected) {
        assert_close(what, actual, expected, 1e-10);
    }
}

#[test]
fn taylor_two_weeks_ahead_is_as_numpy_has_it() {
    let series = taylor();
    let season_steps = series.steps_per_week().unwrap();
    let history = series.slice(0..3360).unwrap();
    let future = series.slice(3360..4032).unwrap();
    let model = SeasonalNaive { season_steps }.fit(&history).unwrap();
    let forecast = model.predict(Horizon::steps(672), &[0.1, 0.9]);
    let scores =
        ForecastScores::pooled([(future.values(), &forecast)], metrics::seasonal_naive_mae(&history, season_steps));
    assert_numpy(
        &scores,
        [
            752.480654762,
            878.792897585,
            0.0251794532809,
            2.59684716491,
            1.29974439234,
            186.60871743,
            102.36320324,
            0.00892857142857,
            0.895833333333,
        ],
    );
}

#[test]
fn taylor_backtest_with_refits_is_as_numpy_has_it() {
    let series = taylor();
    let season_steps = series.steps_per_day().unwrap();
    let backtest = Backtest {
        initial_steps: 3360,
        stride_steps: 24,
        horizon: Horizon::steps(48),
        refit: Refit::EveryOrigins(NonZeroUsize::MIN),
        levels: vec![0.1, 0.9],
        scale_season_steps: season_steps,
    };
    let report = backtest.run(&SeasonalNaive { season_steps }, &series).unwrap();
    assert_eq!(report.origins.len(), 27);
    assert_numpy(
        &report.scores,
        [
            1870.5625,
            3105.6048201,
            0.0624053959678,
            6.34450612708,
            1.00841722699,
            551.472561728,
            733.383765432,
            0.121141975309,
            0.899691358025,
        ],
    );
}

/// One of the six series on which published forecasting packages were measured, with its split.
struct Reference {
    name: &'static str,
    series: Series,
    split: Value,
}

impl Reference {
    fn load(name: &'static str) -> Self {
        let mut splits: Value = serde_json::from_str(&shared("reference/forecast/splits.json")).unwrap();
        let split = splits[name].take();
        let text = shared(&format!("reference/forecast/{name}.csv"));
        let values = rows(&text).map(|row| (row[2] == "1").then(|| row[1].parse().unwrap()));
        let step_millis = split["step_minutes"].as_i64().unwrap() * 60_000;
        let series = Series::from_options(0, step_millis, values).unwrap();
        Self { name, series, split }
    }

    fn steps(&self, key: &str) -> usize {
        self.split[key].as_u64().unwrap_or_else(|| panic!("{key} of {}", self.name)) as usize
    }

    /// Checks seasonal naive over `season` against the rows of `method` in the reference results,
    /// which have five digits.
    fn check(&self, season: &str, method: &str) {
        let backtest = Backtest {
            initial_steps: self.steps("test_start"),
            stride_steps: self.steps("stride"),
            horizon: Horizon::steps(self.steps("horizon")),
            refit: Refit::Never,
            levels: vec![],
            scale_season_steps: self.steps("season"),
        };
        let model = SeasonalNaive { season_steps: self.steps(season) };
        let report = backtest.run(&model, &self.series).unwrap();
        assert_eq!(report.origins.len(), self.steps("n_test_origins"), "{}", self.name);

        let results = shared("reference/forecast/results.csv");
        let mut bands = 0;
        for row in rows(&results).filter(|row| row[..3] == [self.name, method, "all"]) {
            let hours: usize = row[3].trim_end_matches('h').parse().unwrap();
            let scores = report.scores_within(hours * self.steps("season") / 24);
            // The reference scales by the window before its calibration days.
            let scale = self.split["mase_denominator"].as_f64().unwrap();
            let figures =
                [scores.mae, scores.mae.map(|mae| mae / scale), scores.wape, scores.smape_percent, scores.rmse];
            for (column, figure) in figures.into_iter().enumerate() {
                let what = format!("{} {method} {hours} h, column {}", self.name, 5 + column);
                assert_close(&what, figure, row[5 + column].parse().unwrap(), 1e-4);
            }
            bands += 1;
        }
        assert_eq!(bands, 3, "bands of {method} on {}", self.name);
    }
}

const REFERENCE: [&str; 6] = ["sg_client5", "sg_small", "sg_large", "twitter", "taxi", "dlrm_gpu"];

#[test]
fn daily_seasonal_naive_scores_as_in_the_reference_results() {
    for name in REFERENCE {
        Reference::load(name).check("season", "snaive_day");
    }
}

#[test]
fn weekly_seasonal_naive_scores_as_in_the_reference_results() {
    // Not the four series with gaps: there the reference repeats values that were filled from the
    // day before.
    for name in ["taxi", "dlrm_gpu"] {
        Reference::load(name).check("week", "snaive_week");
    }
}

#[test]
fn gaps_are_filled_and_mase_is_scaled_as_in_the_reference() {
    for name in REFERENCE {
        let reference = Reference::load(name);
        let season_steps = reference.steps("season");
        let filled = reference.series.fill_gaps(season_steps);
        let text = shared(&format!("reference/forecast/{name}.csv"));
        let expected: Vec<Option<f64>> = rows(&text).map(|row| Some(row[3].parse().unwrap())).collect();
        assert_eq!(filled.iter().collect::<Vec<_>>(), expected, "{name}");

        // Of the series with its gaps, not of the filled one: a filled gap has an error of 0, which
        // the reference left out.
        let history = reference.series.slice(0..reference.steps("cal_start")).unwrap();
        let scale = metrics::seasonal_naive_mae(&history, season_steps);
        assert_close(name, scale, reference.split["mase_denominator"].as_f64().unwrap(), 1e-12);
    }
}
