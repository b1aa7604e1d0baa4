//! Gantt chart of the jobs of a run: one row for each job, for small runs.

use super::axis::{AxisScale, PlotPanel, time_ticks};
use super::canvas::{Anchor, Canvas, Type, text_width};
use super::figure::Figure;
use super::ink::{Ink, SERIES};
use crate::report::picture::{JobChart, Picture};

/// Runs with more jobs than this have no readable Gantt chart.
pub const GANTT_MOST_JOBS: usize = 120;

/// Axes that charts share so that they can be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GanttFrame {
    /// End of the axis of time, seconds.
    pub end_secs: f64,
    /// Accelerators of a bar of full height.
    pub full_gpus: u32,
}

impl GanttFrame {
    /// The frame that fits all of these runs.
    pub fn new<'a>(pictures: impl IntoIterator<Item = &'a Picture>) -> Self {
        let mut frame = Self { end_secs: 0.0, full_gpus: 1 };
        for picture in pictures {
            frame.end_secs = frame.end_secs.max(picture.end.as_secs_f64());
            frame.full_gpus = frame.full_gpus.max(picture.widest_gpus);
        }
        frame
    }
}

/// Jobs from top to bottom in order of submission. A thin line is waiting and a bar is running; the
/// bar is thicker with more accelerators, and its colour is the application.
pub fn gantt(chart: &JobChart, frame: GanttFrame) -> Figure {
    let jobs = chart.lines.len();
    let row = (620.0 / jobs as f64).clamp(6.0, 16.0);
    let height = 40.0 + row * jobs as f64 + 50.0;
    let panel = PlotPanel::inside(height, 8.0, 8.0, 40.0, 50.0);
    let (end, most) = (frame.end_secs, frame.full_gpus);
    let x = AxisScale::linear((0.0, end), panel.x());
    Canvas::figure(super::WIDTH, height, "Jobs over time", |canvas| {
        let (ticks, unit) = time_ticks(end);
        panel.x_axis(canvas, x, &ticks, &format!("{unit} since the start of the run"));
        legend(canvas, &chart.applications, most);
        for (index, (submit, until)) in chart.lines.iter().enumerate() {
            let y = panel.top + row * (index as f64 + 0.5);
            canvas.line(&[(x.at(submit.as_secs_f64()), y), (x.at(until.as_secs_f64()), y)], Ink::Muted, 0.8);
        }
        for bar in &chart.bars {
            let y = panel.top + row * (bar.job as f64 + 0.5);
            let half = row * 0.46 * (0.3 + 0.7 * f64::from(bar.gpus) / f64::from(most));
            let (from, to) = (x.at(bar.from.as_secs_f64()), x.at(bar.to.as_secs_f64()));
            canvas.rect((from, y - half), (to.max(from + 0.6), y + half), Ink::Series(chart.colors[bar.job]), 1.0);
        }
    })
}

fn legend(canvas: &Canvas<'_>, applications: &[String], most: u32) {
    let mut x = 8.0;
    for (index, app) in applications.iter().enumerate().take(SERIES) {
        canvas.rect((x, 9.0), (x + 11.0, 20.0), Ink::Series(index), 1.0);
        canvas.text((x + 17.0, 14.5), app, Type::new(Ink::Text, Anchor::Start));
        x += 17.0 + text_width(app) + 18.0;
    }
    let note = format!("line: waiting · full bar: {most} GPUs");
    canvas.text((super::WIDTH - 8.0, 14.5), &note, Type::new(Ink::Muted, Anchor::End));
}
