//! The same accelerator time at three levels: of the cluster, by node, by application. All in whole GPU-milliseconds, so sums are exact.

use std::collections::BTreeMap;

use goodput_env::sim::{Outcome, Scenario};

/// Accelerator time that jobs held, GPU-milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// In the cluster.
    pub cluster: i64,
    /// By node.
    pub nodes: Vec<i64>,
    /// By application; what the trace does not name is `""`. Accelerators that two jobs share count for both.
    pub applications: BTreeMap<String, i64>,
    /// Held by completed jobs until the next round gave it back, less what shared accelerators count twice.
    pub unattributed: i64,
}

impl Levels {
    /// Of a finished run.
    pub fn new(scenario: &Scenario, outcome: &Outcome) -> Self {
        let mut applications: BTreeMap<String, i64> = BTreeMap::new();
        for job in &outcome.jobs {
            *applications.entry(scenario.workload.model_name(job.job).into()).or_default() += job.attained_gpu_millis;
        }
        let attributed: i64 = applications.values().sum();
        let (cluster, nodes) = (outcome.gpu_millis, outcome.node_gpu_millis.clone());
        Self { cluster, nodes, applications, unattributed: cluster - attributed }
    }
}
