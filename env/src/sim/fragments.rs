//! Free accelerators that the widest waiting job cannot use.
//!
//! A node is a *fragment* for a job when it has fewer accelerators free than the job needs there.
//! All accelerators that are free on the node then count (FGD, ATC'23, section 3.1, with the widest
//! waiting job in place of the typical one). A job needs on a node the smallest number of
//! accelerators that it starts on, at most as many as the node has in service. Jobs may span nodes,
//! so a whole free node is no fragment for any job, and without a waiting job there is no fragment.
//! Nodes that training may not use do not count.
//!
//! Kept by number of free accelerators, so that a change costs work for the nodes it touches and
//! time that passes costs at most one addition for each accelerator of the largest node.

use serde::{Deserialize, Serialize};

use super::Simulator;
use crate::cluster::NodeId;
use crate::job::JobId;
use crate::scenario::Scenario;
use crate::state::ClusterState;
use crate::time::SimTime;

/// Fragmentation from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentChange {
    /// Moment of the change.
    pub at: SimTime,
    /// Free accelerators that the widest waiting job cannot use.
    pub gpus: u32,
}

/// Free accelerators that fragments hold, by node and by number of free accelerators.
#[derive(Clone, Debug, Default)]
pub(super) struct Fragments {
    /// By node: its free accelerators where some of it is taken and training may use it, else 0.
    counted: Vec<u32>,
    /// By number of free accelerators: nodes counted with it.
    nodes: Vec<u32>,
    /// By accelerators that a job needs on a node: jobs that wait.
    waiting: Vec<u32>,
    /// Number of fragmented accelerators; `None` where a node or a job changed since it was
    /// computed.
    known: Option<u32>,
    /// Integral over time, GPU-milliseconds.
    pub millis: i64,
    /// Changes, where the run logs them.
    pub log: Vec<FragmentChange>,
}

impl Fragments {
    pub fn new(scenario: &Scenario) -> Self {
        let (nodes, widest) = (scenario.cluster.nodes.len(), scenario.cluster.gpus_per_node() as usize);
        let mut by_free = vec![0; widest + 1];
        by_free[0] = nodes as u32;
        Self { counted: vec![0; nodes], nodes: by_free, waiting: vec![0; widest + 1], ..Self::default() }
    }

    fn count(&mut self, node: NodeId, free: u32) {
        let before = std::mem::replace(&mut self.counted[node.index()], free);
        if before != free {
            self.nodes[before as usize] -= 1;
            self.nodes[free as usize] += 1;
            self.known = None;
        }
    }

    /// Free accelerators on nodes that are too full for the widest waiting job.
    fn gpus(&self) -> u32 {
        let widest = self.waiting.iter().rposition(|&jobs| jobs > 0).unwrap_or(0);
        (0..widest as u32).zip(&self.nodes).map(|(free, nodes)| free * nodes).sum()
    }

    /// A job begins to wait, or no longer does.
    pub fn count_waiting(&mut self, state: &ClusterState, job: JobId, by: i32) {
        let fewest = state.scenario.workload.jobs[job.index()].request.min_gpus() as usize;
        let widest = self.waiting.len() - 1;
        let jobs = &mut self.waiting[fewest.min(widest)];
        *jobs = jobs.wrapping_add_signed(by);
        self.known = None;
    }

    /// Something changed on `node` that says whether it is a fragment.
    pub fn recount(&mut self, state: &ClusterState, node: NodeId) {
        let cluster = &*state.cluster;
        let (free, whole) = (state.idle.on(node), cluster.nodes[node.index()].gpus);
        let partly = free < whole && state.loans.may_train(cluster, node);
        self.count(node, if partly { free } else { 0 });
    }

    /// Time passes from `state.now` on.
    pub fn advance(&mut self, state: &ClusterState, millis: i64) {
        if millis == 0 {
            return;
        }
        if self.known.is_none() {
            let gpus = self.gpus();
            self.known = Some(gpus);
            // Logged when time passes, so that all changes of one moment leave one entry.
            let last = self.log.last().map_or(0, |last| last.gpus);
            if state.scenario.options.log_allocations && gpus != last {
                self.log.push(FragmentChange { at: state.now, gpus });
            }
        }
        self.millis += i64::from(self.known.unwrap_or(0)) * millis;
    }
}

impl Simulator {
    /// Free accelerators that the widest waiting job cannot use, as they lie now.
    pub fn fragmented_gpus(&self) -> u32 {
        self.records.fragments.known.unwrap_or_else(|| self.records.fragments.gpus())
    }

    /// Accelerators of `node` are free again.
    pub(super) fn add_free(&mut self, node: NodeId, gpus: u32) {
        self.state.idle.release(node, gpus);
        self.records.fragments.recount(&self.state, node);
    }

    /// Accelerators of `node` are no longer free. Between two moves of a plan there may be fewer
    /// than are taken, so they are kept in wrapping numbers; the guard has seen that the whole plan
    /// fits.
    pub(super) fn take_free(&mut self, node: NodeId, gpus: u32) {
        self.state.idle.take(node, gpus);
        self.records.fragments.recount(&self.state, node);
    }
}
