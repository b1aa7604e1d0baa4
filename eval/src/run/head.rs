//! Head of a run: what statistics take from it.

use goodput_env::scenario::Batching;
use serde::{Deserialize, Serialize};

use super::policy_run::PolicyRun;
use crate::metrics::Measures;

/// Values of the metrics of a run, and the facts of its scenario that a summary names. Some hundred bytes, so that all
/// heads of a study fit into memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHead {
    /// Information level of the run.
    pub information: String,
    /// Choice of the batch sizes of jobs.
    pub batching: Batching,
    /// Accelerators of the cluster.
    pub cluster_gpus: u32,
    /// Nodes of the cluster.
    pub cluster_nodes: usize,
    /// Number of jobs.
    pub jobs: usize,
    /// Whether a job asks for a part of an accelerator.
    pub parts: bool,
    /// Mean completion time where every job is complete, seconds.
    pub complete_jct_secs: Option<f64>,
    /// Values of all metrics.
    pub measures: Measures,
}

impl RunHead {
    /// Head of a finished run.
    pub fn of(run: &PolicyRun) -> Self {
        let (scenario, jobs) = (&run.scenario, &run.outcome.jobs);
        let secs: Option<Vec<f64>> = jobs.iter().map(crate::metrics::jct_secs).collect();
        Self {
            information: scenario.options.information.to_string(),
            batching: scenario.options.batching,
            cluster_gpus: scenario.cluster.total_gpus(),
            cluster_nodes: scenario.cluster.nodes.len(),
            jobs: jobs.len(),
            parts: scenario.workload.jobs.iter().any(|job| job.request.share.is_some()),
            complete_jct_secs: secs.map(|secs| secs.iter().sum::<f64>() / secs.len().max(1) as f64),
            measures: run.measures.clone(),
        }
    }
}
