//! Order of jobs that were submitted at one instant.
//!
//! Every policy breaks its last ties by job id, and ids follow submission, then this order. Traces with
//! coarse clocks leave the order to chance: one in seven jobs of Philly shares its second with another
//! job, and all jobs of a static workload arrive at once. A result that moves with the order says little
//! about the policy. So the order is an option, and `goodput reproduce ties` measures its effect.

use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::job::JobSpec;
use crate::seed::{Stream, rng};

/// Order among jobs of one submission time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TieBreak {
    /// As the trace lists them.
    #[default]
    Trace,
    /// The other way round.
    Reverse,
    /// Drawn by the run's seed.
    Random,
}

impl TieBreak {
    /// Puts `jobs`, which are in order of submission, into this order.
    pub fn arrange(self, jobs: &mut [JobSpec], seed: u64) {
        let mut random = rng(seed, Stream::Ties);
        for equal in jobs.chunk_by_mut(|one, other| one.request.submit == other.request.submit) {
            match self {
                Self::Trace => return,
                Self::Reverse => equal.reverse(),
                Self::Random => (1..equal.len()).rev().for_each(|at| equal.swap(at, random.random_range(0..=at))),
            }
        }
    }
}
