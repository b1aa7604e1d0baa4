//! Use of accelerators by jobs that ask for parts of them.

use goodput_env::scenario::Scenario;
use goodput_env::sim::{JobRecord, Outcome, SharedUse};

/// Use of accelerators in a run of which some job asks for a part of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CardFacts {
    /// Compute that jobs had asked for while they held accelerators, in accelerator-seconds. A job that was given a
    /// whole accelerator counts with the part that it asked for.
    pub asked_gpu_secs: f64,
    /// Device memory that such jobs had asked for over that of the cluster times the makespan; `None` where the memory
    /// of a type is not known.
    pub asked_memory: Option<f64>,
    /// Use of the cards on which jobs had parts.
    pub shared: SharedUse,
}

/// Use of accelerators in a run; `None` where no job asks for a part of one.
pub(super) fn card_facts(scenario: &Scenario, outcome: &Outcome, makespan_secs: f64) -> Option<CardFacts> {
    let jobs = &scenario.workload.jobs;
    if jobs.iter().all(|job| job.request.share.is_none()) {
        return None;
    }
    let share = |job: &JobRecord| jobs[job.job.index()].request.share;
    let asked = |job: &JobRecord| match share(job) {
        Some(share) => f64::from(share.compute_percent) / 100.0 * job.executed.as_secs_f64(),
        None => job.attained_gpu_millis as f64 / 1e3,
    };
    Some(CardFacts {
        asked_gpu_secs: outcome.jobs.iter().map(asked).sum(),
        asked_memory: asked_memory(scenario, outcome, makespan_secs),
        shared: outcome.shared,
    })
}

/// Whole accelerators count with all of their memory.
fn asked_memory(scenario: &Scenario, outcome: &Outcome, makespan_secs: f64) -> Option<f64> {
    let (cluster, jobs) = (&scenario.cluster, &scenario.workload.jobs);
    let memory = |node: &goodput_env::cluster::Node| cluster.types.get(node.accelerator.index())?.memory_mib;
    let each = cluster.nodes.iter().map(|node| Some(f64::from(memory(node)?) * f64::from(node.gpus)));
    let total = each.sum::<Option<f64>>().filter(|total| *total > 0.0 && makespan_secs > 0.0)?;
    let mean = total / f64::from(cluster.total_gpus());
    let asked = |job: &JobRecord| match jobs[job.job.index()].request.share {
        Some(share) => f64::from(share.memory_mib) * job.executed.as_secs_f64(),
        None => mean * job.attained_gpu_millis as f64 / 1e3,
    };
    Some(outcome.jobs.iter().map(asked).sum::<f64>() / (total * makespan_secs))
}
