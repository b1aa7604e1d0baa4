//! AlloX (Le et al., EuroSys'20): jobs of one accelerator on types that differ, matched for the
//! least average completion time.
//!
//! Each waiting job is assigned to a free accelerator and to a position in its queue, counted from
//! the end. The last job of a queue delays itself only, the one before it two jobs, and so on.
//! Position `k` on an accelerator costs `k` times the job's remaining time there, and the sum of
//! these costs over jobs is the sum of completion times. So the best schedule is a minimum-cost
//! matching, which the Hungarian method finds. The job at the head of each queue starts; the others
//! are matched again when something changes. Running jobs are not moved.
//!
//! Accelerators of one type are alike, so a queue needs no more positions than jobs over
//! accelerators of the type, rounded up. The matching then has about types x jobs columns instead
//! of accelerators x jobs.
//!
//! The paper's model has no jobs of several accelerators. Here such jobs start oldest first on what
//! the matching leaves, on the fastest type with room.

use goodput_env::cluster::TypeId;
use goodput_env::placement::{Placement, pack};
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::Information;
use goodput_env::view::{ClusterView, JobView};
use pathfinding::kuhn_munkres::kuhn_munkres_min;
use pathfinding::matrix::Matrix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::heuristic::parameters::Parameterised;
use crate::heuristic::{ListedPolicy, Traits};

/// Entries of AlloX in the list of policies.
pub const LISTED: &[ListedPolicy] = &[ListedPolicy {
    name: "allox",
    about: "jobs of one accelerator matched to types and positions in the queue for the least mean completion time",
    source: "Le et al., EuroSys 2020",
    traits: Traits { preemptive: false, elastic: false, heterogeneous: true },
    constructor: &Parameterised { defaults: Allox::default, build: |allox, _| Box::new(allox.clone()) },
    replica: None,
}];

/// Cost of a type on which a job cannot run: more than any schedule costs, and small enough to be
/// added up.
const NEVER_MILLIS: i64 = 1 << 50;

/// AlloX over a cluster. The matching breaks ties; its rows are jobs in order of arrival, its
/// columns types in the order of the cluster.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Allox {
    /// Fraction of the waiting jobs, oldest first, that is matched. With less than 1 long jobs do not wait for ever.
    /// At least as many jobs are matched as accelerators are free.
    #[schemars(range(min = 0.001, max = 1.0), extend("x-source" = "EuroSys 2020, fairness parameter"))]
    pub fraction: f64,
    /// Most waiting jobs that are matched, oldest first, unless more accelerators are free. The
    /// matching takes time with the cube of their number and memory with its square.
    #[serde(rename = "most_jobs")]
    #[schemars(range(min = 1), extend("x-unit" = "jobs", "x-source" = "this project: a bound on decision time"))]
    pub most: usize,
}

impl Default for Allox {
    fn default() -> Self {
        Self { fraction: 1.0, most: 256 }
    }
}

impl Policy for Allox {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut free = view.free().to_vec();
        let left: u32 = free.iter().sum();
        let waiting = || view.jobs().filter(|job| !job.state.is_allocated());
        if left == 0 {
            return plan;
        }
        let narrow: Vec<JobView<'_>> = waiting().filter(|job| job.request().gpus == 1).collect();
        let looked_at = (self.fraction * narrow.len() as f64) as usize;
        let narrow = &narrow[..looked_at.min(self.most).max(left as usize).min(narrow.len())];
        for (job, kind) in heads(view, &free, narrow) {
            if let Some(placement) = pack(view.cluster(), &mut free, kind, 1) {
                plan.set(narrow[job].id(), placement);
            }
        }
        for job in waiting().filter(|job| job.request().gpus > 1) {
            if let Some(placement) = fastest(view, &mut free, &job) {
                plan.set(job.id(), placement);
            }
        }
        plan
    }

    fn information(&self) -> Information {
        Information::Oracle
    }

    fn needs(&self) -> Information {
        Information::Estimate { sigma: 0.0 }
    }
}

/// Jobs that start now, by position in `jobs`, each with the accelerator type.
fn heads(view: &ClusterView<'_>, free: &[u32], jobs: &[JobView<'_>]) -> Vec<(usize, TypeId)> {
    let mut of_kind = vec![0_usize; view.cluster().types.len()];
    for (node, &gpus) in view.cluster().nodes.iter().zip(free) {
        of_kind[node.accelerator.index()] += gpus as usize;
    }
    let millis = |job: &JobView<'_>, kind: usize| {
        let secs = job.remaining_work()? / job.rate_on(TypeId::at(kind), 1).filter(|&rate| rate > 0.0)?;
        // Times are cut so that even a late position costs less than a type that cannot run the
        // job.
        Some(((secs * 1000.0) as i64).clamp(1, NEVER_MILLIS / 1024))
    };
    let times: Vec<Vec<Option<i64>>> =
        jobs.iter().map(|job| (0..of_kind.len()).map(|kind| millis(job, kind)).collect()).collect();
    assign(&times, &of_kind).into_iter().map(|(job, kind)| (job, TypeId::at(kind))).collect()
}

/// Head of each queue of the minimum-cost matching: position in `times`, and type. `times` are
/// milliseconds by job and type, `free` accelerators by type.
pub fn assign(times: &[Vec<Option<i64>>], free: &[usize]) -> Vec<(usize, usize)> {
    // Columns: type, accelerator of the type, position from the end starting with 1.
    let mut columns = Vec::new();
    for (kind, &count) in free.iter().enumerate().filter(|(_, count)| **count > 0) {
        let deepest = times.len().div_ceil(count) as i64;
        columns.extend((1..=deepest).flat_map(|position| (0..count).map(move |at| (kind, at, position))));
    }
    if times.is_empty() || columns.is_empty() {
        return Vec::new();
    }
    let cost = |(job, column): (usize, usize)| {
        let (kind, _, position) = columns[column];
        times[job][kind].map_or(NEVER_MILLIS, |millis| position * millis)
    };
    let (_, matched) = kuhn_munkres_min(&Matrix::from_fn(times.len(), columns.len(), cost));
    let mut heads = std::collections::BTreeMap::new();
    for (job, column) in matched.into_iter().enumerate() {
        let (kind, at, position) = columns[column];
        if times[job][kind].is_some() {
            // The head of a queue has the position farthest from the end.
            let head = heads.entry((kind, at)).or_insert((position, job));
            *head = (*head).max((position, job));
        }
    }
    let mut starts: Vec<(usize, usize)> = heads.into_iter().map(|((kind, _), (_, job))| (job, kind)).collect();
    starts.sort_unstable();
    starts
}

/// Places `job` on the type with room where the job is fastest, the first of equally fast types.
fn fastest(view: &ClusterView<'_>, free: &mut [u32], job: &JobView<'_>) -> Option<Placement> {
    let gpus = job.request().gpus;
    let kinds = view.cluster().type_ids().filter(|&kind| {
        let nodes = view.cluster().nodes.iter().zip(free.iter()).filter(|(node, _)| node.accelerator == kind);
        nodes.map(|(_, free)| free).sum::<u32>() >= gpus
    });
    let rated = kinds.filter_map(|kind| Some((job.rate_on(kind, gpus)?, kind)));
    let (_, kind) = rated.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    pack(view.cluster(), free, kind, gpus)
}
