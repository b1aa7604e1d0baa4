//! Pictures of forecasts: fan chart, calibration, lending frontier.

use super::axis::{AxisScale, PlotPanel, Tick, linear_ticks};
use super::canvas::{Canvas, text_width};
use super::figure::Figure;
use super::ink::Ink;
use super::labels::{self, Label};

/// Forecast at one origin, and the series that was observed after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fan {
    /// Known values before the origin, gaps as NaN.
    pub known: Vec<f64>,
    /// Observed values, with gaps as NaN.
    pub came: Vec<f64>,
    /// Median by step.
    pub median: Vec<f64>,
    /// Lower and upper quantiles by step, the widest band first.
    pub bands: Vec<(Vec<f64>, Vec<f64>)>,
    /// Steps in an hour.
    pub steps_per_hour: f64,
}

const HEIGHT: f64 = 340.0;
const SQUARE: f64 = 360.0;

/// Bands of quantiles around the median, with what was known and what came.
pub fn fan(fan: &Fan) -> Figure {
    let panel = PlotPanel::inside(HEIGHT, 62.0, 96.0, 34.0, 52.0);
    let all =
        || fan.known.iter().chain(&fan.came).chain(fan.bands.iter().flat_map(|band| band.0.iter().chain(&band.1)));
    let high = all().copied().filter(|y| y.is_finite()).fold(0.0, f64::max);
    let low = all().copied().filter(|y| y.is_finite()).fold(0.0, f64::min);
    let high = if high > low { high } else { low + 1.0 };
    let hours = |step: f64| step / fan.steps_per_hour.max(1e-9);
    let (before, after) = (hours(fan.known.len() as f64), hours(fan.median.len() as f64));
    let x = AxisScale::linear((-before, after.max(1e-9)), panel.x());
    let y = AxisScale::linear((low, high * 1.05), panel.y());
    Canvas::figure(super::WIDTH, HEIGHT, "Forecast with quantile bands", |canvas| {
        panel.y_axis(canvas, y, &linear_ticks(low, high * 1.05, 5, number), "load");
        panel.x_axis(canvas, x, &hour_ticks(-before, after), "hours from the origin");
        let ahead = |step: usize| x.at(hours(step as f64 + 1.0));
        for (lower, upper) in &fan.bands {
            let edge =
                |values: &[f64]| values.iter().enumerate().map(|(s, v)| (ahead(s), y.at(*v))).collect::<Vec<_>>();
            let mut band = edge(lower);
            band.extend(edge(upper).into_iter().rev());
            canvas.area(&band, Ink::Series(0), 0.18);
        }
        let known = fan.known.iter().enumerate().map(|(s, v)| (x.at(hours(s as f64 + 1.0) - before), *v));
        pieces(canvas, known, y, Ink::Text);
        pieces(canvas, fan.came.iter().enumerate().map(|(s, v)| (ahead(s), *v)), y, Ink::Text);
        let median: Vec<_> = fan.median.iter().enumerate().map(|(s, v)| (ahead(s), y.at(*v))).collect();
        if median.len() > 1 {
            canvas.line(&median, Ink::Series(0), 2.2);
        }
        let mark = |value: Option<&f64>, text: &str, ink| {
            value.filter(|v| v.is_finite()).map(|v| Label { y: y.at(*v), text: text.into(), ink })
        };
        let marks = [mark(fan.median.last(), "median", Ink::Series(0)), mark(fan.came.last(), "came", Ink::Text)];
        labels::beside(canvas, panel.right, marks.into_iter().flatten().collect(), panel.top, panel.bottom);
    })
}

