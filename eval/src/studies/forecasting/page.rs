//! One self-contained page about a study.

use goodput_forecast::BacktestReport;

use super::{LendingRow, ScoreRow, Study};
use crate::report::plots::{calibration, fan, frontier};
use crate::report::text_page::{PageCell, PageTable, TextPage};

/// Curves of a picture at most.
const MOST_CURVES: usize = 6;

/// Origin of the figures on the page of a study.
#[derive(Clone, Copy, Debug)]
pub struct StudyOrigin<'a> {
    /// Command line that made the page.
    pub command: &'a str,
    /// Version of the program, with its commit where that is known.
    pub program: &'a str,
    /// The study as TOML, with every default filled in.
    pub config: &'a str,
}

/// Page of a study as HTML: scores, fan chart, calibration, lending, and the origin of the figures.
/// Equal studies and origins give equal bytes.
pub fn page(
    title: &str,
    study: &Study,
    reports: &[(String, BacktestReport)],
    lending: &[LendingRow],
    origin: StudyOrigin<'_>,
) -> String {
    let mut page = TextPage::new(title);
    page.verdict(&study.about());
    let rows = study.scores(reports);
    scores(&mut page, &rows);
    if let Some(last) = reports.first().and_then(|(_, report)| study.fan(report)) {
        page.figure(&fan(&last), "The last origin: bands hold 50 % and 90 %.");
    }
    let curves: Vec<(String, Vec<(f64, f64)>)> = sharpest(&rows, reports)
        .into_iter()
        .map(|(name, report)| {
            let levels = report.scores.levels.iter();
            (name.clone(), levels.filter_map(|level| Some((level.level, level.coverage?))).collect())
        })
        .collect();
    let which = if reports.len() > curves.len() { " Shown are the first and those of least CRPS." } else { "" };
    let caption = format!("Calibration: below the diagonal a quantile is exceeded too often.{which}");
    page.figure(&calibration(&curves), &caption);
    if !lending.is_empty() {
        lent(&mut page, lending);
        page.figure(&frontier(&kinds(lending)), "Lending: more lent at fewer violated steps is up and to the left.");
    }
    page.origin(origin.command, Some(origin.program), Some(origin.config));
    page.render()
}

/// The first forecaster, and of the others those of least CRPS over the whole horizon.
fn sharpest<'a>(rows: &[ScoreRow], reports: &'a [(String, BacktestReport)]) -> Vec<&'a (String, BacktestReport)> {
    // The rows of the longest distance come last.
    let crps = |name: &str| rows.iter().rev().find(|row| row.model == name).and_then(|row| row.crps);
    let mut others: Vec<_> = reports.iter().skip(1).collect();
    others.sort_by(|a, b| crps(&a.0).unwrap_or(f64::MAX).total_cmp(&crps(&b.0).unwrap_or(f64::MAX)));
    reports.iter().take(1).chain(others.into_iter().take(MOST_CURVES - 1)).collect()
}

fn scores(page: &mut TextPage, rows: &[ScoreRow]) {
    let number = |value: Option<f64>| PageCell::from(value.map_or_else(|| "–".into(), |value| format!("{value:.3}")));
    let compared = rows.iter().any(|row| row.difference.is_some());
    let heads = ["forecaster", "hours ahead", "MASE", "WAPE", "CRPS", "below the 0.9 quantile"];
    let last = compared.then_some("MAE minus the first, 95 %");
    let mut table = PageTable::new(heads.into_iter().chain(last), 1);
    for group in rows.chunk_by(|a, b| a.hours == b.hours) {
        table.begin_group();
        for row in group {
            let ahead = PageCell::from(row.hours.to_string());
            let mut cells = vec![row.model.as_str().into(), ahead, number(row.mase), number(row.wape)];
            cells.extend([number(row.crps), number(row.coverage)]);
            let difference = row.difference.map_or_else(String::new, |(low, high)| format!("{low:.3} to {high:.3}"));
            cells.extend(compared.then(|| PageCell::from(difference)));
            table.row(cells);
        }
    }
    page.heading("Scores");
    page.table(&table);
    page.note(
        "MASE is the mean absolute error over the error of repeating the value of one day before, on the series before \
         the first origin. A value below 1 beats that rule; compare long horizons with the naive rows.",
    );
}

fn lent(page: &mut TextPage, rows: &[LendingRow]) {
    let percent = |share: f64| PageCell::from(format!("{:.1} %", 100.0 * share));
    let mut table = PageTable::new(["lender", "lent", "violated", "missing", "churn"], 1);
    for LendingRow { lender, score } in rows {
        let shares = [score.lent, score.violated, score.shortfall, score.churn].map(percent);
        table.row([lender.as_str().into()].into_iter().chain(shares).collect());
    }
    page.heading("Lending");
    page.table(&table);
}

/// Curves by the first word of a lender's name.
fn kinds(rows: &[LendingRow]) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut curves: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for row in rows {
        let kind = row.lender.split([' ', ':']).next().unwrap_or_default();
        let point = (row.score.violated, row.score.lent);
        match curves.iter_mut().find(|curve| curve.0 == kind) {
            Some(curve) => curve.1.push(point),
            None => curves.push((kind.into(), vec![point])),
        }
    }
    curves
}
