//! Figures of one run for groups of its jobs.

use std::collections::BTreeMap;

use goodput_env::scenario::Scenario;
use goodput_env::sim::{JobRecord, Outcome};
use serde::Serialize;

use crate::metrics::{RunFacts, bounded_slowdown, jct_secs};
use crate::stats::quantile;

/// Jobs that figures are about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobGroup {
    /// Every job of the trace.
    All,
    /// Jobs that ask for so many accelerators, both included.
    Size {
        /// Fewest accelerators of a job of the group.
        from: u32,
        /// Most accelerators of a job of the group; absent: no bound.
        to: Option<u32>,
    },
    /// Jobs of a tenant, by its index.
    Tenant(u32),
}

impl JobGroup {
    /// Groups by size: one accelerator, less than a usual node, a usual node, more than that.
    const SIZES: [Self; 4] = [
        Self::Size { from: 1, to: Some(1) },
        Self::Size { from: 2, to: Some(7) },
        Self::Size { from: 8, to: Some(8) },
        Self::Size { from: 9, to: None },
    ];

    fn has(&self, gpus: u32, tenant: u32) -> bool {
        match self {
            Self::All => true,
            Self::Size { from, to } => gpus >= *from && to.is_none_or(|to| gpus <= to),
            Self::Tenant(own) => tenant == *own,
        }
    }
}

/// Figures in the order of [`GroupFigures::values`]. The wait of a job is all of its time without accelerators, before
/// it starts and after it has been stopped.
pub const FIGURES: [&str; 8] = [
    "wait_mean_hours",
    "wait_median_hours",
    "wait_p95_hours",
    "turnaround_mean_hours",
    "slowdown_mean",
    "utilisation_percent",
    "idle_gpu_hours",
    "fragmentation_percent",
];

/// Values of the figures of a group of jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupFigures {
    /// Number of jobs.
    pub jobs: usize,
    /// Value of each figure; `None` where the group has none.
    pub values: [Option<f64>; FIGURES.len()],
}

const SECS_AN_HOUR: f64 = 3600.0;

/// Figures of each group that has jobs. Tenants are groups where there are at least two.
pub(super) fn figures(scenario: &Scenario, outcome: &Outcome) -> BTreeMap<JobGroup, GroupFigures> {
    let jobs = &scenario.workload.jobs;
    let tenants = jobs.iter().map(|job| job.request.tenant).max().unwrap_or(0);
    let of_tenants = (0..=tenants).filter(|_| tenants > 0).map(JobGroup::Tenant);
    let groups = std::iter::once(JobGroup::All).chain(JobGroup::SIZES).chain(of_tenants);
    let of_group = |group: JobGroup| {
        let own = outcome.jobs.iter().filter(|record| {
            let request = &jobs[record.job.index()].request;
            group.has(request.gpus, request.tenant)
        });
        let own: Vec<&JobRecord> = own.collect();
        (!own.is_empty()).then(|| {
            // Use of the cluster is a figure of all jobs together.
            let used = if group == JobGroup::All { of_cluster(scenario, outcome) } else { [None; 3] };
            let [wait, median, p95, turnaround, slowdown] = of_jobs(&own);
            let values = [wait, median, p95, turnaround, slowdown, used[0], used[1], used[2]];
            (group, GroupFigures { jobs: own.len(), values })
        })
    };
    groups.filter_map(of_group).collect()
}

fn of_jobs(jobs: &[&JobRecord]) -> [Option<f64>; 5] {
    let mean = |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let each = |of: fn(&JobRecord) -> Option<f64>| jobs.iter().filter_map(|job| of(job)).collect::<Vec<f64>>();
    let mut waits = each(|job| Some((jct_secs(job)? - job.executed.as_secs_f64()).max(0.0) / SECS_AN_HOUR));
    waits.sort_by(f64::total_cmp);
    let turnaround = each(|job| Some(jct_secs(job)? / SECS_AN_HOUR));
    let slowdowns = each(bounded_slowdown);
    [mean(&waits), quantile(&waits, 0.5), quantile(&waits, 0.95), mean(&turnaround), mean(&slowdowns)]
}

/// Share of the accelerators that jobs held from the first submission to the last completion, the accelerator time
/// that was left over in this time, and the share that was free beside jobs in pieces too small for a waiting job.
fn of_cluster(scenario: &Scenario, outcome: &Outcome) -> [Option<f64>; 3] {
    let run = RunFacts::new(scenario, outcome);
    let used = run.share_of_capacity(run.held_gpu_secs);
    let capacity = f64::from(run.capacity_gpus) * run.makespan_secs;
    let fragmented = run.share_of_capacity(outcome.fragmented_gpu_millis as f64 / 1e3);
    let percent = |share: f64| 100.0 * share;
    [used.map(percent), Some((capacity - run.held_gpu_secs).max(0.0) / SECS_AN_HOUR), fragmented.map(percent)]
}
