//! Loss of the Pollux agent, with its exact gradient and a convex quadratic model.
//!
//! Each term is either a square or a root of a mean of squares. With the present root `w`, the root
//! is bounded by `|r|/n^.5 <= (|r|^2/(n*w) + w)/2` near a point: a weighted least-squares problem.
//! Its Gauss-Newton matrix costs little beyond the gradient. The resulting steps pass through an
//! exact fit, where the root has a kink that stops gradient methods.

use super::super::throughput::{TINY, replicas_beyond_two};
use super::Sample;

/// The parameters in the order of `ThroughputParams`.
pub(super) type Theta = [f64; 7];
pub(super) const ALPHA_C: usize = 0;
pub(super) const BETA_C: usize = 1;
pub(super) const ALPHA_N: usize = 2;
pub(super) const BETA_N: usize = 3;
pub(super) const ALPHA_R: usize = 4;
pub(super) const BETA_R: usize = 5;
pub(super) const GAMMA: usize = 6;

/// Weight of `(gamma - 1)^2`: the other parameters are easier to identify with little overlap.
const OVERLAP_PENALTY: f64 = 1e-3;
/// Weight of `(beta / alpha)^2` of either link: prefers a model in which more replicas do not slow
/// the all-reduce.
const RETROGRESSION_PENALTY: f64 = 1e-2;
/// A root mean square below this counts as an exact fit.
const EXACT: f64 = 1e-10;

/// Samples in the form that the inner loop needs, with logarithms taken once.
pub(super) struct Loss {
    observations: Vec<Observation>,
}

struct Observation {
    atomic: f64,
    link: Link,
    beyond_two: f64,
    log_pass_secs: f64,
    log_step_secs: f64,
}

/// Link over which the replicas of a sample synchronise.
#[derive(Clone, Copy)]
enum Link {
    /// One replica: the sample determines no parameter of a link.
    None,
    /// A link with parameters at the indices `alpha` and `alpha + 1`.
    At { alpha: usize },
}

/// Value and local quadratic model of the loss.
pub(super) struct Quadratic {
    pub(super) value: f64,
    pub(super) gradient: Theta,
    /// Gauss-Newton matrix, symmetric positive semi-definite; only the lower triangle is filled in.
    pub(super) curvature: [Theta; 7],
}

impl Loss {
    pub(super) fn new(samples: &[Sample]) -> Self {
        let observe = |sample: &Sample| Observation {
            atomic: f64::from(sample.atomic),
            link: match (sample.nodes > 1, sample.replicas > 1) {
                (true, _) => Link::At { alpha: ALPHA_N },
                (false, true) => Link::At { alpha: ALPHA_R },
                (false, false) => Link::None,
            },
            beyond_two: replicas_beyond_two(sample.replicas),
            log_pass_secs: (sample.step_secs - sample.sync_secs).max(TINY).ln(),
            log_step_secs: sample.step_secs.max(TINY).ln(),
        };
        Self { observations: samples.iter().map(observe).collect() }
    }

    /// Value, gradient and curvature of the loss at `theta`. A term with an error of exactly zero
    /// has gradient zero.
    pub(super) fn expand(&self, theta: &Theta) -> Quadratic {
        let mut pass = SquaredErrors::default();
        let mut step = SquaredErrors::default();
        for observation in &self.observations {
            observation.add(theta, &mut pass, &mut step);
        }
        let mut total = penalties(theta);
        pass.add_root_mean(self.observations.len(), &mut total);
        step.add_root_mean(self.observations.len(), &mut total);
        total
    }
}

impl Observation {
    fn add(&self, theta: &Theta, pass: &mut SquaredErrors, step: &mut SquaredErrors) {
        let gamma = theta[GAMMA];
        let pass_secs = theta[ALPHA_C] + theta[BETA_C] * self.atomic;
        // Without a link `learns` is 0, so the index ALPHA_R is arbitrary and gets no derivative.
        let (alpha, sync_secs, learns) = match self.link {
            Link::None => (ALPHA_R, TINY + TINY * self.beyond_two, 0.0),
            Link::At { alpha } => (alpha, theta[alpha] + theta[alpha + 1] * self.beyond_two, 1.0),
        };

        // log (pass^gamma + sync^gamma)^(1/gamma), computed from the logarithm of the ratio so that
        // no power overflows.
        let log_pass = pass_secs.ln();
        let log_ratio = sync_secs.ln() - log_pass;
        let odds = (-gamma * log_ratio.abs()).exp();
        let log_sum = odds.ln_1p() + (gamma * log_ratio).max(0.0);
        let log_step = log_pass + log_sum / gamma;
        // d log_step / d log sync: the share of the all-reduce in the norm.
        let sync_share = if log_ratio > 0.0 { 1.0 } else { odds } / (1.0 + odds);

        let by_pass = 1.0 / pass_secs;
        pass.add(log_pass - self.log_pass_secs, [(ALPHA_C, by_pass), (BETA_C, by_pass * self.atomic)]);
        let by_pass = (1.0 - sync_share) / pass_secs;
        let by_sync = learns * sync_share / sync_secs;
        step.add(
            log_step - self.log_step_secs,
            [
                (ALPHA_C, by_pass),
                (BETA_C, by_pass * self.atomic),
                (alpha, by_sync),
                (alpha + 1, by_sync * self.beyond_two),
                (GAMMA, (sync_share * log_ratio - log_sum / gamma) / gamma),
            ],
        );
    }
}

