//! Paired differences against the reference: a dot and an interval each.

use super::axis::{AxisScale, PlotPanel, Tick};
use super::canvas::{Anchor, Canvas, Type, text_width};
use super::figure::Figure;
use super::ink::Ink;
use crate::stats::{Estimate, Interval};

/// One policy against the reference.
#[derive(Clone, Debug)]
pub struct ForestRow {
    /// Name of the policy.
    pub name: String,
    /// Mean over the reference's mean: below 1 is better.
    pub ratio: Estimate,
}

const ROW: f64 = 30.0;

/// Forest plot of ratios of mean completion times, on a logarithmic axis labelled in percent:
/// halving and doubling are equally far from no difference. Blue is better, orange is worse, grey
/// is not told apart.
pub fn forest(reference: &str, rows: &[ForestRow]) -> Figure {
    let height = 34.0 + ROW * rows.len() as f64 + 52.0;
    let names = rows.iter().map(|row| text_width(&row.name)).fold(60.0, f64::max);
    let panel = PlotPanel::inside(height, names + 20.0, 176.0, 26.0, 52.0);
    let ends = |row: &ForestRow| row.ratio.ci.unwrap_or(Interval { low: row.ratio.value, high: row.ratio.value });
    let low = rows.iter().map(|row| ends(row).low).fold(0.95, f64::min).max(0.01) / 1.04;
    let high = rows.iter().map(|row| ends(row).high).fold(1.05, f64::max).min(100.0) * 1.04;
    let x = AxisScale::log((low, high), panel.x());
    let title = format!("Mean job completion time relative to {reference}");
    Canvas::figure(super::WIDTH, height, &title, |canvas| {
        panel.x_axis(canvas, x, &ticks(x), &format!("mean completion time against {reference}"));
        let zero = x.at(1.0);
        canvas.line(&[(zero, panel.top - 4.0), (zero, panel.bottom)], Ink::Muted, 1.4);
        // A direction that has no room to be named is short and needs no name.
        let side = |room: f64, x: f64, text: &str, anchor| {
            if room > 70.0 {
                canvas.text((x, panel.top - 14.0), text, Type::new(Ink::Muted, anchor));
            }
        };
        side(zero - panel.left, zero - 12.0, "← sooner", Anchor::End);
        side(panel.right - zero, zero + 12.0, "later →", Anchor::Start);
        for (index, row) in rows.iter().enumerate() {
            let y = panel.top + ROW * (index as f64 + 0.5);
            let ends = ends(row);
            let ink = match row.ratio.excludes(1.0) {
                true if row.ratio.value < 1.0 => Ink::Good,
                true => Ink::Bad,
                false => Ink::Muted,
            };
            canvas.text((panel.left - 14.0, y), &row.name, Type::new(Ink::Text, Anchor::End));
            canvas.line(&[(x.at(ends.low), y), (x.at(ends.high), y)], ink, 3.0);
            canvas.dot((x.at(row.ratio.value), y), 6.0, Ink::Page);
            canvas.dot((x.at(row.ratio.value), y), 4.6, ink);
            canvas.text((panel.right + 64.0, y), &percent(row.ratio.value), Type::new(ink, Anchor::End).bold());
            if row.ratio.ci.is_some() {
                let range = format!("{} to {}", signed(ends.low), signed(ends.high));
                canvas.text((panel.right + 76.0, y), &range, Type::new(Ink::Muted, Anchor::Start));
            }
        }
    })
}

/// Round percentages, the more telling first, as far as their labels have room.
fn ticks(x: AxisScale) -> Vec<Tick> {
    const ALL: [f64; 20] =
        [1.0, 2.0, 0.5, 0.75, 1.5, 0.25, 3.0, 5.0, 10.0, 0.1, 0.9, 1.25, 1.1, 30.0, 0.05, 0.95, 1.05, 0.6, 0.8, 1.75];
    let mut kept: Vec<f64> = Vec::new();
    for ratio in ALL.into_iter().filter(|&ratio| x.contains(ratio)) {
        if kept.iter().all(|&other| (x.at(ratio) - x.at(other)).abs() >= 64.0) {
            kept.push(ratio);
        }
    }
    let label = |ratio: f64| if ratio == 1.0 { "same".into() } else { percent(ratio) };
    kept.into_iter().map(|value| Tick { value, label: label(value) }).collect()
}

fn percent(ratio: f64) -> String {
    format!("{} %", signed(ratio))
}

fn signed(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let digits = usize::from(percent.abs() < 9.95);
    let text = format!("{:.digits$}", percent.abs());
    let zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    match (zero, percent < 0.0) {
        (true, _) => "0".into(),
        (_, true) => format!("−{text}"),
        (_, false) => format!("+{text}"),
    }
}
