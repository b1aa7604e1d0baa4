//! Tiresias (Gu et al., NSDI'19): jobs of unknown length, ranked by the accelerator time that they
//! have received so far.
//!
//! Tiresias-L is discretised two-dimensional least attained service: a job falls from queue to
//! queue as its accelerator time reaches their limits. Tiresias-G orders each queue by the Gittins
//! index of accelerator time, which needs a distribution of it. Placement goes by the model's
//! tensor sizes. `las` is the one-dimensional form, which counts seconds only; `tiresias` has the
//! settings under which Pollux (OSDI'21) and later papers compare with it.

mod line;
mod parameters;
mod queues;
mod reserved;
mod service;

pub use parameters::{GittinsQueueParameters, QueueLimits, QueueParameters, TimeQueueParameters};
pub use queues::Tiresias;
pub use reserved::ReservedQueues;

use crate::heuristic::gittins::{ArtifactTable, GittinsHorizon, LengthSample};
use crate::heuristic::parameters::Parameterised;
use crate::heuristic::{ListedPolicy, Traits};
use crate::placement::{Packer, Skew};

const PREEMPTIVE: Traits = Traits { preemptive: true, elastic: false, heterogeneous: false };

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    ListedPolicy {
        name: "tiresias",
        about: "least attained accelerator time first, in two queues of 16 GPU-hours",
        source: "Gu et al., NSDI 2019; settings of the Pollux artifact",
        traits: PREEMPTIVE,
        constructor: &Parameterised {
            defaults: QueueParameters::pollux_artifact,
            build: |parameters, _| Box::new(Tiresias::new(parameters.applied(TiresiasConfig::pollux_artifact()))),
        },
        replica: None,
    },
    ListedPolicy {
        name: "tiresias-l",
        about: "least attained accelerator time first, in three queues; models with one large tensor kept on few nodes",
        source: "Gu et al., NSDI 2019; queue limits of its simulator",
        traits: PREEMPTIVE,
        constructor: &Parameterised {
            defaults: QueueParameters::simulator,
            build: |parameters, _| {
                Box::new(Tiresias::new(parameters.applied(TiresiasConfig::simulator(ServiceMeasure::GpuTime))))
            },
        },
        replica: Some(|_| Box::new(Tiresias::new(TiresiasConfig::artifact(ServiceMeasure::GpuTime)))),
    },
    ListedPolicy {
        name: "tiresias-g",
        about: "as tiresias-l, each queue by the Gittins index of the accelerator time of completed jobs",
        source: "Gu et al., NSDI 2019; queue limits of its simulator",
        traits: PREEMPTIVE,
        constructor: &Parameterised {
            defaults: GittinsQueueParameters::default,
            build: |parameters, _| Box::new(Tiresias::new(parameters.config())),
        },
        replica: None,
    },
    ListedPolicy {
        name: "las",
        about: "least attained time first, whatever the number of accelerators, in three queues",
        source: "`dlas` of the Tiresias simulator; Gu et al., NSDI 2019",
        traits: PREEMPTIVE,
        constructor: &Parameterised {
            defaults: TimeQueueParameters::default,
            build: |parameters, _| {
                Box::new(Tiresias::new(parameters.applied(TiresiasConfig::simulator(ServiceMeasure::Time))))
            },
        },
        replica: None,
    },
];

/// Queue limits of the public simulator, GPU-seconds (or seconds). The simulator lists a third one,
/// 18,000, and uses two.
pub const SIMULATOR_LIMITS: [u32; 2] = [3250, 7200];

/// Measure of a job's attained service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceMeasure {
    /// Accelerators times seconds: two-dimensional (2D-LAS).
    GpuTime,
    /// Seconds alone (LAS).
    Time,
}

/// Order of the jobs inside a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueOrder {
    /// By entry into the queue.
    Entry,
    /// By descending Gittins index of the job's service, then (submission, id).
    Gittins(LengthSample, GittinsHorizon),
    /// By the public simulator's table, then submission; for reproduction only.
    Artifact(ArtifactTable),
}

/// Moment of a demotion, where the run lets the policy choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemotionTiming {
    /// As soon as the job's service reaches the limit.
    Due,
    /// As in the public simulator, which divides (limit - seconds run) by the accelerators, as if
    /// the seconds were GPU-seconds. After an interruption it demotes too late.
    Artifact,
}

/// Choice of nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum TiresiasPlacement {
    /// By one scheme for every job.
    Packer(Packer),
    /// By the tensor sizes of the model.
    Skew(Skew),
}

/// Settings of [`Tiresias`].
#[derive(Clone, Debug, PartialEq)]
pub struct TiresiasConfig {
    /// Attained service at which a job leaves each queue but the last, GPU-seconds (or seconds, by
    /// `service`); ascending.
    pub limits: Vec<u32>,
    /// Measure of attained service.
    pub service: ServiceMeasure,
    /// Order of the jobs inside a queue.
    pub order: QueueOrder,
    /// Starvation knob: a waiting job returns to the first queue, its service forgiven, once it has
    /// waited this many times the seconds it ran; 0 never.
    pub starvation_knob: f64,
    /// After each decision running jobs move ahead of waiting ones inside their queue (Tiresias
    /// simulator; the Pollux artifact does not).
    pub running_first: bool,
    /// Moment of demotions.
    pub demotion: DemotionTiming,
    /// Choice of nodes.
    pub placing: TiresiasPlacement,
}

impl TiresiasConfig {
    /// One queue a limit and one more, in the order of entry, running jobs first, on the emptiest
    /// nodes, without promotion.
    pub fn queues(limits: &[u32], service: ServiceMeasure) -> Self {
        Self {
            limits: limits.to_vec(),
            service,
            order: QueueOrder::Entry,
            starvation_knob: 0.0,
            running_first: true,
            demotion: DemotionTiming::Due,
            placing: TiresiasPlacement::Packer(Packer::MostFreeFirst),
        }
    }

    /// Settings of the Pollux OSDI'21 artifact: two queues, demotion after 16 GPU-hours, no
    /// promotion.
    pub fn pollux_artifact() -> Self {
        Self { running_first: false, ..Self::queues(&[57_600], ServiceMeasure::GpuTime) }
    }

    /// Settings of the public simulator under the paper's rule, placed by tensor sizes.
    pub fn simulator(service: ServiceMeasure) -> Self {
        Self { placing: TiresiasPlacement::Skew(Skew::default()), ..Self::queues(&SIMULATOR_LIMITS, service) }
    }

    /// Tiresias-G: [`simulator`](Self::simulator) with each queue by the Gittins index of
    /// GPU-seconds.
    pub fn gittins(experience: LengthSample, horizon: GittinsHorizon) -> Self {
        Self { order: QueueOrder::Gittins(experience, horizon), ..Self::simulator(ServiceMeasure::GpuTime) }
    }

    /// Behaviour of the public simulator (`dlas`, `dlas-gpu`).
    pub fn artifact(service: ServiceMeasure) -> Self {
        Self { demotion: DemotionTiming::Artifact, ..Self::queues(&SIMULATOR_LIMITS, service) }
    }

    /// Behaviour of the public simulator's `dlas-gpu-gittins`.
    pub fn artifact_gittins(table: ArtifactTable) -> Self {
        Self { order: QueueOrder::Artifact(table), ..Self::artifact(ServiceMeasure::GpuTime) }
    }
}
