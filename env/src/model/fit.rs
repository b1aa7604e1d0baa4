//! Throughput parameters from profiled step times: what Pollux' agent learns about a job while it runs.
//!
//! The loss, the start, the bounds and the rules for what cannot be known yet are those of the Pollux artifact
//! (`goodput.py`, `fit_perf_params`; PolluxAgent in the paper): a job that never ran on two nodes must not be told that
//! the network is slow, or it never will. The optimiser is our own. The published one spends 85 % of a simulation in
//! automatic differentiation and stops at the first residual that is exactly zero; see `fit/descent.rs` for what
//! replaces it.

mod descent;
mod loss;

use serde::{Deserialize, Serialize};

use self::loss::{ALPHA_C, ALPHA_N, ALPHA_R, BETA_N, BETA_R, GAMMA, Loss, Theta};
use super::throughput::ThroughputParams;

/// Smallest value of a time constant, seconds; also what a constant is held at that no sample can tell.
const FLOOR: f64 = 1e-8;
/// Start of the search: 100 ms constant and 10 ms per unit, hardly any overlap.
const START: Theta = [0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001];
/// Beyond this the norm is as good as a maximum.
const MOST_OVERLAP: f64 = 10.0;
/// Unseen all-reduce between nodes is assumed to be at least this much slower than the one seen inside a node.
const NETWORK_OVER_NODE: f64 = 1.1;

/// One profiled configuration and how long a step of it took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Nodes used, at least 1.
    pub nodes: u32,
    /// Replicas in total, at least `nodes`.
    pub replicas: u32,
    /// Samples per replica in one pass.
    pub atomic: u32,
    /// Seconds of a synchronised step without accumulation, positive.
    pub step_secs: f64,
    /// Seconds of it in the all-reduce and not hidden by compute; a bare pass takes `step_secs - sync_secs`.
    pub sync_secs: f64,
}

/// Fits the seven parameters to samples in any order; deterministic for a given order.
///
/// Held fixed, because the samples do not tell:
/// - `alpha_c` at half the mean pass if only one atomic batch size was seen (optimistic about larger batches);
/// - `alpha_n` and `beta_n` at 1e-8 without a sample on several nodes; they are then raised to 1.1 times the
///   single-node pair;
/// - `alpha_r` and `beta_r` at 1e-8 without a sample of several replicas on one node;
/// - both betas at 1e-8 without a sample of more than two replicas.
///
/// Without samples the result is the start of the search under these rules. A pass that the sample says took no time
/// counts as 1e-8 s.
#[must_use]
pub fn fit(samples: &[Sample]) -> ThroughputParams {
    let (start, lower, upper) = search_space(samples);
    let theta = if samples.is_empty() {
        start
    } else {
        let loss = Loss::new(samples);
        descent::minimise(|theta| loss.expand(theta), start, &lower, &upper)
    };
    let mut params = ThroughputParams::from(theta);
    if samples.iter().all(|sample| sample.nodes == 1) {
        params.alpha_n = params.alpha_n.max(params.alpha_r * NETWORK_OVER_NODE);
        params.beta_n = params.beta_n.max(params.beta_r * NETWORK_OVER_NODE);
    }
    params
}

/// What [`fit`] minimises: root mean squared log errors of bare passes and of whole steps, plus small penalties on
/// overlap and on all-reduce that slows with replicas (dimensionless; 0.1 is about 5 % off on both).
///
/// Zero samples have no error, only penalties.
#[must_use]
pub fn objective(params: &ThroughputParams, samples: &[Sample]) -> f64 {
    Loss::new(samples).expand(&Theta::from(*params)).value
}

/// Start, lower bounds and upper bounds; a parameter that cannot be learned has all three equal.
fn search_space(samples: &[Sample]) -> (Theta, Theta, Theta) {
    let mut start = START;
    let mut lower = [FLOOR; 7];
    let mut upper = [f64::INFINITY; 7];
    lower[GAMMA] = 1.0;
    upper[GAMMA] = MOST_OVERLAP;

    let mut hold = |index: usize, value: f64| (start[index], lower[index], upper[index]) = (value, value, value);
    if let Some((first, rest)) = samples.split_first()
        && rest.iter().all(|sample| sample.atomic == first.atomic)
    {
        let mean_pass =
            samples.iter().map(|sample| sample.step_secs - sample.sync_secs).sum::<f64>() / samples.len() as f64;
        hold(ALPHA_C, (mean_pass / 2.0).max(FLOOR));
    }
    if samples.iter().all(|sample| sample.nodes == 1) {
        hold(ALPHA_N, FLOOR);
        hold(BETA_N, FLOOR);
    }
    if !samples.iter().any(|sample| sample.nodes == 1 && sample.replicas > 1) {
        hold(ALPHA_R, FLOOR);
        hold(BETA_R, FLOOR);
    }
    if samples.iter().all(|sample| sample.replicas <= 2) {
        hold(BETA_N, FLOOR);
        hold(BETA_R, FLOOR);
    }
    (start, lower, upper)
}

impl From<Theta> for ThroughputParams {
    fn from([alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma]: Theta) -> Self {
        Self { alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma }
    }
}

impl From<ThroughputParams> for Theta {
    fn from(p: ThroughputParams) -> Self {
        [p.alpha_c, p.beta_c, p.alpha_n, p.beta_n, p.alpha_r, p.beta_r, p.gamma]
    }
}
