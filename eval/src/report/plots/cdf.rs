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
    /// Distribution of the completion times.
    pub times: CompletionTimes,
}

const HEIGHT: f64 = 380.0;
/// Points of a curve at most; more cannot be seen.
const POINTS: usize = 400;

/// Distribution of completion times, reduced to what a curve shows of it.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletionTimes {
    /// All times in order, or the quantiles from 0 to 1 in equal steps; seconds, at least 1.
    secs: Vec<f64>,
    reduced: bool,
}

impl CompletionTimes {
    /// Distribution of completion times, seconds, in any order.
    pub fn of(mut jct_secs: Vec<f64>) -> Self {
        jct_secs.iter_mut().for_each(|secs| *secs = secs.max(1.0));
        jct_secs.sort_by(f64::total_cmp);
        if jct_secs.len() <= POINTS {
            return Self { secs: jct_secs, reduced: false };
        }
        let at = |k: usize| quantile(&jct_secs, k as f64 / POINTS as f64).unwrap_or(0.0);
        Self { secs: (0..=POINTS).map(at).collect(), reduced: true }
    }

    /// Whether no job is complete.
    pub fn is_empty(&self) -> bool {
        self.secs.is_empty()
    }

    fn ends(&self) -> Option<(f64, f64)> {
        Some((*self.secs.first()?, *self.secs.last()?))
    }

    fn median(&self) -> f64 {
        match self.reduced {
            true => self.secs[POINTS / 2],
            false => quantile(&self.secs, 0.5).unwrap_or(0.0),
        }
    }
}

/// Empirical distribution of completion times, time on a logarithmic axis, one curve a policy.
pub fn cdf(series: &[CdfSeries]) -> Figure {
    let mut curves: Vec<&CdfSeries> = series.iter().filter(|series| !series.times.is_empty()).collect();
    let ends = || curves.iter().filter_map(|series| series.times.ends());
    let low = ends().map(|(low, _)| low).fold(f64::INFINITY, f64::min);
    let high = ends().map(|(_, high)| high).fold(1.0, f64::max);
    let low = if low.is_finite() { low } else { 1.0 };
    let panel = PlotPanel::inside(HEIGHT, 58.0, 16.0, 34.0, 52.0);
    let x = AxisScale::log((low, high), panel.x());
    let y = AxisScale::linear((0.0, 1.0), panel.y());
    Canvas::figure(super::WIDTH, HEIGHT, "Distribution of job completion times", |canvas| {
        let percent = |share: f64| Tick { value: share, label: format!("{:.0} %", share * 100.0) };
        panel.y_axis(canvas, y, &[0.0, 0.25, 0.5, 0.75, 0.9, 1.0].map(percent), "jobs complete");
        panel.x_axis(canvas, x, &log_time_ticks(low, high), "after submission (logarithmic)");
        // The first in the table is drawn last, on top.
        for series in curves.iter().rev() {
            canvas.line(&points(&series.times, x, y), Ink::Series(series.color), 2.2);
        }
        // From left to right in the picture is from top to bottom in the legend.
        curves.sort_by(|a, b| a.times.median().total_cmp(&b.times.median()));
        let entries: Vec<(Ink, &str)> =
            curves.iter().map(|series| (Ink::Series(series.color), series.name.as_str())).collect();
        let width = entries.iter().map(|(_, name)| text_width(name)).fold(0.0, f64::max) + 34.0;
        let top = panel.bottom - labels::stack_height(entries.len()) - 10.0;
        let corner = (panel.right - width - 6.0, top - 6.0);
        canvas.rect(corner, (panel.right, panel.bottom - 2.0), Ink::Page, 0.8);
        labels::stack(canvas, panel.right - width, top, &entries);
    })
}

fn points(times: &CompletionTimes, x: AxisScale, y: AxisScale) -> Vec<(f64, f64)> {
    let secs = times.secs.iter().enumerate();
    if times.reduced {
        return secs.map(|(k, &secs)| (x.at(secs), y.at(k as f64 / POINTS as f64))).collect();
    }
    let n = times.secs.len();
    let steps = secs.flat_map(|(k, &secs)| {
        let before = y.at(k as f64 / n as f64);
        [(x.at(secs), before), (x.at(secs), y.at((k + 1) as f64 / n as f64))]
    });
    steps.chain([(x.at(f64::MAX), y.at(1.0))]).collect()
}
