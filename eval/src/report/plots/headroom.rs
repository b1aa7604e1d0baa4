//! Headroom by workload: our best policy, the foresight probe and the bound relative to the best published policy.

use super::axis::{AxisScale, PlotPanel, Tick};
use super::canvas::{Anchor, Canvas, Type, text_width};
use super::figure::Figure;
use super::ink::Ink;

/// One workload. The ratios are mean completion times over that of the best published policy: below 1 is better.
#[derive(Clone, Debug)]
pub struct HeadroomRow {
    /// Name of the workload.
    pub name: String,
    /// Name of the best published policy.
    pub published: String,
    /// Our best policy.
    pub ours: Option<f64>,
    /// The foresight probe.
    pub probe: Option<f64>,
    /// Lower bound of every policy.
    pub bound: Option<f64>,
}

const ROW: f64 = 26.0;
/// Shortest ratio that is drawn; a looser bound ends at the edge.
const LEAST: f64 = 0.4;

/// Rows of marks on an axis in percent: a bar from the best published policy to the probe, a dot for ours, a stroke for
/// the bound. Our dot is blue where it is left of the best published policy, and orange to its right.
pub fn headroom(rows: &[HeadroomRow]) -> Figure {
    let height = 58.0 + ROW * rows.len() as f64 + 52.0;
    let names = rows.iter().map(|row| text_width(&row.name)).fold(60.0, f64::max).min(380.0);
    let panel = PlotPanel::inside(height, names + 20.0, 110.0, 50.0, 52.0);
    let ratios = || rows.iter().flat_map(|row| [row.ours, row.probe, row.bound]).flatten();
    let low = (ratios().fold(0.9, f64::min).max(LEAST) * 20.0).floor() / 20.0 - 0.01;
    let high = (ratios().fold(1.05, f64::max).min(2.0) * 20.0).ceil() / 20.0 + 0.01;
    let x = AxisScale::linear((low, high), panel.x());
    let title = "Mean completion time relative to the best published policy";
    Canvas::figure(super::WIDTH, height, title, |canvas| {
        panel.x_axis(canvas, x, &ticks(x), "mean completion time against the best published policy");
        legend(canvas, panel.left, 16.0);
        let one = x.at(1.0);
        canvas.line(&[(one, panel.top - 4.0), (one, panel.bottom)], Ink::Muted, 1.4);
        for (index, row) in rows.iter().enumerate() {
            let y = panel.top + ROW * (index as f64 + 0.5);
            canvas.text((panel.left - 14.0, y), &row.name, Type::new(Ink::Text, Anchor::End));
            canvas.text((panel.right + 10.0, y), &row.published, Type::new(Ink::Muted, Anchor::Start));
            if let Some(probe) = row.probe {
                canvas.line(&[(x.at(probe), y), (one, y)], Ink::Series(4), 7.0);
            }
            if let Some(bound) = row.bound {
                canvas.line(&[(x.at(bound), y - 8.0), (x.at(bound), y + 8.0)], Ink::Text, 2.0);
            }
            if let Some(ours) = row.ours {
                canvas.dot((x.at(ours), y), 6.0, Ink::Page);
                canvas.dot((x.at(ours), y), 4.6, if ours <= 1.0 { Ink::Good } else { Ink::Bad });
            }
        }
    })
}

fn legend(canvas: &Canvas<'_>, left: f64, y: f64) {
    let text = |x: f64, label: &str| canvas.text((x, y), label, Type::new(Ink::Muted, Anchor::Start));
    canvas.dot((left + 5.0, y), 4.6, Ink::Good);
    text(left + 16.0, "ours");
    canvas.line(&[(left + 66.0, y), (left + 90.0, y)], Ink::Series(4), 7.0);
    text(left + 98.0, "as far as the foresight probe gets");
    canvas.line(&[(left + 336.0, y - 8.0), (left + 336.0, y + 8.0)], Ink::Text, 2.0);
    text(left + 346.0, "bound");
}

/// Every tenth, labelled in percent of change.
fn ticks(x: AxisScale) -> Vec<Tick> {
    let label = |tenths: i32| match tenths - 10 {
        0 => "best published".to_owned(),
        less if less < 0 => format!("−{} %", -10 * less),
        more => format!("+{} %", 10 * more),
    };
    let all = (1..=20).map(|tenths| Tick { value: f64::from(tenths) / 10.0, label: label(tenths) });
    all.filter(|tick| x.contains(tick.value)).collect()
}