/// Sum of squared errors with its half gradient and Gauss-Newton matrix.
#[derive(Default)]
struct SquaredErrors {
    sum: f64,
    gradient: Theta,
    curvature: [Theta; 7],
}

impl SquaredErrors {
    /// Adds one error with its non-zero derivatives, in ascending order of parameter.
    #[inline]
    fn add<const N: usize>(&mut self, error: f64, derivatives: [(usize, f64); N]) {
        self.sum += error * error;
        for (at, &(row, by_row)) in derivatives.iter().enumerate() {
            self.gradient[row] += error * by_row;
            for &(column, by_column) in &derivatives[..=at] {
                self.curvature[row][column] += by_row * by_column;
            }
        }
    }

    /// Adds the root of the mean of `count` squared errors to `total`.
    fn add_root_mean(&self, count: usize, total: &mut Quadratic) {
        if count == 0 {
            return;
        }
        let root = (self.sum / count as f64).sqrt();
        // `EXACT` keeps the weight finite where the fit is exact.
        let weight = 1.0 / (count as f64 * root.max(EXACT));
        total.value += root;
        for row in 0..7 {
            total.gradient[row] += weight * self.gradient[row];
            for column in 0..=row {
                total.curvature[row][column] += weight * self.curvature[row][column];
            }
        }
    }
}

fn penalties(theta: &Theta) -> Quadratic {
    let excess = theta[GAMMA] - 1.0;
    let mut total =
        Quadratic { value: OVERLAP_PENALTY * excess * excess, gradient: [0.0; 7], curvature: [[0.0; 7]; 7] };
    total.gradient[GAMMA] = 2.0 * OVERLAP_PENALTY * excess;
    total.curvature[GAMMA][GAMMA] = 2.0 * OVERLAP_PENALTY;
    for (alpha, beta) in [(ALPHA_N, BETA_N), (ALPHA_R, BETA_R)] {
        let ratio = theta[beta] / theta[alpha];
        let (by_alpha, by_beta) = (-ratio / theta[alpha], 1.0 / theta[alpha]);
        total.value += RETROGRESSION_PENALTY * ratio * ratio;
        total.gradient[alpha] = 2.0 * RETROGRESSION_PENALTY * ratio * by_alpha;
        total.gradient[beta] = 2.0 * RETROGRESSION_PENALTY * ratio * by_beta;
        total.curvature[alpha][alpha] = 2.0 * RETROGRESSION_PENALTY * by_alpha * by_alpha;
        total.curvature[beta][alpha] = 2.0 * RETROGRESSION_PENALTY * by_alpha * by_beta;
        total.curvature[beta][beta] = 2.0 * RETROGRESSION_PENALTY * by_beta * by_beta;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradient_equals_central_differences() {
        let sample =
            |nodes, replicas, atomic, step_secs, sync_secs| Sample { nodes, replicas, atomic, step_secs, sync_secs };
        let samples = [
            sample(1, 1, 32, 0.5, 0.01),
            sample(1, 2, 64, 0.9, 0.2),
            sample(1, 4, 64, 0.8, 0.3),
            sample(2, 2, 48, 1.5, 0.7),
            sample(4, 16, 128, 2.5, 0.9),
        ];
        let loss = Loss::new(&samples);
        for theta in [
            [0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001],
            [0.3, 0.002, 0.9, 0.05, 0.02, 0.003, 2.5],
            [0.01, 0.02, 2.0, 0.5, 0.5, 0.2, 9.5],
        ] {
            let gradient = loss.expand(&theta).gradient;
            for index in 0..7 {
                let half_width = 1e-6 * theta[index];
                let at = |value: f64| {
                    let mut moved = theta;
                    moved[index] = value;
                    loss.expand(&moved).value
                };
                let numeric = (at(theta[index] + half_width) - at(theta[index] - half_width)) / (2.0 * half_width);
                let error = (gradient[index] - numeric).abs();
                assert!(
                    error <= 1e-6 * (1.0 + numeric.abs()),
                    "{theta:?} [{index}]: {} is not {numeric}",
                    gradient[index]
                );
            }
        }
    }

    #[test]
    fn an_exact_fit_has_a_finite_gradient() {
        let theta: Theta = [0.5, 0.5, 1e-8, 1e-8, 1e-8, 1e-8, 1.0];
        let loss = Loss::new(&[Sample { nodes: 1, replicas: 1, atomic: 1, step_secs: 1.0, sync_secs: 0.0 }]);
        let at = loss.expand(&theta);
        assert_eq!(
            at.gradient[ALPHA_C].abs().max(at.gradient[BETA_C].abs()).partial_cmp(&2.0),
            Some(std::cmp::Ordering::Less)
        );
        assert!(at.gradient.iter().all(|g| g.is_finite()));
    }
}
