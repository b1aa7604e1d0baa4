//! Faults: causes, rates and times of repair.
//!
//! Faults of a node come at exponential times. A draw of a node belongs to (seed, node, number of the
//! fault), and a draw of a job to (seed, job, attempt). Every policy therefore meets equal faults, and a
//! change in one place moves no fault elsewhere. Repairs do not depend on what runs, so later faults do
//! not either.
//!
//! **Sources.** Rate and causes: the 419 unexpected interruptions in 54 days of Llama 3 405B on 16,384
//! H100 (Meta 2024), which is one in 6,335 h for a server with eight accelerators. Unsuccessful jobs:
//! Jeon et al., ATC'19 (Philly). Nodes that fail again and again: Kokolis et al., HPCA'25. Times of
//! repair, of degraded network and of bugs are assumptions.

use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::NodeId;
use crate::placement::Placement;
use crate::seed::{Stream, keyed, standard_normal};
use crate::time::SimTime;

/// Hours between faults of a server with eight accelerators, of any cause.
pub const PUBLISHED_MTBF_HOURS: f64 = 6000.0;

/// Accelerators of the server that [`PUBLISHED_MTBF_HOURS`] speaks of.
const ACCELERATORS: f64 = 8.0;

/// Cause of a fault, which says what is out of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// One accelerator, until it is repaired.
    Accelerator,
    /// All of a node, until it is repaired.
    Node,
    /// A part of a node's network bandwidth, for a while.
    Network,
    /// The scheduler: nothing is decided until it is back. The node does not matter.
    Scheduler,
}

/// Division of faults by cause: weights, of which only the ratio matters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Causes {
    /// Weight of faults of one accelerator.
    pub accelerator: f64,
    /// Weight of faults of a whole node.
    pub node: f64,
    /// Weight of faults of a node's network.
    pub network: f64,
}

impl Default for Causes {
    /// Llama 3: GPU 148, HBM3 72, SRAM 19 and system processor 17; network switch or cable 35; the
    /// rest of 419.
    fn default() -> Self {
        Self { accelerator: 256.0, node: 128.0, network: 35.0 }
    }
}

impl Causes {
    fn shares(self) -> [f64; 3] {
        let total = self.accelerator + self.node + self.network;
        [self.accelerator, self.node, self.network].map(|weight| weight / total)
    }
}

/// A log-normal time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogNormal {
    /// Median of the time, seconds.
    pub median_secs: f64,
    /// Standard deviation of the logarithm.
    pub sigma: f64,
}

impl LogNormal {
    pub(crate) fn draw(self, first: f64, second: f64) -> SimTime {
        SimTime::from_secs_f64(self.median_secs * (self.sigma * standard_normal(first, second)).exp())
    }
}

/// Degraded network of a node: the slowdown and how long it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Degradation {
    /// Factor by which distributed jobs on the node take longer to synchronise.
    pub factor: f64,
    /// Shortest time that a degradation lasts, seconds.
    pub shortest_secs: f64,
    /// Longest time that a degradation lasts, seconds. Times in between are equally likely.
    pub longest_secs: f64,
}

impl Default for Degradation {
    fn default() -> Self {
        Self { factor: 2.0, shortest_secs: 300.0, longest_secs: 1800.0 }
    }
}

/// Nodes that fail far more often than others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lemons {
    /// Share of nodes, 0 to 1.
    pub share: f64,
    /// Factor by which their faults are more frequent.
    pub factor: f64,
}

/// Jobs that fail by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bugs {
    /// Share of jobs that never succeed.
    pub share: f64,
    /// Tenant that has the failing jobs; absent: all tenants.
    pub tenant: Option<u32>,
    /// Number of times that a job is tried again before it is given up.
    pub retries: u32,
    /// Running time of an attempt until it fails, if it is not at its end before.
    pub after: LogNormal,
}

impl Default for Bugs {
    fn default() -> Self {
        Self { share: 0.172, tenant: None, retries: 3, after: LogNormal { median_secs: 300.0, sigma: 1.5 } }
    }
}

/// A fault that is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scripted {
    /// Time of the fault, seconds from the start of the run.
    pub at_secs: f64,
    /// Cause of the fault.
    pub cause: Cause,
    /// Node of the fault: an index into the cluster's nodes.
    #[serde(default)]
    #[schemars(with = "u32")]
    pub node: NodeId,
    /// Time until the repair, seconds; absent: no repair.
    #[serde(default)]
    pub lasts_secs: Option<f64>,
}

/// All faults of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FaultModel {
    /// Mean hours between faults of a node with eight accelerators, in proportion for other nodes.
    /// With an infinite value only scripted faults happen.
    pub mtbf_hours: f64,
    /// Division of the faults by cause.
    pub causes: Causes,
    /// Time of repair of an accelerator or a node.
    pub repair: LogNormal,
    /// Effect of a degraded network.
    pub degradation: Degradation,
    /// Nodes that fail more often; absent: all alike.
    pub lemons: Option<Lemons>,
    /// Jobs that fail by themselves; absent: none.
    pub bugs: Option<Bugs>,
    /// Faults to the second.
    pub script: Vec<Scripted>,
}

