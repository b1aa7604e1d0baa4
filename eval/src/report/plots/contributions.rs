//! Contributions of features to a score: one bar for each feature, to the side that it moved the
//! score to.

use super::axis::{AxisScale, PlotPanel, linear_ticks};
use super::canvas::{Anchor, Canvas, Type, text_width};
use super::figure::Figure;
use super::ink::Ink;

/// Contribution of one feature.
#[derive(Clone, Debug, PartialEq)]
pub struct ContributionBar {
    /// Name of the feature.
    pub name: String,
    /// Contribution of the feature to the score.
    pub value: f64,
    /// Contribution by another method, as a check.
    pub check: f64,
}

const ROW: f64 = 22.0;

/// Bars in the order given, with a dot for the check.
pub fn contributions(bars: &[ContributionBar]) -> Figure {
    let height = 20.0 + ROW * bars.len() as f64 + 52.0;
    let names = bars.iter().map(|bar| text_width(&bar.name)).fold(60.0, f64::max);
    let panel = PlotPanel::inside(height, names + 20.0, 70.0, 12.0, 52.0);
    let reach = bars.iter().flat_map(|bar| [bar.value.abs(), bar.check.abs()]).fold(1e-9, f64::max) * 1.08;
    let x = AxisScale::linear((-reach, reach), panel.x());
    let ticks = linear_ticks(-reach, reach, 6, |value| {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    });
    Canvas::figure(super::WIDTH, height, "What each feature did to the score", |canvas| {
        panel.x_axis(canvas, x, &ticks, "contribution to the score");
        let zero = x.at(0.0);
        for (index, bar) in bars.iter().enumerate() {
            let y = panel.top + ROW * (index as f64 + 0.5);
            let ink = if bar.value >= 0.0 { Ink::Good } else { Ink::Bad };
            let (from, to) = (zero.min(x.at(bar.value)), zero.max(x.at(bar.value)));
            canvas.text((panel.left - 14.0, y), &bar.name, Type::new(Ink::Text, Anchor::End));
            canvas.rect((from, y - 7.0), (to, y + 7.0), ink, 0.8);
            canvas.dot((x.at(bar.check), y), 4.6, Ink::Page);
            canvas.dot((x.at(bar.check), y), 3.4, Ink::Text);
            canvas.text((panel.right + 60.0, y), &format!("{:+.3}", bar.value), Type::new(ink, Anchor::End).bold());
        }
        canvas.line(&[(zero, panel.top - 4.0), (zero, panel.bottom)], Ink::Muted, 1.4);
    })
}
