//! Shockwave (Zheng et al., NSDI'23): a market over future rounds for jobs that change their batch size while they
//! train.
//!
//! Every few rounds Shockwave plans a window of rounds ahead. It maximises Nash social welfare over the window, the sum
//! of the logarithms of the jobs' progress, less a penalty for the longest time that a job still has after the window
//! (section 6.1). A job that is expected to finish later than with a fair share of the cluster counts more, by a power
//! of that ratio (section 6.2). How long a job will run is a forecast, since its batch size will change: a Dirichlet
//! posterior over its batch sizes ([`forecast`], section 5).
//!
//! The artifact gives the program to Gurobi, as one with an integer for each job and round. Its objective depends only
//! on the number of rounds that each job gets, and is concave in it. So [`counts`] finds these numbers directly, and
//! [`window`] lays them out. The mechanism of rounds is Gavel's.

pub mod counts;
mod finish;
pub mod forecast;
mod listed;
mod planner;
pub mod window;

pub use listed::LISTED;
pub use planner::{Shockwave, ShockwaveConfig};
