//! Mean waits of policies: a dot and a range each.

use super::axis::{AxisScale, PlotPanel, linear_ticks};
use super::canvas::{Anchor, Canvas, Type, text_width};
use super::figure::Figure;
use super::ink::Ink;
use crate::stats::{Estimate, Interval};

/// Wait under one policy.
#[derive(Clone, Debug)]
pub struct WaitRow {
    /// Name of the policy.
    pub name: String,
    /// Mean wait, hours.
    pub hours: Estimate,
    /// The wait less that of the first policy, hours; absent for the first policy.
    pub difference: Option<Estimate>,
}

const ROW: f64 = 28.0;
/// Width of the figures to the right of the panel.
const FIGURES: f64 = 150.0;

/// Waits on an axis of hours from zero, with a line down from the first one. Blue is a shorter wait, orange is a longer
/// one, and grey is not told apart.
pub fn waits(rows: &[WaitRow]) -> Figure {
    let height = 12.0 + ROW * rows.len() as f64 + 52.0;
    // The first name is bold, and wider by a sixth.
    let bold = rows.first().map_or(0.0, |row| text_width(&row.name) * 7.0 / 6.0);
    let names = rows.iter().map(|row| text_width(&row.name)).fold(bold.max(60.0), f64::max).min(300.0);
    let panel = PlotPanel::inside(height, names + 20.0, FIGURES, 12.0, 52.0);
    let ends = |row: &WaitRow| row.hours.ci.unwrap_or(Interval { low: row.hours.value, high: row.hours.value });
    let high = rows.iter().map(|row| ends(row).high.max(row.hours.value)).fold(1e-3, f64::max) * 1.04;
    let x = AxisScale::linear((0.0, high), panel.x());
    let ticks = linear_ticks(0.0, high, 8, |hours| {
        let text = format!("{hours:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    });
    Canvas::figure(super::WIDTH, height, "Mean wait of a job by policy", |canvas| {
        panel.x_axis(canvas, x, &ticks, "mean wait of a job, hours");
        if let Some(first) = rows.first() {
            let at = x.at(first.hours.value);
            canvas.line(&[(at, panel.top), (at, panel.bottom)], Ink::Muted, 1.0);
        }
        for (index, row) in rows.iter().enumerate() {
            let y = panel.top + ROW * (index as f64 + 0.5);
            let ink = match row.difference.filter(|difference| difference.excludes(0.0)) {
                Some(difference) if difference.value < 0.0 => Ink::Good,
                Some(_) => Ink::Bad,
                None => Ink::Muted,
            };
            let name = Type::new(Ink::Text, Anchor::End);
            canvas.text((panel.left - 14.0, y), &row.name, if index == 0 { name.bold() } else { name });
            canvas.line(&[(x.at(ends(row).low), y), (x.at(ends(row).high), y)], ink, 3.0);
            canvas.dot((x.at(row.hours.value), y), 6.0, Ink::Page);
            canvas.dot((x.at(row.hours.value), y), 4.6, ink);
            let value = format!("{:.2}", row.hours.value);
            canvas.text((panel.right + 48.0, y), &value, Type::new(Ink::Text, Anchor::End).bold());
            if let Some(Interval { low, high }) = row.hours.ci {
                let range = format!("{low:.2} to {high:.2}");
                canvas.text((panel.right + 58.0, y), &range, Type::new(Ink::Muted, Anchor::Start));
            }
        }
    })
}
