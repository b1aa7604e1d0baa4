//! Performance profiles: what share of runs is better than the reference by a factor.

use super::axis::{AxisScale, PlotPanel, Tick, linear_ticks};
use super::canvas::{Canvas, text_width};
use super::figure::Figure;
use super::ink::Ink;
use super::labels;
use crate::stats::Estimate;

/// The profile of one policy.
#[derive(Clone, Debug)]
pub struct ProfileSeries {
    /// Name of the policy.
    pub name: String,
    /// Index of its colour.
    pub color: usize,
    /// Share of runs above each threshold.
    pub shares: Vec<Estimate>,
}

/// More bands than these would hide each other and are left out.
pub const PROFILE_MOST_BANDS: usize = 4;

const HEIGHT: f64 = 340.0;

/// Share of runs with a score above a threshold, thresholds ascending, with pointwise intervals as
/// bands where there are few.
pub fn performance_profiles(reference: &str, thresholds: &[f64], series: &[ProfileSeries]) -> Figure {
    let entries: Vec<(Ink, &str)> =
        series.iter().map(|series| (Ink::Series(series.color), series.name.as_str())).collect();
    let width = entries.iter().map(|(_, name)| text_width(name)).fold(0.0, f64::max) + 34.0;
    let panel = PlotPanel::inside(HEIGHT, 58.0, width + 22.0, 34.0, 52.0);
    let (low, high) = (thresholds.first().copied().unwrap_or(0.0), thresholds.last().copied().unwrap_or(1.0));
    let x = AxisScale::linear((low, high), panel.x());
    let y = AxisScale::linear((0.0, 1.0), panel.y());
    Canvas::figure(super::WIDTH, HEIGHT, "Performance profiles", |canvas| {
        let percent = |share: f64| Tick { value: share, label: format!("{:.0} %", share * 100.0) };
        panel.y_axis(canvas, y, &[0.0, 0.25, 0.5, 0.75, 1.0].map(percent), "runs");
        let name = format!("times faster than {reference} on the same seed, at least");
        panel.x_axis(
            canvas,
            x,
            &linear_ticks(low, high, 7, |value| format!("{}×", (value * 100.0).round() / 100.0)),
            &name,
        );
        if x.contains(1.0) {
            canvas.line(&[(x.at(1.0), panel.top), (x.at(1.0), panel.bottom)], Ink::Muted, 1.4);
        }
        let bands = series.len() <= PROFILE_MOST_BANDS;
        for series in series.iter().rev() {
            // A share holds from its threshold to the next: steps, not slopes.
            let edge = |of: fn(&Estimate) -> f64| {
                let levels = thresholds.windows(2).zip(&series.shares);
                let steps = levels.flat_map(|(ends, share)| [ends[0], ends[1]].map(|tau| (x.at(tau), y.at(of(share)))));
                steps.collect::<Vec<_>>()
            };
            if bands {
                let mut band = edge(|share| share.ci.map_or(share.value, |ci| ci.low));
                band.extend(edge(|share| share.ci.map_or(share.value, |ci| ci.high)).into_iter().rev());
                canvas.area(&band, Ink::Series(series.color), 0.13);
            }
            canvas.line(&edge(|share| share.value), Ink::Series(series.color), 2.2);
        }
        labels::stack(canvas, panel.right + 22.0, panel.top, &entries);
    })
}
