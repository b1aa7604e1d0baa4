//! Accelerators held over time, one strip a policy.

use goodput_env::time::SimTime;

use super::axis::{AxisScale, PlotPanel, time_ticks};
use super::canvas::{Anchor, Canvas, Type, text_width};
use super::figure::Figure;
use super::ink::Ink;
use crate::report::picture::{HeldGpus, Picture};

/// One policy's strip.
#[derive(Clone, Debug)]
pub struct UtilizationRow {
    /// Name of the policy.
    pub name: String,
    /// Index of its colour.
    pub color: usize,
    /// End of its run, seconds.
    pub end_secs: f64,
    /// Mean share of accelerators held in each of equal spans of the whole axis.
    pub shares: Vec<f64>,
    /// Mean share of accelerators that are free but too scattered for the widest waiting job, in
    /// the same spans.
    pub fragmented: Vec<f64>,
    /// Utilisation of the run.
    pub mean: f64,
}

const STRIP: f64 = 40.0;
const GAP: f64 = 14.0;
const LINE: f64 = 1.6;

/// Accelerators in each of equal spans of time.
struct Spans {
    secs: f64,
    mean: Vec<f64>,
}

impl Spans {
    fn new(until: SimTime, bins: usize) -> Self {
        Self { secs: until.as_secs_f64() / bins as f64, mean: vec![0.0; bins] }
    }

    fn add(&mut self, from: f64, to: f64, gpus: f64) {
        let span = self.secs;
        if span <= 0.0 || to <= from {
            return;
        }
        let (first, end) = ((from / span) as usize, (to / span).ceil() as usize);
        for (bin, mean) in self.mean.iter_mut().enumerate().take(end).skip(first) {
            let overlap = to.min((bin + 1) as f64 * span) - from.max(bin as f64 * span);
            *mean += gpus * overlap.max(0.0) / span;
        }
    }
}

impl HeldGpus {
    /// Mean accelerators held in each of `bins` equal spans up to `until`, in a run that ends at `end`.
    pub fn mean_gpus(&self, end: SimTime, until: SimTime, bins: usize) -> Vec<f64> {
        match self {
            Self::Steps(steps) => steps_mean(steps.iter().map(|&(at, gpus)| (at, gpus as f64)), end, until, bins),
            Self::Spread(jobs) => {
                let mut held = Spans::new(until, bins);
                for &(start, end, gpu_millis) in jobs {
                    let secs = (end - start).as_secs_f64();
                    if secs > 0.0 {
                        held.add(start.as_secs_f64(), end.as_secs_f64(), gpu_millis as f64 / 1000.0 / secs);
                    }
                }
                held.mean
            }
        }
    }
}

/// Mean in each of `bins` equal spans of a number that changes at some moments.
fn steps_mean(steps: impl Iterator<Item = (SimTime, f64)>, end: SimTime, until: SimTime, bins: usize) -> Vec<f64> {
    let mut spans = Spans::new(until, bins);
    let (mut now, mut gpus) = (0.0, 0.0);
    for (at, next) in steps {
        let at = at.as_secs_f64();
        spans.add(now, at, gpus);
        (now, gpus) = (at, next);
    }
    spans.add(now, end.as_secs_f64(), gpus);
    spans.mean
}

impl UtilizationRow {
    /// The strip of one run on an axis that ends at `until`.
    pub fn new(name: &str, color: usize, picture: &Picture, until: SimTime, mean: f64) -> Self {
        let (capacity, end) = (f64::from(picture.capacity_gpus), picture.end);
        let share = |gpus: Vec<f64>| gpus.into_iter().map(|gpus| gpus / capacity).collect();
        let fragments = picture.fragments.iter().map(|&(at, gpus)| (at, f64::from(gpus)));
        Self {
            name: name.into(),
            color,
            end_secs: end.as_secs_f64(),
            shares: share(picture.held.mean_gpus(end, until, 360)),
            fragmented: share(steps_mean(fragments, end, until, 360)),
            mean,
        }
    }
}

/// Strips of the share of accelerators held, on one axis of time; each ends where its run ends.
pub fn utilization(rows: &[UtilizationRow], until: SimTime) -> Figure {
    let height = 26.0 + (STRIP + GAP) * rows.len() as f64 + 50.0;
    let names = rows.iter().map(|row| text_width(&row.name)).fold(60.0, f64::max);
    let panel = PlotPanel::inside(height, names + 20.0, 64.0, 26.0, 50.0);
    let end = until.as_secs_f64();
    let x = AxisScale::linear((0.0, end), panel.x());
    Canvas::figure(super::WIDTH, height, "Accelerators held over time", |canvas| {
        let (ticks, unit) = time_ticks(end);
        panel.x_axis(canvas, x, &ticks, &format!("{unit} since the start of the run"));
        canvas.text((super::WIDTH, panel.top - 14.0), "mean", Type::new(Ink::Muted, Anchor::End));
        for (index, row) in rows.iter().enumerate() {
            let bottom = panel.top + (STRIP + GAP) * (index as f64 + 1.0) - GAP / 2.0;
            let y = AxisScale::linear((0.0, 1.0), (bottom, bottom - STRIP));
            let ink = Ink::Series(row.color);
            let outline = steps(row, &row.shares, x, y, end);
            let mut area = outline.clone();
            area.extend([(outline.last().map_or(panel.left, |point| point.0), bottom), (panel.left, bottom)]);
            canvas.rect((panel.left, y.at(1.0)), (x.at(row.end_secs), bottom), Ink::Grid, 0.45);
            canvas.area(&area, ink, 0.3);
            if row.fragmented.iter().any(|&share| share > 0.0) {
                let top: Vec<f64> = row.shares.iter().zip(&row.fragmented).map(|(held, lost)| held + lost).collect();
                let mut band = steps(row, &top, x, y, end);
                band.extend(outline.iter().rev());
                canvas.area(&band, Ink::Muted, 0.6);
            }
            canvas.line(&outline, ink, LINE);
            canvas.text((panel.left - 14.0, bottom - STRIP / 2.0), &row.name, Type::new(Ink::Text, Anchor::End));
            let mean = format!("{:.0} %", row.mean * 100.0);
            canvas.text((super::WIDTH, bottom - STRIP / 2.0), &mean, Type::new(ink, Anchor::End).bold());
        }
    })
}

/// Steps of `shares` up to the end of the run.
fn steps(row: &UtilizationRow, shares: &[f64], x: AxisScale, y: AxisScale, end: f64) -> Vec<(f64, f64)> {
    let span = end / shares.len().max(1) as f64;
    let steps = shares.iter().enumerate().flat_map(|(bin, &share)| {
        let from = bin as f64 * span;
        let level = y.at(share);
        [(x.at(from.min(row.end_secs)), level), (x.at((from + span).min(row.end_secs)), level)]
    });
    let kept = (row.end_secs / span).ceil() as usize * 2;
    steps.take(kept.max(2)).collect()
}
