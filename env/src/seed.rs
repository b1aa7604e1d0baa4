//! Named random streams from one master seed.
//!
//! Each consumer draws from a stream of its own, so adding a draw in one never changes another: the same workload meets
//! every policy (common random numbers).

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Who draws. The discriminant is the ChaCha stream number; never reuse or renumber one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Stream {
    /// Arrivals, sizes and applications of jobs.
    Workload = 1,
    /// Failures of accelerators, nodes and jobs.
    Faults = 2,
    /// Draws of a policy when it decides.
    Policy = 3,
    /// Exploration and mini-batch order of a learner.
    Exploration = 4,
    /// Errors of estimates shown to policies.
    Estimates = 5,
    /// Weights at initialisation.
    Initialisation = 6,
    /// Resampling in statistics.
    Bootstrap = 7,
    /// Load of inference services.
    Load = 21,
    /// Order among jobs submitted at once.
    Ties = 20,
    /// How much of its application's work each job does.
    Work = 22,
    /// Costs of restarts that are drawn.
    Switching = 12,
    /// Under what circumstances a learner meets a workload.
    Circumstances = 23,
}

/// The generator of `stream` under `master`.
pub fn rng(master: u64, stream: Stream) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(master);
    rng.set_stream(stream as u64);
    rng
}

/// The generator of `stream` under `master` for one `key`, such as a job id: draws for one key do not depend on others.
pub fn keyed(master: u64, stream: Stream, key: u64) -> ChaCha8Rng {
    // SplitMix64's increment spreads consecutive keys over the seed space.
    rng(master ^ key.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15), stream)
}

/// Box-Muller transform of two uniform draws in [0, 1).
pub(crate) fn standard_normal(first: f64, second: f64) -> f64 {
    (-2.0 * (1.0 - first).ln()).sqrt() * (std::f64::consts::TAU * second).cos()
}
