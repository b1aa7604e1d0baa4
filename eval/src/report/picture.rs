//! Picture of a run: what the figures of a page show of the first scenario, without the scenario and its log.

use goodput_env::job::Work;
use goodput_env::scenario::Scenario;
use goodput_env::sim::Outcome;
use goodput_env::time::SimTime;
use serde::{Deserialize, Serialize};

use super::node_chart::NodeChart;
use super::plots::GANTT_MOST_JOBS;

/// Accelerators over time, and every job of a small run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// End of the run.
    pub end: SimTime,
    /// Accelerators of the cluster.
    pub capacity_gpus: u32,
    /// Number of jobs.
    pub jobs: usize,
    /// Accelerators that jobs hold.
    pub held: HeldGpus,
    /// Moments, each with the accelerators that are from then on free but too scattered for the widest waiting job.
    pub fragments: Vec<(SimTime, u32)>,
    /// Most accelerators that a job holds at a time.
    pub widest_gpus: u32,
    /// Every job of the run; `None` where there are too many for a chart, or allocations were not logged.
    pub chart: Option<JobChart>,
    /// Jobs on the nodes of the cluster; `None` where placements were not logged.
    #[serde(default)]
    pub nodes: Option<NodeChart>,
}

/// Accelerators that jobs hold over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeldGpus {
    /// Moments of a logged run, each with the accelerators held from then on.
    Steps(Vec<(SimTime, i64)>),
    /// Start and end of each job of a run that was not logged, with its accelerator time in GPU-milliseconds.
    Spread(Vec<(SimTime, SimTime, i64)>),
}

/// Jobs of a small run, in order of submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobChart {
    /// Submission and end of each job.
    pub lines: Vec<(SimTime, SimTime)>,
    /// Index of the colour of each job: that of its application.
    pub colors: Vec<usize>,
    /// Spans over which jobs held a constant number of accelerators.
    pub bars: Vec<JobBar>,
    /// Names of the applications.
    pub applications: Vec<String>,
}

/// Span over which a job held a constant number of accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobBar {
    /// Index of the job.
    pub job: usize,
    /// Number of accelerators that are held at a moment.
    pub gpus: u32,
    /// Begin of the span.
    pub from: SimTime,
    /// End of the span.
    pub to: SimTime,
}

impl Picture {
    /// Picture of a finished run.
    pub fn of(scenario: &Scenario, outcome: &Outcome) -> Self {
        Self {
            end: outcome.end,
            capacity_gpus: scenario.cluster.total_gpus(),
            jobs: outcome.jobs.len(),
            held: HeldGpus::of(outcome),
            fragments: outcome.fragments.iter().map(|change| (change.at, change.gpus)).collect(),
            widest_gpus: outcome.allocations.iter().map(|change| change.gpus).max().unwrap_or(0),
            chart: JobChart::of(scenario, outcome),
            nodes: NodeChart::of(scenario, outcome),
        }
    }
}

impl HeldGpus {
    /// Accelerators held in a run: from the log of allocations, or, where none was kept, with each job's holding
    /// spread evenly from its start to its end.
    pub fn of(outcome: &Outcome) -> Self {
        if outcome.allocations.is_empty() {
            let started = outcome
                .jobs
                .iter()
                .filter_map(|job| Some((job.start?, job.finish.unwrap_or(outcome.end), job.attained_gpu_millis)));
            return Self::Spread(started.collect());
        }
        let mut gpus_of = vec![0_u32; outcome.jobs.len()];
        let (mut total, mut steps) = (0_i64, Vec::<(SimTime, i64)>::new());
        for change in &outcome.allocations {
            let before = std::mem::replace(&mut gpus_of[change.job.index()], change.gpus);
            total += i64::from(change.gpus) - i64::from(before);
            match steps.last_mut().filter(|(at, _)| *at == change.at) {
                Some((_, held)) => *held = total,
                None => steps.push((change.at, total)),
            }
        }
        Self::Steps(steps)
    }
}

impl JobChart {
    fn of(scenario: &Scenario, outcome: &Outcome) -> Option<Self> {
        let jobs = outcome.jobs.len();
        if jobs == 0 || jobs > GANTT_MOST_JOBS || outcome.allocations.is_empty() {
            return None;
        }
        Some(Self {
            lines: outcome.jobs.iter().map(|job| (job.submit, job.finish.unwrap_or(outcome.end))).collect(),
            colors: scenario.workload.jobs.iter().map(|job| color_of(&job.work)).collect(),
            bars: bars(outcome),
            applications: scenario.workload.applications.iter().map(|app| app.name.clone()).collect(),
        })
    }
}

/// Index of the colour of a job: that of its application or class.
pub(super) fn color_of(work: &Work) -> usize {
    match *work {
        Work::Application { index, .. } => usize::from(index),
        Work::Steps { class, .. } => usize::from(class),
        Work::Fixed { .. } => 0,
    }
}

fn bars(outcome: &Outcome) -> Vec<JobBar> {
    let mut held: Vec<(u32, SimTime)> = vec![(0, SimTime::ZERO); outcome.jobs.len()];
    let mut bars = Vec::new();
    let mut close = |job: usize, (gpus, from): (u32, SimTime), to: SimTime| {
        let to = outcome.jobs[job].finish.map_or(to, |finish| to.min(finish));
        if gpus > 0 && to > from {
            bars.push(JobBar { job, gpus, from, to });
        }
    };
    for change in &outcome.allocations {
        let job = change.job.index();
        close(job, held[job], change.at);
        held[job] = (change.gpus, change.at);
    }
    for (job, &open) in held.iter().enumerate() {
        close(job, open, outcome.end);
    }
    bars
}
