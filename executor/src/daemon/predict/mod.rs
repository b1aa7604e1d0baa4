//! Predicted starts: when a job that waits will start, by simulated futures of the cluster as it is now.
//!
//! A future draws the run times of jobs from those that have ended and the arrivals from those that came, both by the
//! journal, and plays the policy on from the last snapshot (`goodput_agents::start_time`). Where too few jobs have
//! ended, one future takes every job for as long as its user stated, and nothing comes.
//!
//! # Layout
//! - [`answer`]: a predicted start, for users and in words.
//! - `scene`: the cluster as it is, with the job that is asked about. `past`: the scene with the jobs of the journal.
//! - `calibration`: earlier predictions and what became of them.
//! - [`predictor`]: the futures, on a thread of their own and for a bounded time.

pub mod answer;
mod calibration;
mod past;
pub mod predictor;
mod scene;

pub use answer::PredictedStart;
pub use predictor::StartPredictor;
pub(in crate::daemon) use scene::stated;
pub use scene::{AskedStart, StartScene};
