//! Named random streams from one master seed.
//!
//! Each consumer draws from its own stream, so an additional draw in one stream does not change
//! another. All policies thus meet an equal workload (common random numbers).

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Consumer of random numbers. The discriminant is the ChaCha stream number; never reuse or
/// renumber one.
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
    /// Errors in the estimates that policies get.
    Estimates = 5,
    /// Initial weights of networks.
    Initialisation = 6,
    /// Resampling in statistics (bootstrap).
    Bootstrap = 7,
    /// Load of inference services.
    Load = 21,
    /// Order of jobs that are submitted at equal times.
    Ties = 20,
    /// Fraction of its application's work that each job does.
    Work = 22,
    /// Randomly drawn costs of restarts.
    Switching = 12,
    /// Conditions of an episode of a learner, such as the length of its warm-up.
    Circumstances = 23,
    /// Moments at which a provider takes spot nodes back.
    Spot = 24,
    /// Blocks of arrivals that are drawn from a trace.
    Resampling = 25,
    /// Run times and arrivals of the futures that a prediction stands on.
    Futures = 26,
    /// Arrivals and lengths of requests to a language model.
    Requests = 27,
    /// Names that jobs of an application go by.
    Names = 28,
}

/// Generator of `stream` under the seed `master`.
pub fn rng(master: u64, stream: Stream) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(master);
    rng.set_stream(stream as u64);
    rng
}

/// Generator of `stream` under the seed `master` for one `key`, such as a job id: draws for one key
/// do not depend on other keys.
pub fn keyed(master: u64, stream: Stream, key: u64) -> ChaCha8Rng {
    // The increment of SplitMix64 spreads consecutive keys over the seed space.
    rng(master ^ key.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15), stream)
}

/// Box-Muller transform of two uniform draws in [0, 1).
pub(crate) fn standard_normal(first: f64, second: f64) -> f64 {
    // The draw may be 0 but never 1, so the logarithm of one less the draw is finite.
    (-2.0 * (1.0 - first).ln()).sqrt() * (std::f64::consts::TAU * second).cos()
}
