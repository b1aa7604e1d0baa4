//! Gantt chart of the jobs of a run: one row for each job, for small runs.

use goodput_env::scenario::Scenario;
use goodput_env::sim::Outcome;

use super::axis::{AxisScale, PlotPanel, time_ticks};
use super::canvas::{Anchor, Canvas, Type, text_width};
use super::figure::Figure;
use super::ink::{Ink, SERIES};

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
    pub fn new<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Self {
        let mut frame = Self { end_secs: 0.0, full_gpus: 1 };
        for outcome in outcomes {
            frame.end_secs = frame.end_secs.max(outcome.end.as_secs_f64());
            frame.full_gpus = outcome.allocations.iter().map(|change| change.gpus).fold(frame.full_gpus, u32::max);
        }
        frame
    }
}

/// Jobs from top to bottom in order of submission. A thin line is waiting and a bar is running; the
/// bar is thicker with more accelerators, and its colour is the application. `None` for a run that
/// is too large, or without a log of allocations.
pub fn gantt(scenario: &Scenario, outcome: &Outcome, frame: GanttFrame) -> Option<Figure> {
    let jobs = outcome.jobs.len();
    if jobs == 0 || jobs > GANTT_MOST_JOBS || outcome.allocations.is_empty() {
        return None;
    }
    let row = (620.0 / jobs as f64).clamp(6.0, 16.0);
    let height = 40.0 + row * jobs as f64 + 50.0;
    let panel = PlotPanel::inside(height, 8.0, 8.0, 40.0, 50.0);
    let (end, most) = (frame.end_secs, frame.full_gpus);
    let x = AxisScale::linear((0.0, end), panel.x());
    Some(Canvas::figure(super::WIDTH, height, "Jobs over time", |canvas| {
        let (ticks, unit) = time_ticks(end);
        panel.x_axis(canvas, x, &ticks, &format!("{unit} since the start of the run"));
        legend(canvas, scenario, most);
        for (index, job) in outcome.jobs.iter().enumerate() {
            let y = panel.top + row * (index as f64 + 0.5);
            let until = job.finish.unwrap_or(outcome.end);
            canvas.line(&[(x.at(job.submit.as_secs_f64()), y), (x.at(until.as_secs_f64()), y)], Ink::Muted, 0.8);
        }
        for bar in bars(outcome) {
            let y = panel.top + row * (bar.job as f64 + 0.5);
            let half = row * 0.46 * (0.3 + 0.7 * f64::from(bar.gpus) / f64::from(most));
            let (from, to) = (x.at(bar.from), x.at(bar.to).max(x.at(bar.from) + 0.6));
            canvas.rect((from, y - half), (to, y + half), application_ink(scenario, bar.job), 1.0);
        }
    }))
}

struct GanttBar {
    job: usize,
    gpus: u32,
    from: f64,
    to: f64,
}

/// Spans over which a job held a constant number of accelerators.
fn bars(outcome: &Outcome) -> Vec<GanttBar> {
    let mut held: Vec<(u32, f64)> = vec![(0, 0.0); outcome.jobs.len()];
    let mut bars = Vec::new();
    let mut close = |job: usize, (gpus, from): (u32, f64), to: f64| {
        let to = outcome.jobs[job].finish.map_or(to, |finish| to.min(finish.as_secs_f64()));
        if gpus > 0 && to > from {
            bars.push(GanttBar { job, gpus, from, to });
        }
    };
    for change in &outcome.allocations {
        let (job, at) = (change.job.index(), change.at.as_secs_f64());
        close(job, held[job], at);
        held[job] = (change.gpus, at);
    }
    for (job, &open) in held.iter().enumerate() {
        close(job, open, outcome.end.as_secs_f64());
    }
    bars
}

fn application_ink(scenario: &Scenario, job: usize) -> Ink {
    match scenario.workload.jobs[job].work {
        goodput_env::job::Work::Application { index, .. } => Ink::Series(usize::from(index)),
        goodput_env::job::Work::Steps { class, .. } => Ink::Series(usize::from(class)),
        goodput_env::job::Work::Fixed { .. } => Ink::Series(0),
    }
}

fn legend(canvas: &Canvas<'_>, scenario: &Scenario, most: u32) {
    let mut x = 8.0;
    for (index, app) in scenario.workload.applications.iter().enumerate().take(SERIES) {
        canvas.rect((x, 9.0), (x + 11.0, 20.0), Ink::Series(index), 1.0);
        canvas.text((x + 17.0, 14.5), &app.name, Type::new(Ink::Text, Anchor::Start));
        x += 17.0 + text_width(&app.name) + 18.0;
    }
    let note = format!("line: waiting · full bar: {most} GPUs");
    canvas.text((super::WIDTH - 8.0, 14.5), &note, Type::new(Ink::Muted, Anchor::End));
}
