//! Distribution of completion times.

use super::axis::{AxisScale, PlotPanel, Tick, log_time_ticks};
use super::canvas::{Canvas, text_width};
use super::figure::Figure;
use super::ink::Ink;
use super::labels;
use crate::stats::quantile;

/// Completion times under one policy.
#[derive(Clone, Debug)]
pub struct CdfSeries {
    /// Name of the policy.
    pub name: String,
    /// Index of its colour.
    pub color: usize,
    /// Completion times, seconds, in any order.
    pub jct_secs: Vec<f64>,
}

const HEIGHT: f64 = 380.0;
/// Points of a curve at most; more cannot be seen.
const POINTS: usize = 400;

/// Empirical distribution of completion times, time on a logarithmic axis, one curve a policy.
pub fn cdf(series: &[CdfSeries]) -> Figure {
    let mut curves: Vec<(&CdfSeries, Vec<f64>)> = series
        .iter()
        .map(|series| {
            let mut sorted: Vec<f64> = series.jct_secs.iter().map(|secs| secs.max(1.0)).collect();
            sorted.sort_by(f64::total_cmp);
            (series, sorted)
        })
        .filter(|(_, sorted)| !sorted.is_empty())
        .collect();
    let low = curves.iter().map(|(_, sorted)| sorted[0]).fold(f64::INFINITY, f64::min);
    let high = curves.iter().map(|(_, sorted)| sorted[sorted.len() - 1]).fold(1.0, f64::max);
    let low = if low.is_finite() { low } else { 1.0 };
    let panel = PlotPanel::inside(HEIGHT, 58.0, 16.0, 34.0, 52.0);
    let x = AxisScale::log((low, high), panel.x());
    let y = AxisScale::linear((0.0, 1.0), panel.y());
    Canvas::figure(super::WIDTH, HEIGHT, "Distribution of job completion times", |canvas| {
        let percent = |share: f64| Tick { value: share, label: format!("{:.0} %", share * 100.0) };
        panel.y_axis(canvas, y, &[0.0, 0.25, 0.5, 0.75, 0.9, 1.0].map(percent), "jobs complete");
        panel.x_axis(canvas, x, &log_time_ticks(low, high), "after submission (logarithmic)");
        // The first in the table is drawn last, on top.
        for (series, sorted) in curves.iter().rev() {
            canvas.line(&points(sorted, x, y), Ink::Series(series.color), 2.2);
        }
        // From left to right in the picture is from top to bottom in the legend.
        curves.sort_by(|a, b| quantile(&a.1, 0.5).unwrap_or(0.0).total_cmp(&quantile(&b.1, 0.5).unwrap_or(0.0)));
        let entries: Vec<(Ink, &str)> =
            curves.iter().map(|(series, _)| (Ink::Series(series.color), series.name.as_str())).collect();
        let width = entries.iter().map(|(_, name)| text_width(name)).fold(0.0, f64::max) + 34.0;
        let top = panel.bottom - labels::stack_height(entries.len()) - 10.0;
        let corner = (panel.right - width - 6.0, top - 6.0);
        canvas.rect(corner, (panel.right, panel.bottom - 2.0), Ink::Page, 0.8);
        labels::stack(canvas, panel.right - width, top, &entries);
    })
}

fn points(sorted: &[f64], x: AxisScale, y: AxisScale) -> Vec<(f64, f64)> {
    let n = sorted.len();
    if n > POINTS {
        let at = |k: usize| {
            let q = k as f64 / POINTS as f64;
            (x.at(quantile(sorted, q).unwrap_or(0.0)), y.at(q))
        };
        return (0..=POINTS).map(at).collect();
    }
    let steps = sorted.iter().enumerate().flat_map(|(k, &secs)| {
        let before = y.at(k as f64 / n as f64);
        [(x.at(secs), before), (x.at(secs), y.at((k + 1) as f64 / n as f64))]
    });
    steps.chain([(x.at(f64::MAX), y.at(1.0))]).collect()
}
