//! One self-contained page about a study.

use goodput_forecast::BacktestReport;

use super::{LendingRow, ScoreRow, Study};
use crate::report::plots::{Figure, THEME_CSS, calibration, fan, frontier};

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
    let mut body = format!("<h1>{}</h1><p>{}</p>", escape(title), escape(&study.about()));
    let rows = study.scores(reports);
    body += &scores(&rows);
    if let Some(last) = reports.first().and_then(|(_, report)| study.fan(report)) {
        figure(&mut body, &fan(&last), "The last origin: bands hold 50 % and 90 %.");
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
    figure(&mut body, &calibration(&curves), &caption);
    if !lending.is_empty() {
        body += &lent(lending);
        figure(
            &mut body,
            &frontier(&kinds(lending)),
            "Lending: more lent at fewer violated steps is up and to the left.",
        );
    }
    body += &format!(
        "<h2>How this page was made</h2><pre>{}</pre><p>{}</p><details><summary>Configuration</summary><pre>{}</pre></details>",
        escape(origin.command),
        escape(origin.program),
        escape(origin.config.trim_end())
    );
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{}</title><style>{THEME_CSS}{}\
         body{{background:var(--page);color:var(--ink);font-family:system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}\
         table{{border-collapse:collapse;font-variant-numeric:tabular-nums}}td,th{{padding:.2rem .8rem;text-align:right}}\
         td:first-child,th:first-child{{text-align:left}}tbody+tbody tr:first-child td{{padding-top:.9rem}}\
         figcaption{{font-size:.9rem}}pre{{overflow-x:auto}}</style>{body}</html>\n",
        escape(title),
        Figure::page_css()
    )
}

fn figure(body: &mut String, figure: &Figure, caption: &str) {
    *body += &format!("<figure>{}<figcaption>{caption}</figcaption></figure>", figure.inline());
}

/// The first forecaster, and of the others those of least CRPS over the whole horizon.
fn sharpest<'a>(rows: &[ScoreRow], reports: &'a [(String, BacktestReport)]) -> Vec<&'a (String, BacktestReport)> {
    // The rows of the longest distance come last.
    let crps = |name: &str| rows.iter().rev().find(|row| row.model == name).and_then(|row| row.crps);
    let mut others: Vec<_> = reports.iter().skip(1).collect();
    others.sort_by(|a, b| crps(&a.0).unwrap_or(f64::MAX).total_cmp(&crps(&b.0).unwrap_or(f64::MAX)));
    reports.iter().take(1).chain(others.into_iter().take(MOST_CURVES - 1)).collect()
}

fn scores(rows: &[ScoreRow]) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.3}"));
    let compared = rows.iter().any(|row| row.difference.is_some());
    let row = |row: &ScoreRow| {
        let difference = row.difference.map_or_else(String::new, |(low, high)| format!("{low:.3} to {high:.3}"));
        let last = if compared { format!("<td>{difference}</td>") } else { String::new() };
        format!(
            "<tr><td>{}</td><td>{} h</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>{last}</tr>",
            escape(&row.model),
            row.hours,
            number(row.mase),
            number(row.wape),
            number(row.crps),
            number(row.coverage)
        )
    };
    let groups: String = rows
        .chunk_by(|a, b| a.hours == b.hours)
        .map(|group| format!("<tbody>{}</tbody>", group.iter().map(row).collect::<String>()))
        .collect();
    let last = if compared { "<th>MAE minus the first, 95 %</th>" } else { "" };
    format!(
        "<h2>Scores</h2><table><thead><tr><th>forecaster</th><th>ahead</th><th>MASE</th><th>WAPE</th><th>CRPS</th>\
         <th>below the 0.9 quantile</th>{last}</tr></thead>{groups}</table>\
         <p>MASE is the mean absolute error over the error of repeating the value of one day before, on \
         the series before the first origin. A value below 1 beats that rule; compare long horizons with the naive rows.</p>"
    )
}

fn lent(rows: &[LendingRow]) -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let row = |row: &LendingRow| {
        let score = &row.score;
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&row.lender),
            percent(score.lent),
            percent(score.violated),
            percent(score.shortfall),
            percent(score.churn)
        )
    };
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<h2>Lending</h2><table><tr><th>lender</th><th>lent</th><th>violated</th><th>missing</th><th>churn</th></tr>{rows}</table>"
    )
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

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
