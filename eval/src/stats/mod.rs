//! Statistics over matrices of shape seeds x tasks, as pure functions.
//!
//! A task is a workload, a row one repetition of every task with new seeds. The definitions are
//! those of rliable (Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical
//! Precipice", NeurIPS 2021); what differs is that policies meet the same seeds here, so
//! differences are paired.

mod aggregate;
mod bootstrap;
mod improvement;
mod kendall;
mod normal;
mod paired;
mod profile;
mod quantile;
mod wilcoxon;

use serde::{Deserialize, Serialize};

pub use aggregate::{interquartile_mean, mean_of_tasks};
pub use bootstrap::{Bootstrap, Resample};
pub use improvement::{probability_of_improvement, win_rate};
pub use kendall::kendall_tau;
pub use paired::{difference, ratio_of_means};
pub use profile::performance_profile;
pub use quantile::{quantile, quantiles};
pub use wilcoxon::{Tail, WilcoxonError, holm, wilcoxon, wilcoxon_asymptotic};

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies in the closed interval.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// A number and how sure of it we are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The point estimate.
    pub value: f64,
    /// Confidence interval of the value; `None` where there is a single seed, which says nothing
    /// about the spread.
    pub ci: Option<Interval>,
}

impl Estimate {
    /// Whether the interval exists and leaves out `value`.
    pub fn excludes(&self, value: f64) -> bool {
        self.ci.is_some_and(|ci| !ci.contains(value))
    }
}
