//! The objective of a round, and what it wants of each score. All of it is known in closed form, so it is computed here in f64, and the net is asked
//! for one product of its Jacobian only.

use super::observation::Observation;
use super::sampled::Transition;

/// The constants of an update that the objective needs, as they are now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighing {
    pub temperature: f64,
    pub clip: f64,
    pub entropy: f64,
    pub reference_kl: f64,
}

/// What is measured of a round; sums over rounds in sums.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Terms {
    pub policy: f64,
    pub entropy: f64,
    pub reference_kl: f64,
    pub approx_kl: f64,
    pub clipped: f64,
}

impl Terms {
    pub fn add(&mut self, other: &Self) {
        self.policy += other.policy;
        self.entropy += other.entropy;
        self.reference_kl += other.reference_kl;
        self.approx_kl += other.approx_kl;
        self.clipped += other.clipped;
    }
}

impl Weighing {
    /// The objective: clipped surrogate, negated, less the entropy bonus, and the penalty.
    pub fn loss(&self, terms: &Terms) -> f64 {
        terms.policy - self.entropy * terms.entropy + self.reference_kl * terms.reference_kl
    }

    /// The terms of a round that was drawn, under `residuals`, and the gradient of its loss by residual.
    pub fn round(&self, drawn: &Transition, residuals: &[f32], advantage: f64) -> (Terms, Vec<f64>) {
        let Transition { observation, sequence, log_prob, .. } = drawn;
        let scored = observation.scored(residuals, self.temperature);
        let choice = observation.choice(&scored);
        let mut gradient = vec![0.0; scored.len()];
        let Some(steps) = choice.steps(sequence) else { return (Terms::default(), gradient) };

        let log_ratio = steps.log_prob(&choice, sequence) - log_prob;
        let ratio = log_ratio.exp();
        let clipped = ratio.clamp(1.0 - self.clip, 1.0 + self.clip);
        let surrogate = (ratio * advantage).min(clipped * advantage);
        if ratio * advantage <= clipped * advantage {
            steps.add_log_prob_gradient(&choice, sequence, -ratio * advantage, &mut gradient);
        }
        // 1 is uniform over what is allowed at every step.
        let (entropy, most) = steps.entropy();
        let most = most.max(f64::MIN_POSITIVE);
        steps.add_entropy_gradient(&choice, -self.entropy / most, &mut gradient);
        let mut terms = Terms {
            policy: -surrogate,
            entropy: entropy / most,
            approx_kl: ratio - 1.0 - log_ratio,
            clipped: f64::from(u8::from(clipped != ratio)),
            reference_kl: 0.0,
        };
        if self.reference_kl > 0.0 {
            let zeros = vec![0.0; residuals.len()];
            let start = observation.scored(&zeros, self.temperature);
            let reference = observation.choice(&start);
            if let Some(other) = reference.steps(sequence) {
                terms.reference_kl = steps.divergence(&choice, &other, &reference);
                steps.add_divergence_gradient(&choice, &other, &reference, self.reference_kl, &mut gradient);
            }
        }
        gradient.iter_mut().for_each(|slope| *slope /= self.temperature);
        (terms, gradient)
    }
}

/// Where each round's pairs begin among those of `rounds`, and where the last end.
pub(super) fn bounds<'a>(rounds: impl IntoIterator<Item = &'a Observation>) -> Vec<usize> {
    let mut bounds = vec![0];
    for round in rounds {
        bounds.push(bounds[bounds.len() - 1] + round.pairs.len());
    }
    bounds
}
