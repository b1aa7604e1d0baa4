//! Who divides the accelerators, once it is known what each size is worth to each job.

use goodput_env::time::SimTime;

use super::features::FEATURES;
use crate::allocation::knapsack::{Hull, Offer};

/// A job and what its sizes are worth.
pub struct Valued<'a> {
    /// Its features, by [`FEATURES`].
    pub features: [f64; FEATURES.len()],
    /// Type and number of the accelerators it has.
    pub held: (u16, u32),
    /// What it is left of its speed if it restarts; 1 where it holds nothing.
    pub after_restart: f64,
    /// Its sizes, type by type, ascending, with their values.
    pub offers: &'a [Offer],
    /// Its speed on so many accelerators of a type, relative to that of its smallest size.
    pub speedup: &'a dyn Fn(u16, u32) -> f64,
}

/// Divides accelerators among jobs. Shown every round of a run, job by job.
pub trait Division: Send {
    /// A round begins under this pressure, the logarithm of jobs per node.
    fn begin(&mut self, now: SimTime, pressure: f64);

    /// The next job; `None`: it is left alone and keeps what it has.
    fn job(&mut self, job: Option<&Valued<'_>>);

    /// By job the index of its offer, or none, within what there is of each type.
    fn divide(&mut self, capacity: &[u32]) -> &[Option<u32>];
}

/// By the sum of values.
impl Division for Hull {
    fn begin(&mut self, _now: SimTime, _pressure: f64) {
        self.clear();
    }

    fn job(&mut self, job: Option<&Valued<'_>>) {
        self.group(job.iter().flat_map(|job| job.offers.iter().copied()));
    }

    fn divide(&mut self, capacity: &[u32]) -> &[Option<u32>] {
        self.solve(capacity)
    }
}
