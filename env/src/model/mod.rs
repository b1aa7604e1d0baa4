//! The physics of a training job: how long a step takes, and how much learning a step is worth.
//!
//! Everything here is a pure function over a plain `Copy` struct. Three very different callers need the same numbers:
//! the simulator (which plays the world), a policy (which only guesses at the world from what was profiled) and the
//! live executor (which fits what it measured). Were the models objects with state, each of them would grow its own
//! copy; as plain values they can be stored in a job, sent in a view, tabulated, compared and serialised, and the same
//! inputs give the same bits.
//!
//! Layout, from what is measured to what is decided:
//! - [`throughput`]: seconds per step and samples per second (Pollux).
//! - [`efficiency`]: progress per sample at a larger batch (Pollux, AdaScale).
//! - [`batch`]: a total batch as replicas x micro-batches x samples, and its limits.
//! - [`goodput`]: throughput times efficiency, and the batch that maximises it.
//! - [`fit`](mod@fit): throughput parameters from profiled step times.
//! - [`measured`]: step times straight from a profile, which is what the published simulators call the truth.
//! - [`fault`]: what breaks, and [`checkpoint`]: what is written against it.
//! - [`interference`]: what distributed jobs that share a node cost each other.
//! - [`sharing`]: one accelerator for several jobs.
//! - [`serving`]: how long requests to a service take, waiting included.
//! - [`switching`]: what a change of allocation costs.
//! - [`learning_rate`]: how the learning rate follows the batch.
//! - [`autoscale`]: how many nodes to rent.

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
pub mod serving;
pub mod sharing;
pub mod switching;
pub mod throughput;

pub use batch::{BatchConfig, BatchLimits, BatchLimitsError};
pub use checkpoint::{Checkpointing, Interval, Store};
pub use efficiency::GradientStats;
pub use fault::FaultModel;
pub use fit::{Sample, fit};
pub use goodput::{Choice, GoodputModel};
pub use interference::slowdown;
pub use learning_rate::LearningRateRule;
pub use measured::{
    InterpolatedSample, MeasuredStepTimes, OutsideProfile, PlacementSample, ProfileError, ScalabilitySample, StepTime,
};
pub use switching::SwitchCost;
pub use throughput::ThroughputParams;