/// Share of steps at or below each quantile, against its level; on the diagonal it is honest. One
/// curve a forecaster.
pub fn calibration(curves: &[(String, Vec<(f64, f64)>)]) -> Figure {
    let panel = PlotPanel::inside(SQUARE, 62.0, 380.0, 34.0, 52.0);
    let (x, y) = (AxisScale::linear((0.0, 1.0), panel.x()), AxisScale::linear((0.0, 1.0), panel.y()));
    let ticks = || [0.0, 0.25, 0.5, 0.75, 1.0].map(|value| Tick { value, label: number(value) });
    Canvas::figure(super::WIDTH, SQUARE, "Calibration", |canvas| {
        panel.y_axis(canvas, y, &ticks(), "share of steps at or below the quantile");
        panel.x_axis(canvas, x, &ticks(), "level of the quantile");
        canvas.line(&[(x.at(0.0), y.at(0.0)), (x.at(1.0), y.at(1.0))], Ink::Muted, 1.2);
        for (index, (_, points)) in curves.iter().enumerate() {
            let points: Vec<_> = points.iter().map(|(level, share)| (x.at(*level), y.at(*share))).collect();
            canvas.line(&points, Ink::Series(index), 2.0);
        }
        legend(canvas, &panel, curves.iter().map(|curve| curve.0.as_str()));
    })
}

/// Share lent against share of violated steps, one curve a lender; up and to the left is better.
pub fn frontier(curves: &[(String, Vec<(f64, f64)>)]) -> Figure {
    let panel = PlotPanel::inside(SQUARE, 62.0, 380.0, 34.0, 52.0);
    let most = curves.iter().flat_map(|curve| &curve.1).map(|point| point.0).fold(0.02, f64::max).min(0.2);
    let (x, y) = (AxisScale::linear((0.0, most), panel.x()), AxisScale::linear((0.0, 1.0), panel.y()));
    let percent = |value: f64| format!("{} %", number(value * 100.0));
    Canvas::figure(super::WIDTH, SQUARE, "Lending frontier", |canvas| {
        panel.y_axis(canvas, y, &linear_ticks(0.0, 1.0, 5, percent), "share of the fleet that is lent");
        panel.x_axis(canvas, x, &linear_ticks(0.0, most, 6, percent), "steps that needed more than was kept");
        for (index, (_, points)) in curves.iter().enumerate() {
            let points: Vec<_> = points
                .iter()
                .filter(|point| point.0 <= most)
                .map(|(violated, lent)| (x.at(*violated), y.at(*lent)))
                .collect();
            if points.len() > 1 {
                canvas.line(&points, Ink::Series(index), 2.0);
            }
            for point in points {
                canvas.dot(point, 3.0, Ink::Series(index));
            }
        }
        legend(canvas, &panel, curves.iter().map(|curve| curve.0.as_str()));
    })
}

/// Halves of days where there are days, round numbers of hours else.
fn hour_ticks(low: f64, high: f64) -> Vec<Tick> {
    const HALF_DAY: f64 = 12.0;
    if !(24.0..=240.0).contains(&(high - low)) {
        return linear_ticks(low, high, 8, number);
    }
    let (from, to) = ((low / HALF_DAY).ceil() as i32, (high / HALF_DAY).floor() as i32);
    (from..=to).map(|n| f64::from(n) * HALF_DAY).map(|value| Tick { value, label: number(value) }).collect()
}

/// A curve that is interrupted where a value is missing.
fn pieces(canvas: &Canvas<'_>, points: impl Iterator<Item = (f64, f64)>, y: AxisScale, ink: Ink) {
    let mut piece: Vec<(f64, f64)> = Vec::new();
    for (x, value) in points.chain([(0.0, f64::NAN)]) {
        if value.is_finite() {
            piece.push((x, y.at(value)));
        } else {
            if piece.len() > 1 {
                canvas.line(&piece, ink, 1.4);
            }
            piece.clear();
        }
    }
}

fn legend<'a>(canvas: &Canvas<'_>, panel: &PlotPanel, names: impl Iterator<Item = &'a str>) {
    let entries: Vec<(Ink, &str)> = names.enumerate().map(|(index, name)| (Ink::Series(index), name)).collect();
    debug_assert!(entries.iter().all(|(_, name)| text_width(name) < 340.0), "names fit beside the panel");
    labels::stack(canvas, panel.right + 24.0, panel.top, &entries);
}

fn number(value: f64) -> String {
    format!("{}", (value * 1000.0).round() / 1000.0)
}
