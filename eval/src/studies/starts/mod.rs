//! Predicted starts: when a job would start on the cluster of a trace, and how well such predictions held.
//!
//! Files, each of which uses only those above it:
//!
//! - `replay`: the trace under a policy, stopped where questions are asked, with what is known by then.
//! - `answer`: the prediction of one start, and why.
//! - `queue`: the prediction of one start in the queue of a real cluster, with the trace as its past.
//! - `check`: predictions beside the starts that came.

mod answer;
mod check;
mod queue;
mod replay;

pub use answer::{HeldOn, RunningAhead, StartAnswer, WaitingAhead};
pub use check::{StartCheck, StartRow};
pub use queue::{AskedJob, RunningSeen, SeenJob, SeenQueue};
pub use replay::{StartError, StartStudy};
