//! Learning curves of trained policies.

use super::axis::{AxisScale, PlotPanel, linear_ticks};
use super::canvas::{Canvas, text_width};
use super::figure::Figure;
use super::ink::Ink;
use super::labels::{self, Label};
use crate::stats::Interval;

/// One evaluation during training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Progress of training, in the unit of [`LearningCurve::x_name`].
    pub x: f64,
    /// Mean over evaluation seeds.
    pub mean: f64,
    /// Interval of the mean over seeds.
    pub ci: Option<Interval>,
}

/// The course of training against what heuristics reach.
#[derive(Clone, Debug, PartialEq)]
pub struct LearningCurve {
    /// Name of the policy.
    pub name: String,
    /// Quantity on the x axis, with its unit: "decisions, millions".
    pub x_name: String,
    /// Quantity on the y axis, with its unit: "mean JCT on validation seeds, hours".
    pub y_name: String,
    /// Evaluations in order.
    pub points: Vec<CurvePoint>,
    /// Names and values of constant baselines.
    pub baselines: Vec<(String, f64)>,
}

const HEIGHT: f64 = 340.0;

/// The curve with its band in series colour `color`, baselines as labelled lines.
pub fn learning_curve(curve: &LearningCurve, color: usize) -> Figure {
    let names = curve.baselines.iter().map(|(name, _)| name).chain([&curve.name]);
    let right = names.map(|name| text_width(name)).fold(40.0, f64::max) * 1.08 + 16.0;
    let panel = PlotPanel::inside(HEIGHT, 56.0, right, 34.0, 52.0);
    let ends = |point: &CurvePoint| point.ci.map_or([point.mean; 2], |ci| [ci.low, ci.high]);
    let values = || curve.points.iter().flat_map(ends).chain(curve.baselines.iter().map(|(_, value)| *value));
    let (low, high) =
        values().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
    let pad = 0.06 * (high - low).max(high.abs() * 0.01);
    let (low, high) = (low - pad, high + pad);
    let start = curve.points.first().map_or(0.0, |point| point.x);
    let end = curve.points.last().map_or(1.0, |point| point.x);
    let x = AxisScale::linear((start, end), panel.x());
    let y = AxisScale::linear((low, high), panel.y());
    Canvas::figure(super::WIDTH, HEIGHT, &format!("Learning curve of {}", curve.name), |canvas| {
        panel.y_axis(canvas, y, &linear_ticks(low, high, 5, number), &curve.y_name);
        panel.x_axis(canvas, x, &linear_ticks(start, end, 7, number), &curve.x_name);
        let mut marks = Vec::new();
        for (name, value) in &curve.baselines {
            canvas.line(&[(panel.left, y.at(*value)), (panel.right, y.at(*value))], Ink::Muted, 1.4);
            marks.push(Label { y: y.at(*value), text: name.clone(), ink: Ink::Muted });
        }
        let edge = |side: usize| curve.points.iter().map(move |point| (x.at(point.x), y.at(ends(point)[side])));
        let band: Vec<_> = edge(0).chain(edge(1).collect::<Vec<_>>().into_iter().rev()).collect();
        let ink = Ink::Series(color);
        if curve.points.len() > 1 {
            canvas.area(&band, ink, 0.18);
        }
        canvas.line(&curve.points.iter().map(|point| (x.at(point.x), y.at(point.mean))).collect::<Vec<_>>(), ink, 2.4);
        if let Some(last) = curve.points.last() {
            canvas.dot((x.at(last.x), y.at(last.mean)), 3.6, ink);
            marks.push(Label { y: y.at(last.mean), text: curve.name.clone(), ink });
        }
        labels::beside(canvas, panel.right, marks, panel.top, panel.bottom);
    })
}

fn number(value: f64) -> String {
    format!("{}", (value * 1000.0).round() / 1000.0)
}