impl Default for FaultModel {
    fn default() -> Self {
        Self {
            mtbf_hours: PUBLISHED_MTBF_HOURS,
            causes: Causes::default(),
            repair: LogNormal { median_secs: 3600.0, sigma: 1.0 },
            degradation: Degradation::default(),
            lemons: None,
            bugs: None,
            script: Vec::new(),
        }
    }
}

/// One fault as it was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnFault {
    /// Time since the node was last whole or last struck, whichever is later.
    pub gap: SimTime,
    /// Cause of the fault.
    pub cause: Cause,
    /// Accelerator that fails, as a share in [0, 1) of the accelerators in service.
    pub victim: f64,
    /// Time until the repair.
    pub lasts: SimTime,
}

impl FaultModel {
    /// Nothing but `script`.
    pub fn scripted(script: Vec<Scripted>) -> Self {
        Self { mtbf_hours: f64::INFINITY, script, ..Self::default() }
    }

    /// Fault `number` of `node`, which has `gpus` accelerators; `None` where nothing breaks by chance.
    pub fn strike(&self, seed: u64, node: NodeId, number: u32, gpus: u32) -> Option<DrawnFault> {
        if self.mtbf_hours == f64::INFINITY {
            return None;
        }
        let mean = 3600.0 * self.mtbf_hours * ACCELERATORS / (f64::from(gpus) * self.frailty(seed, node));
        let mut rng = keyed(seed, Stream::Faults, u64::from(node.0) << 32 | u64::from(number));
        let [gap, cause, victim, first, second]: [f64; 5] = std::array::from_fn(|_| rng.random());
        // One less the draw is above 0, so its logarithm is finite.
        let gap = SimTime::from_secs_f64(-mean * (1.0 - gap).ln());
        let [accelerator, whole, _] = self.causes.shares();
        let cause = match cause {
            cause if cause < accelerator => Cause::Accelerator,
            cause if cause < accelerator + whole => Cause::Node,
            _ => Cause::Network,
        };
        let Degradation { shortest_secs, longest_secs, .. } = self.degradation;
        let lasts = match cause {
            Cause::Network => SimTime::from_secs_f64(shortest_secs + (longest_secs - shortest_secs) * first),
            _ => self.repair.draw(first, second),
        };
        Some(DrawnFault { gap, cause, victim, lasts })
    }

    fn frailty(&self, seed: u64, node: NodeId) -> f64 {
        let Some(lemons) = self.lemons else { return 1.0 };
        let draw: f64 = keyed(seed, Stream::Faults, LEMON | u64::from(node.0)).random();
        if draw < lemons.share { lemons.factor } else { 1.0 }
    }

    /// Mean seconds between faults that stop a job on `placement`, by the rates of nodes that are no
    /// lemons; infinite where nothing breaks by chance. `gpus_of` gives the accelerators of a node.
    pub fn job_mtbf_secs(&self, placement: &Placement, gpus_of: impl Fn(NodeId) -> u32) -> f64 {
        let [accelerator, node, _] = self.causes.shares();
        let slices = placement.slices().iter().map(|slice| {
            let gpus = f64::from(gpus_of(slice.node).max(slice.gpus));
            gpus / ACCELERATORS * (node + accelerator * f64::from(slice.gpus) / gpus)
        });
        3600.0 * self.mtbf_hours / slices.sum::<f64>()
    }
}

/// Key bit of draws that belong to a job. Draws of a node use the lower 63 bits as (node, number).
pub(crate) const JOB_KEY: u64 = 1 << 63;
const LEMON: u64 = 0b11 << 62;

/// Faults of a run so far, as the adaptive interval counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Faults that took an accelerator.
    pub accelerators: u32,
    /// Faults that took a node.
    pub nodes: u32,
}

impl Seen {
    /// Mean seconds between faults that stop a job on `nodes` nodes with `gpus` accelerators, estimated
    /// after `elapsed` in a cluster of `all_nodes` with `all_gpus`. The published rate counts as one
    /// fault, divided by cause as published. The estimate is the posterior mean under a gamma prior.
    pub fn job_mtbf_secs(self, elapsed: SimTime, (all_nodes, all_gpus): (u32, u32), (nodes, gpus): (u32, u32)) -> f64 {
        let [accelerator, node, _] = Causes::default().shares();
        let (hours, prior) = (elapsed.as_secs_f64() / 3600.0, PUBLISHED_MTBF_HOURS);
        let by_node = (node + f64::from(self.nodes)) / (prior + hours * f64::from(all_nodes));
        let by_gpu =
            (accelerator + f64::from(self.accelerators)) / (prior * ACCELERATORS + hours * f64::from(all_gpus));
        3600.0 / (f64::from(nodes) * by_node + f64::from(gpus) * by_gpu)
    }
}
