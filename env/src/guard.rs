//! Every plan passes here, in simulation and live: no policy can break the cluster.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cluster::NodeId;
use crate::job::JobId;
use crate::plan::Plan;
use crate::view::ClusterView;

/// A rule that a plan breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum Violation {
    /// The job is not active.
    #[error("job {} is not active", .job.0)]
    UnknownJob {
        /// The job.
        job: JobId,
    },
    /// Two changes for one job.
    #[error("job {} is changed twice", .job.0)]
    Twice {
        /// The job.
        job: JobId,
    },
    /// The node does not exist.
    #[error("job {} is placed on node {node}, which does not exist", .job.0)]
    UnknownNode {
        /// The job.
        job: JobId,
        /// The node.
        node: NodeId,
    },
    /// All or nothing: the job cannot run on that many accelerators.
    #[error("job {} runs on {min} to {max} accelerators, not on {gpus}", .job.0)]
    Gang {
        /// The job.
        job: JobId,
        /// Accelerators given.
        gpus: u32,
        /// Fewest it runs on.
        min: u32,
        /// Most it can use.
        max: u32,
    },
    /// One job on two types of accelerator.
    #[error("job {} is placed on more than one type of accelerator", .job.0)]
    MixedTypes {
        /// The job.
        job: JobId,
    },
    /// More accelerators than the node has.
    #[error("node {node} would be short of {missing} accelerators")]
    Capacity {
        /// The node.
        node: NodeId,
        /// How many are missing.
        missing: u32,
    },
}

/// The check, with buffers of its own so that checking allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    balance: Vec<i64>,
    seen: Vec<JobId>,
}

impl Guard {
    /// A guard with room for plans of `changes` changes on `nodes` nodes.
    pub fn with_capacity(nodes: usize, changes: usize) -> Self {
        Self { balance: Vec::with_capacity(nodes), seen: Vec::with_capacity(changes) }
    }

    /// Checks `plan` against `view`: known jobs, each once; known nodes; gangs; one accelerator type a job; capacity after
    /// all releases.
    ///
    /// # Errors
    /// Every [`Violation`], in the order of the plan, capacity last.
    pub fn check(&mut self, view: &ClusterView<'_>, plan: &Plan) -> Result<(), Vec<Violation>> {
        let mut violations = Vec::new();
        self.balance.clear();
        self.balance.extend(view.free().iter().map(|&free| i64::from(free)));
        self.seen.clear();
        self.seen.extend(plan.changes.iter().map(|change| change.job));
        self.seen.sort_unstable();
        violations.extend(
            self.seen.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| Violation::Twice { job: pair[0] }),
        );
        for change in &plan.changes {
            let job = change.job;
            let Some(known) = view.job(job) else {
                violations.push(Violation::UnknownJob { job });
                continue;
            };
            for held in known.state.placement.slices() {
                self.balance[held.node as usize] += i64::from(held.gpus);
            }
            let (min, max, gpus) = (known.min_gpus(), known.request().max_gpus(), change.placement.gpus());
            if gpus > 0 && !(min..=max).contains(&gpus) {
                violations.push(Violation::Gang { job, gpus, min, max });
            }
            let mut accelerator = None;
            for slice in change.placement.slices() {
                let Some(node) = view.cluster().nodes.get(slice.node as usize) else {
                    violations.push(Violation::UnknownNode { job, node: slice.node });
                    continue;
                };
                self.balance[slice.node as usize] -= i64::from(slice.gpus);
                if *accelerator.get_or_insert(node.accelerator) != node.accelerator {
                    violations.push(Violation::MixedTypes { job });
                }
            }
        }
        for (node, &balance) in self.balance.iter().enumerate().filter(|(_, balance)| **balance < 0) {
            violations.push(Violation::Capacity { node: node as NodeId, missing: balance.unsigned_abs() as u32 });
        }
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }
}
