//! AlloX as an objective under Gavel's rounds (`policies/allox.py` of Gavel's and Shockwave's artifacts): the heads of
//! the queues of [`allox`](crate::heuristic::allox) get their accelerator for good.
//!
//! A job of several accelerators takes part in the matching as if it needed one. At the head of a queue its share is
//! one over its accelerators, and it is matched again each time.

use std::collections::BTreeMap;

use goodput_env::job::JobId;

use super::instance::{GavelInstance, TimeShares};
use crate::heuristic::allox::assign;

/// Queues of AlloX, as remembered from one allocation to the next.
#[derive(Clone, Debug)]
pub struct AlloxQueues {
    /// Part of the jobs without an accelerator, oldest first, that are matched.
    fraction: f64,
    shares: BTreeMap<JobId, Vec<f64>>,
}

impl AlloxQueues {
    /// Queues that match the oldest `fraction` of the jobs without an accelerator, but as many as are free at least.
    pub fn new(fraction: f64) -> Self {
        Self { fraction, shares: BTreeMap::new() }
    }

    /// Shares of the jobs called `ids`, ascending, which are those of the instance.
    pub fn allocate(&mut self, instance: &GavelInstance, ids: &[JobId]) -> TimeShares {
        self.shares.retain(|job, _| ids.binary_search(job).is_ok());
        let mut free: Vec<usize> = instance.counts.iter().map(|&count| count as usize).collect();
        let mut waiting = Vec::new();
        for (at, id) in ids.iter().enumerate() {
            let whole = self.shares.get(id).and_then(|shares| shares.iter().position(|&share| share == 1.0));
            match whole {
                Some(kind) => free[kind] = free[kind].saturating_sub(1),
                None => waiting.push(at),
            }
        }
        let oldest = (self.fraction * waiting.len() as f64) as usize;
        waiting.truncate(oldest.max(free.iter().sum()));
        let millis = |job: usize| -> Vec<Option<i64>> {
            let steps = instance.jobs[job].steps_left;
            instance.rates(job).map(|rate| Some(((steps / rate? * 1000.0) as i64).clamp(1, 1 << 40))).collect()
        };
        let times: Vec<Vec<Option<i64>>> = waiting.iter().map(|&job| millis(job)).collect();
        for (at, kind) in assign(&times, &free) {
            let job = waiting[at];
            let shares = self.shares.entry(ids[job]).or_insert_with(|| vec![0.0; instance.kinds()]);
            shares[kind] = 1.0 / f64::from(instance.jobs[job].gpus);
        }
        let mut allocation = TimeShares::zero(instance);
        for (job, id) in ids.iter().enumerate() {
            if let Some(shares) = self.shares.get(id) {
                allocation.row_mut(job).copy_from_slice(shares);
            }
        }
        allocation
    }
}
