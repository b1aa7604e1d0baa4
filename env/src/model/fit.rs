//! Throughput parameters fitted to profiled step times, as the Pollux agent learns them while a job
//! runs.
//!
//! The loss, the start, the bounds and the rules for unknown parameters are those of the Pollux
//! artifact (`goodput.py`, `fit_perf_params`; PolluxAgent in the paper). Unknown parameters get
//! optimistic values: a job that never ran on two nodes must not be modelled with a slow network,
//! or the policy would never try two nodes.
//!
//! The optimiser is a new one. The published optimiser spends 85 % of a simulation in automatic
//! differentiation and stops at the first residual that is exactly zero, or where one step hardly lowers the
//! loss; `fit/descent.rs` describes the replacement. `fit/lbfgsb` is the published one, for replicas.

mod cache;
mod descent;
mod lbfgsb;
mod loss;

use serde::{Deserialize, Serialize};

pub(crate) use cache::known_fit;

use self::loss::{ALPHA_C, ALPHA_N, ALPHA_R, BETA_N, BETA_R, GAMMA, Loss, Theta};
use super::throughput::ThroughputParams;

/// Smallest value of a time constant, seconds; also the fixed value of a constant that no sample
/// determines.
const FLOOR: f64 = 1e-8;
/// Start of the search: 0.1 s for constants, 0.01 s for slopes, and hardly any overlap.
const START: Theta = [0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001];
/// Largest exponent `gamma`; beyond it the norm is close to a maximum.
const MOST_OVERLAP: f64 = 10.0;
/// Smallest ratio of an unobserved all-reduce between nodes to the observed all-reduce inside a
/// node.
const NETWORK_OVER_NODE: f64 = 1.1;

/// Profiled configuration with the duration of a step.
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
    /// Part of the step in the all-reduce and not hidden by compute, seconds; a pass without
    /// synchronisation takes `step_secs - sync_secs`.
    pub sync_secs: f64,
}

/// Search for the parameters that a job's agent fits to its measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentFit {
    /// Descent to a minimum.
    #[default]
    Converged,
    /// L-BFGS-B up to where scipy's stop rule ends it, as in the public simulators.
    Lbfgsb,
}

/// Fits the seven parameters to samples in any order, by [`AgentFit::Converged`]; deterministic for a given order.
///
/// The samples do not always determine all parameters. These are held fixed:
/// - `alpha_c` at half the mean pass if all samples have one atomic batch size (optimistic about
///   larger batches);
/// - `alpha_n` and `beta_n` at 1e-8 without a sample on several nodes; they are then raised to 1.1
///   times the single-node pair;
/// - `alpha_r` and `beta_r` at 1e-8 without a sample of several replicas on one node;
/// - both betas at 1e-8 without a sample of more than two replicas.
///
/// Without samples the result is the start of the search under these rules. A pass time of zero
/// counts as 1e-8 s.
#[must_use]
pub fn fit(samples: &[Sample]) -> ThroughputParams {
    fit_by(AgentFit::Converged, samples)
}

/// Fits as [`fit`](fn@fit) by a given search.
#[must_use]
pub fn fit_by(search: AgentFit, samples: &[Sample]) -> ThroughputParams {
    let (start, lower, upper) = search_space(samples);
    let loss = Loss::new(samples);
    let theta = match search {
        _ if samples.is_empty() => start,
        AgentFit::Converged => descent::minimise(|theta| loss.expand(theta), start, &lower, &upper),
        AgentFit::Lbfgsb => lbfgsb::minimise(|theta| loss.expand(theta), start, &lower, &upper),
    };
    let mut params = ThroughputParams::from(theta);
    if samples.iter().all(|sample| sample.nodes == 1) {
        params.alpha_n = params.alpha_n.max(params.alpha_r * NETWORK_OVER_NODE);
        params.beta_n = params.beta_n.max(params.beta_r * NETWORK_OVER_NODE);
    }
    params
}

/// Loss of [`fit`](fn@fit): root mean squared log errors of passes without synchronisation and of
/// whole steps, plus small penalties on overlap and on an all-reduce that slows with replicas
/// (dimensionless; 0.1 is about 5 % off on both).
///
/// With zero samples the loss consists of the penalties only.
#[must_use]
pub fn objective(params: &ThroughputParams, samples: &[Sample]) -> f64 {
    Loss::new(samples).expand(&Theta::from(*params)).value
}

/// Start, lower bounds and upper bounds; all three are equal for a parameter that the samples do
/// not determine.
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
