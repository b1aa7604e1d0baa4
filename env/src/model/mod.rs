//! Performance models of training jobs and services: the duration of a step, and the training
//! progress that a step brings.
//!
//! Each model is a pure function over a plain `Copy` struct, because three callers need equal
//! numbers: the simulator (which holds the ground truth), a policy (which only has estimates from
//! profiled steps) and the live executor (which fits parameters to measured steps). If the models
//! were stateful objects, each caller would keep its own copy. Plain values can be stored in a job,
//! sent in a view, tabulated, compared and serialised, and equal inputs give bit-identical results.
//!
//! Layout, from what is measured to what is decided:
//! - [`throughput`]: seconds per step and samples per second (Pollux).
//! - [`efficiency`]: progress per sample at a larger batch (Pollux, AdaScale).
//! - [`batch`]: a total batch as replicas x micro-batches x samples, and its limits.
//! - [`goodput`]: throughput times efficiency, and the batch that maximises it.
//! - [`fit`](mod@fit): throughput parameters from profiled step times.
//! - [`measured`]: step times straight from a profile, the ground truth of the published
//!   simulators.
//! - [`fault`]: hardware and software faults, and [`checkpoint`]: the checkpoints that limit the
//!   loss.
//! - [`interference`]: the slowdown of distributed jobs that share a node.
//! - [`sharing`]: one accelerator for several jobs.
//! - [`serving`]: latency of requests to a service, waiting included.
//! - [`switching`]: the delay that a change of allocation costs.
//! - [`learning_rate`]: the learning rate as a function of the batch size.
//! - [`autoscale`]: the number of nodes to rent, and [`rental`]: their price and when they vanish.
//! - [`tensors`]: sizes of the parameter tensors of a model.

pub mod autoscale;
pub mod batch;
pub mod checkpoint;
pub mod efficiency;
pub mod fault;
pub mod fit;
pub mod goodput;
pub mod interference;
pub mod learning_rate;
pub mod measured;
pub mod rental;
pub mod serving;
pub mod sharing;
pub mod switching;
pub mod tensors;
pub mod throughput;

pub use batch::{BatchConfig, BatchLimits, BatchLimitsError};
pub use checkpoint::{Checkpointing, Interval, Store};
pub use efficiency::GradientStats;
pub use fault::FaultModel;
pub(crate) use fit::known_fit;
pub use fit::{AgentFit, Sample, fit, fit_by};
pub use goodput::{Choice, GoodputModel};
pub use interference::slowdown;
pub use learning_rate::LearningRateRule;
pub use measured::{
    InterpolatedSample, MeasuredStepTimes, OutsideProfile, PlacementSample, PlanSample, ProfileError,
    ScalabilitySample, StepTime,
};
pub use rental::{Rental, SizeRule, Spot};
pub use switching::SwitchCost;
pub use tensors::TensorSizes;
pub use throughput::ThroughputParams;
