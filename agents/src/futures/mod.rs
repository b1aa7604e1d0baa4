//! Draws of the time to come of a cluster, from what has been seen of it.
//!
//! - `run_times`: the work of jobs that have ended, and draws for those that have not.
//! - `arrivals`: jobs that may come, drawn from the past.
//! - `cost`: cost of a future that is cut off.

mod arrivals;
mod cost;
mod run_times;

pub(crate) use arrivals::draw as draw_arrivals;
pub use cost::secs_of_jobs;
pub use run_times::RunTimeHistory;
pub(crate) use run_times::{DrawnWork, PossibleWork, ToldWork};
