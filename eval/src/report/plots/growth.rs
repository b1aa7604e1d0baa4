//! Plot of the growth of a cost with size, both axes logarithmic.

use super::axis::{AxisScale, PlotPanel, Tick};
use super::canvas::{Canvas, text_width};
use super::figure::Figure;
use super::ink::Ink;
use super::labels::{self, Label};

/// The cost of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct GrowthSeries {
    /// Name of the policy.
    pub name: String,
    /// Size and cost in seconds, sizes ascending, all positive.
    pub points: Vec<(f64, f64)>,
}

const HEIGHT: f64 = 560.0;

/// One line a policy, labelled where it ends; `x_name` says what the size is.
pub fn growth(series: &[GrowthSeries], x_name: &str, y_name: &str) -> Figure {
    let right = series.iter().map(|one| text_width(&one.name)).fold(40.0, f64::max) * 1.08 + 16.0;
    let panel = PlotPanel::inside(HEIGHT, 64.0, right, 34.0, 52.0);
    let all = || series.iter().flat_map(|one| one.points.iter());
    let range = |of: &dyn Fn(&(f64, f64)) -> f64| {
        all().map(of).fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)))
    };
    let ((from, to), (low, high)) = (range(&|point| point.0), range(&|point| point.1));
    let x = AxisScale::log((from, to), panel.x());
    let y = AxisScale::log((low, high), panel.y());
    Canvas::figure(super::WIDTH, HEIGHT, y_name, |canvas| {
        let powers = |base: f64, low: f64, high: f64| {
            let exponents = (low.log(base) - 1e-9).ceil() as i32..=(high.log(base) + 1e-9).floor() as i32;
            exponents.map(move |exponent| base.powi(exponent)).collect::<Vec<_>>()
        };
        let ticks = |values: Vec<f64>, label: &dyn Fn(f64) -> String| {
            values.into_iter().map(|value| Tick { value, label: label(value) }).collect::<Vec<_>>()
        };
        panel.y_axis(canvas, y, &ticks(powers(10.0, low, high), &seconds), y_name);
        panel.x_axis(canvas, x, &ticks(powers(4.0, from, to), &|value| format!("{value:.0}")), x_name);
        let mut marks = Vec::new();
        for (color, one) in series.iter().enumerate() {
            let ink = Ink::Series(color);
            canvas.line(&one.points.iter().map(|&(size, cost)| (x.at(size), y.at(cost))).collect::<Vec<_>>(), ink, 2.0);
            if let Some(&(size, cost)) = one.points.last() {
                canvas.dot((x.at(size), y.at(cost)), 3.2, ink);
                marks.push(Label { y: y.at(cost), text: one.name.clone(), ink });
            }
        }
        labels::beside(canvas, panel.right, marks, panel.top, panel.bottom);
    })
}

fn seconds(value: f64) -> String {
    match value {
        value if value < 0.9e-6 => format!("{:.0} ns", value * 1e9),
        value if value < 0.9e-3 => format!("{:.0} us", value * 1e6),
        value if value < 0.9 => format!("{:.0} ms", value * 1e3),
        value => format!("{value:.0} s"),
    }
}
