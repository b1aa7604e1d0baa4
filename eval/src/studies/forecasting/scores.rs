//! Scores of the forecasters of a study, over the distances that matter.

use goodput_forecast::{BacktestReport, block_bootstrap};
use serde::Serialize;

use super::Study;

/// Scores of one forecaster over one distance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoreRow {
    /// Name of the forecaster.
    pub model: String,
    /// Hours ahead that are scored.
    pub hours: f64,
    /// Mean absolute scaled error.
    pub mase: Option<f64>,
    /// Weighted absolute percentage error.
    pub wape: Option<f64>,
    /// Twice the mean pinball loss over the levels, relative to the mean load: about the CRPS.
    pub crps: Option<f64>,
    /// Coverage of the 0.9 quantile.
    pub coverage: Option<f64>,
    /// 95 % interval of its mean absolute error minus that of the default, by blocks of a day;
    /// `None` for the default itself.
    pub difference: Option<(f64, f64)>,
}

/// Means of scores over the series of a panel: for each model and distance that all of them have, in the order of the
/// first series. Intervals of differences have no mean.
pub fn mean_rows(panel: &[Vec<ScoreRow>]) -> Vec<ScoreRow> {
    let Some(first) = panel.first() else { return vec![] };
    let mean = |row: &ScoreRow, of: fn(&ScoreRow) -> Option<f64>| -> Option<f64> {
        let is_like = |other: &&ScoreRow| other.model == row.model && other.hours == row.hours;
        let values: Option<Vec<f64>> = panel.iter().map(|rows| of(rows.iter().find(is_like)?)).collect();
        values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
    };
    let of = |row: &ScoreRow| ScoreRow {
        model: row.model.clone(),
        hours: row.hours,
        mase: mean(row, |row| row.mase),
        wape: mean(row, |row| row.wape),
        crps: mean(row, |row| row.crps),
        coverage: mean(row, |row| row.coverage),
        difference: None,
    };
    first.iter().map(of).collect()
}

impl Study {
    /// Scores over the first hour, the first six and the whole horizon, each forecaster against the
    /// first one.
    pub fn scores(&self, reports: &[(String, BacktestReport)]) -> Vec<ScoreRow> {
        let per_hour = self.steps_per_hour();
        let whole = self.backtest.horizon.get();
        let mut bands: Vec<usize> = [1.0, 6.0].iter().map(|hours| (hours * per_hour).round() as usize).collect();
        bands.retain(|&steps| steps >= 1 && steps < whole);
        bands.push(whole);
        let day_of_origins = (self.day_steps / self.backtest.stride_steps).max(1);
        let mut rows = Vec::new();
        for steps in bands {
            let first = reports.first().map(|(_, report)| losses(report, steps)).unwrap_or_default();
            for (index, (name, report)) in reports.iter().enumerate() {
                let scores = report.scores_within(steps);
                let mean_load =
                    scores.mae.zip(scores.wape).filter(|(_, wape)| *wape > 0.0).map(|(mae, wape)| mae / wape);
                let pinball: Option<Vec<f64>> = scores.levels.iter().map(|level| level.pinball).collect();
                let crps = pinball
                    .zip(mean_load)
                    .map(|(losses, mean)| 2.0 * losses.iter().sum::<f64>() / losses.len() as f64 / mean);
                let differences: Vec<f64> = losses(report, steps).iter().zip(&first).map(|(a, b)| a - b).collect();
                rows.push(ScoreRow {
                    model: name.clone(),
                    hours: steps as f64 / per_hour,
                    mase: scores.mase,
                    wape: scores.wape,
                    crps,
                    coverage: scores.levels.iter().find(|level| level.level == 0.9).and_then(|level| level.coverage),
                    difference: if index == 0 {
                        None
                    } else {
                        block_bootstrap(&differences, day_of_origins, 1000, 0.95)
                    },
                });
            }
        }
        rows
    }

    /// Sentence that says to which error MASE is relative.
    pub fn about_mase(&self) -> String {
        format!(
            "MASE is the mean absolute error relative to that of the value of one {} before, over the steps before the \
             first origin: below 1 is better than that rule was there.",
            self.season.name()
        )
    }
}

/// Mean absolute error of each origin over its first `steps`; 0 where nothing was measured.
fn losses(report: &BacktestReport, steps: usize) -> Vec<f64> {
    let loss = |origin: &goodput_forecast::OriginReport| {
        let pairs = origin.actual.values().to_vec().into_iter().zip(origin.forecast.point().to_vec()).take(steps);
        let errors: Vec<f64> = pairs.filter(|(y, _)| !y.is_nan()).map(|(y, f)| (y - f).abs()).collect();
        if errors.is_empty() { 0.0 } else { errors.iter().sum::<f64>() / errors.len() as f64 }
    };
    report.origins.iter().map(loss).collect()
}
