//! Start of a waiting job, predicted from simulated futures.
//!
//! How long jobs run and which jobs will come is not known. So the cluster as it is now is simulated many times under
//! its policy. Each time the run times are drawn anew from jobs that have ended, and the arrivals from days that have
//! passed; what differs from future to future is what is not known. The earlier predictions and what became of them
//! then say how wide the interval has to be.
//!
//! Files, each of which uses only those above it:
//!
//! - `run_times`: the work of jobs that have ended, and draws for those that have not.
//! - `arrivals`: jobs that may come, drawn from the past.
//! - `futures`: the start of one job in one future.
//! - `interval`: an interval of the wait, calibrated on past predictions.

mod arrivals;
mod futures;
mod interval;
mod run_times;

pub use futures::{FutureStart, StartQuestion};
pub use interval::{StartCalibration, WaitInterval};
pub use run_times::RunTimeHistory;
