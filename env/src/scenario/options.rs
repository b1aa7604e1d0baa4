//! Behaviour of a run: decision points, costs of restarts, knowledge of policies.

use serde::{Deserialize, Serialize};

use super::{Allocation, Batching, Information};
use crate::cluster::{Cluster, NodeId};
use crate::model::sharing::{Card, Isolation};
use crate::model::{AgentFit, Checkpointing, FaultModel, Rental, SwitchCost};
use crate::time::SimTime;

/// Moments at which the policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// At each multiple of this time while there are active jobs.
    pub period: Option<SimTime>,
    /// On each arrival and completion, and when the policy itself asks for it
    /// ([`crate::policy::Policy::wake_at`]).
    pub on_churn: bool,
}

/// Moment at which a completed job gives its accelerators back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Release {
    /// At the completion itself.
    Immediately,
    /// At the next scheduling round (Pollux artifact).
    NextRound,
}

/// To what epoch ends are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EpochEnd {
    /// The clock's resolution.
    Millisecond,
    /// Whole seconds, halves to even (Pollux artifact).
    WholeSecond,
}

/// Way in which a running job changes its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Resize {
    /// Stop, save, and start again on the new accelerators.
    #[default]
    StopRestart,
    /// Go on with the accelerators that the job keeps until the new ones are ready. A command that
    /// comes in between cancels the one under way.
    Overlapped,
    /// Overlapped, but a command waits for all commands before it; each takes a whole start-up.
    OverlappedSerial,
    /// Overlapped, but a command waits for the one under way and replaces any other that waits.
    OverlappedMerge,
}

/// Life of inference instances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstanceOptions {
    /// Cost of starting an instance, by the application that its model is a variant of.
    pub cold_start: SwitchCost,
    /// Factor on the time of protection; 0 frees an instance as soon as it has answered.
    pub protect_times: f64,
    /// Added to the time of protection (the artifact counts one tick of a second too many).
    pub protect_more: SimTime,
    /// Whether an instance stays after its request. Without that every request pays a cold start.
    pub keep: bool,
    /// Whether a free instance that loses its accelerator to a job at a scheduling round is known until
    /// something else happens: a request that comes first then starts warm, wherever it is placed (DeepBoot
    /// artifact).
    pub evicted_answer: bool,
}

impl InstanceOptions {
    /// Options as published for DeepBoot.
    pub const DEEPBOOT: Self = Self {
        cold_start: SwitchCost::DeepbootInfer,
        protect_times: 1.0,
        protect_more: SimTime::ZERO,
        keep: true,
        evicted_answer: false,
    };

    /// Time for which an instance is protected after a request: 30 s, and 15 s more for each of the
    /// requests before that found it so, at most 120 s.
    pub fn protection(&self, hits: u32) -> SimTime {
        let secs = (30 + 15 * hits.min(6)).min(120);
        SimTime::from_secs_f64(f64::from(secs) * self.protect_times) + self.protect_more
    }
}

/// Sharing of one accelerator by jobs that ask for a part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CardSharing {
    /// Mechanism that isolates jobs on one card.
    pub isolation: Isolation,
    /// Most jobs on one card at a time.
    pub slots: u32,
}

impl CardSharing {
    /// Compute limits by CUDA MPS, at most 48 clients a card (NVIDIA Multi-Process Service, Volta and later), and a
    /// tenth of the speed lost beside other jobs that use the whole card, which is an assumption.
    pub const MPS: Self = Self { isolation: Isolation::Mps { contention: 0.1 }, slots: 48 };

    /// Card of `node` before the first share of it is taken. Its memory is not bounded where the type does not tell it.
    pub fn blank(&self, cluster: &Cluster, node: NodeId) -> Card {
        let kind = cluster.types.get(cluster.type_of(node).index());
        Card::new(kind.and_then(|kind| kind.memory_mib).unwrap_or(u32::MAX), self.slots)
    }
}

/// Options of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SimOptions {
    /// Moments at which the policy is asked.
    pub rounds: Rounds,
    /// Moment at which completed jobs give accelerators back.
    pub release: Release,
    /// Rounding of epoch ends.
    pub epoch_end: EpochEnd,
    /// Cost of changing a job's placement.
    pub switch_cost: SwitchCost,
    /// Way in which a running job changes its size.
    pub resize: Resize,
    /// Whether a job that keeps its accelerator type and its replicas per node changes nodes for
    /// free, as in simulators that do not tell equal nodes apart (Sia artifact). It is no restart
    /// then.
    pub free_moves: bool,
    /// Life of inference instances, in workloads with requests.
    pub instances: InstanceOptions,
    /// Slowdown, in [0, 1), of distributed jobs that share a node with another one.
    pub interference: f64,
    /// Sharing of cards, in workloads with jobs that ask for a part of one.
    pub sharing: CardSharing,
    /// Part of the ideal speed that a job on accelerators of several types keeps, above 0 and at most 1; where
    /// `None`, a job holds one type.
    pub mixing: Option<f64>,
    /// Choice of the batch sizes of jobs.
    pub batching: Batching,
    /// Whether agents also choose batch sizes again when a job arrives and when a request has been answered, and
    /// not at decisions only (DeepBoot artifact).
    pub batches_at_events: bool,
    /// Knowledge that policies have of jobs.
    pub information: Information,
    /// Search by which jobs' agents fit their models to what they measure.
    pub agent_fit: AgentFit,
    /// Whether jobs of one application share what their agents measure, so that a job need not find
    /// out by itself how fast others have run.
    pub shared_profiles: bool,
    /// Whether policies are also asked as soon as a job works again after a restart, where they are asked on churn.
    pub wake_after_restarts: bool,
    /// Way in which tenants share the cluster; where `None`, by their quotas as declared, and policies preempt by
    /// their own rules.
    pub allocation: Option<Allocation>,
    /// Model of faults; nothing breaks where `None`.
    pub faults: Option<FaultModel>,
    /// Checkpoints of jobs; where `None`, only a job that is stopped by plan saves its work.
    pub checkpoint: Option<Checkpointing>,
    /// Rented nodes; where `None`, all nodes are there all the time and nothing is paid.
    pub rental: Option<Rental>,
    /// The run is truncated here.
    pub horizon: Option<SimTime>,
    /// Whether each change of an allocation is logged, for timelines and Gantt charts.
    pub log_allocations: bool,
}

impl SimOptions {
    /// Decisions on churn and every 60 s, accelerators released at once, 30 s restarts, catalogued
    /// models.
    pub fn standard() -> Self {
        Self {
            rounds: Rounds { period: Some(SimTime::from_secs(60)), on_churn: true },
            release: Release::Immediately,
            epoch_end: EpochEnd::Millisecond,
            switch_cost: SwitchCost::Constant { millis: 30_000 },
            resize: Resize::StopRestart,
            free_moves: false,
            instances: InstanceOptions::DEEPBOOT,
            interference: 0.0,
            sharing: CardSharing::MPS,
            mixing: None,
            batching: Batching::Catalog,
            batches_at_events: false,
            information: Information::Estimate { sigma: 0.5 },
            agent_fit: AgentFit::Converged,
            shared_profiles: false,
            wake_after_restarts: false,
            allocation: None,
            faults: None,
            checkpoint: None,
            rental: None,
            horizon: None,
            log_allocations: false,
        }
    }
}
