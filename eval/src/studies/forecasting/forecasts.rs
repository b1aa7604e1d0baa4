//! Every forecast of a study as a table, in the form in which Nixtla's `cross_validation` gives it.

use goodput_datasets::store::{Column, Table, TextChoice, Values};
use goodput_forecast::BacktestReport;

use super::Study;

/// Table of all forecasts of `studies`: a row for each series, model, origin and step. `cutoff` is the last step that
/// was known, `ds` the step that is forecast, `y` what came (missing in a gap), `point` the median, and `q0.1` the
/// quantile of level 0.1. Times are dates where those of the series are, and else seconds. A table of one series has
/// no name, and `unique_id` is then empty.
pub fn forecasts(studies: &[(&Study, &[(String, BacktestReport)])]) -> Table {
    let (mut ids, mut models) = (Vec::new(), Vec::new());
    let (mut cutoffs, mut times, mut came, mut points) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let levels: Vec<f64> = studies
        .iter()
        .flat_map(|(_, reports)| reports.first())
        .flat_map(|(_, report)| report.origins.first())
        .map(|origin| origin.forecast.levels().to_vec())
        .next()
        .unwrap_or_default();
    let mut quantiles: Vec<Vec<Option<f64>>> = vec![Vec::new(); levels.len()];
    for (study, reports) in studies {
        for (model, report) in *reports {
            for origin in &report.origins {
                let cutoff = study.series.time_epoch_millis(origin.origin) - study.series.step_millis();
                let made = origin.forecast.quantiles();
                let rows = made.rows().into_iter().zip(origin.forecast.point().to_vec());
                for (step, (row, point)) in rows.enumerate() {
                    ids.push(study.id.clone());
                    models.push(model.clone());
                    cutoffs.push(Some(cutoff));
                    times.push(Some(study.series.time_epoch_millis(origin.origin + step)));
                    came.push(origin.actual.get(step));
                    points.push(point);
                    row.iter().zip(&mut quantiles).for_each(|(&value, column)| column.push(Some(value)));
                }
            }
        }
    }
    let dated = studies.iter().any(|(study, _)| study.dated);
    let time = |millis: Vec<Option<i64>>| if dated { Values::Moments(millis) } else { seconds(&millis) };
    let mut columns = vec![
        Column::new("unique_id", ids),
        Column::new("cutoff", time(cutoffs)),
        Column::new("ds", time(times)),
        Column::new("model", models.iter().map(String::as_str).collect::<TextChoice>()),
        Column::new("y", came),
        Column::new("point", points),
    ];
    columns.extend(levels.iter().zip(quantiles).map(|(level, values)| Column::new(format!("q{level}"), values)));
    Table::new(columns)
}

/// Whole seconds where all are whole.
fn seconds(millis: &[Option<i64>]) -> Values {
    if millis.iter().flatten().all(|at| at % 1000 == 0) {
        Values::Int64(millis.iter().map(|at| at.map(|at| at / 1000)).collect())
    } else {
        Values::Float64(millis.iter().map(|at| at.map(|at| at as f64 / 1e3)).collect())
    }
}
