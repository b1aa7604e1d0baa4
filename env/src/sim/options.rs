//! How a run behaves: when decisions fall, what restarts cost, what policies know.

use serde::{Deserialize, Serialize};

use super::requests::InstanceOptions;
use super::resize::Resize;
use crate::model::{Checkpointing, FaultModel, SwitchCost};
use crate::time::SimTime;
use crate::view::{Batching, Information};

/// When the policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// At each multiple of this time while there are active jobs.
    pub period: Option<SimTime>,
    /// On each arrival and completion, and when the policy itself asks for it ([`crate::policy::Policy::wake_at`]).
    pub on_churn: bool,
}

/// When a completed job gives its accelerators back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Release {
    /// At completion.
    Immediately,
    /// At the next scheduling round (Pollux artifact).
    NextRound,
}

/// To what epoch ends are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EpochEnd {
    /// The clock's resolution.
    Millisecond,
    /// Whole seconds, halves to even (Pollux artifact).
    WholeSecond,
}

/// Options of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SimOptions {
    /// When the policy is asked.
    pub rounds: Rounds,
    /// When completed jobs give accelerators back.
    pub release: Release,
    /// Rounding of epoch ends.
    pub epoch_end: EpochEnd,
    /// Cost of changing a job's placement.
    pub switch_cost: SwitchCost,
    /// How a running job's change of size is carried out.
    pub resize: Resize,
    /// Whether a job that keeps its accelerator type and its replicas per node changes nodes for free, as in simulators that do not
    /// tell equal nodes apart (Sia artifact). It is no restart then.
    pub free_moves: bool,
    /// How inference instances live, in workloads with requests.
    pub instances: InstanceOptions,
    /// Slowdown, in [0, 1), of distributed jobs that share a node with another one.
    pub interference: f64,
    /// How jobs choose their batch size.
    pub batching: Batching,
    /// What policies know.
    pub information: Information,
    /// Whether jobs of one application share what their agents measure, so that a job need not find out by itself how fast others have run.
    pub shared_profiles: bool,
    /// What breaks; nothing where `None`.
    pub faults: Option<FaultModel>,
    /// How jobs write checkpoints; where `None`, only a job that is stopped by plan saves its work.
    pub checkpoint: Option<Checkpointing>,
    /// The run is truncated here.
    pub horizon: Option<SimTime>,
    /// Whether each change of an allocation is logged, for timelines and Gantt charts.
    pub log_allocations: bool,
}

impl SimOptions {
    /// Decisions on churn and every 60 s, accelerators released at once, 30 s restarts, catalogued models.
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
            batching: Batching::Catalog,
            information: Information::Estimate { sigma: 0.5 },
            shared_profiles: false,
            faults: None,
            checkpoint: None,
            horizon: None,
            log_allocations: false,
        }
    }

    /// The conventions of the Sia SOSP'23 artifact: those of Pollux's with restarts by application and free moves between equal
    /// nodes. Gavel's rounds in it take 360 s.
    pub fn sia_sosp23(batching: Batching, information: Information) -> Self {
        Self { switch_cost: SwitchCost::SiaFull, free_moves: true, ..Self::pollux_osdi21(batching, information) }
    }

    /// The conventions of the Pollux OSDI'21 artifact: rounds of 60 s, accelerators released at round ends, epoch ends at
    /// whole seconds, 30 s restarts. Batching and information are the policy's own, as published.
    pub fn pollux_osdi21(batching: Batching, information: Information) -> Self {
        Self {
            rounds: Rounds { period: Some(SimTime::from_secs(60)), on_churn: false },
            release: Release::NextRound,
            epoch_end: EpochEnd::WholeSecond,
            batching,
            information,
            ..Self::standard()
        }
    }
}
