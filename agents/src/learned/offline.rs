//! Learning from logged decisions, without acting: what the rules of this kind share.
//!
//! The critics are nets of the same kind as the policy. `Q(s, a)` is the value head plus the score of the action: the part that all actions of
//! a state share and the part that tells them apart (Wang et al. 2016), by (slot, verb) as the scores of a policy are.

use burn::tensor::Tensor;
use rand::Rng;
use rand::RngExt;

use super::fused::{Fused, Scratch};
use super::learner::Learner;
use super::objective::{Objective, Outputs};
use super::shard::Source;
use super::weights::Weights;

/// Transitions of a minibatch; a slice has one entry or one row of entries a decision.
#[derive(Clone, Copy, Debug)]
pub struct OfflineBatch<'a> {
    /// `[rows, obs_dim]`.
    pub observations: &'a [f32],
    /// `[rows, actions]`.
    pub masks: &'a [u8],
    /// `[rows]`: what was done.
    pub actions: &'a [u32],
    /// `[rows]`: what it got, over the scale of returns.
    pub rewards: &'a [f32],
    /// `[rows]`: `exp(-beta dt)` of the time that passed (a semi-Markov decision process); 0 where the episode ended by itself.
    pub discounts: &'a [f32],
    /// `[rows, obs_dim]`: what was seen then; anything where the discount is 0.
    pub next_observations: &'a [f32],
    /// `[rows, actions]`: what was allowed then.
    pub next_masks: &'a [u8],
    /// `[rows]`: discounted sum of rewards to the end of the episode. Where given, critics regress on it instead of on their own
    /// estimates: how they begin.
    pub returns: Option<&'a [f32]>,
}

impl<'a> OfflineBatch<'a> {
    /// The number of rows, after checking that all slices agree on it.
    pub(super) fn check(&self, weights: &Weights) -> usize {
        let (rows, layout) = (self.actions.len(), weights.layout());
        let observations = [self.observations.len(), self.next_observations.len()];
        let masks = [self.masks.len(), self.next_masks.len()];
        assert!(
            observations == [rows * layout.obs_dim(); 2] && masks == [rows * layout.actions(); 2],
            "rows of {layout:?}"
        );
        let lengths = [self.rewards.len(), self.discounts.len(), self.returns.map_or(rows, <[f32]>::len)];
        assert!(rows > 0 && lengths == [rows; 3], "one number per row");
        rows
    }

    /// Observation and mask of a row, then those that follow.
    pub(super) fn row(&self, row: usize, weights: &Weights) -> [(&'a [f32], &'a [u8]); 2] {
        let (dim, actions) = (weights.layout().obs_dim(), weights.layout().actions());
        let (o, m) = (row * dim..(row + 1) * dim, row * actions..(row + 1) * actions);
        [(&self.observations[o.clone()], &self.masks[m.clone()]), (&self.next_observations[o], &self.next_masks[m])]
    }
}

/// A critic's `Q(s, a)` on the host.
pub(super) fn q(net: &Fused, observation: &[f32], action: usize, scratch: &mut Scratch) -> f32 {
    let (scores, value) = net.forward(observation, scratch);
    value + scores[action]
}

/// Squared error of `Q` of what was done against targets, and perhaps the conservative term.
pub(super) struct Regression<'a> {
    pub source: Source<'a>,
    pub actions: &'a [u32],
    pub targets: &'a [f32],
    /// Weight of `logsumexp Q(s, .) - Q(s, a)` over what was allowed.
    pub conservative: f32,
    pub rows: f32,
}

impl Objective for Regression<'_> {
    /// Mean squared error and conservative gap.
    type Report = [f64; 2];

    fn loss(&self, outputs: &Outputs<'_>) -> (Tensor<1>, [f64; 2]) {
        let score = outputs.score(&self.source, self.actions);
        let error = outputs.values.clone() + score - outputs.column(|row| self.targets[row as usize]);
        let mut loss = error.square().sum() / self.rows;
        let mut report = [outputs.number(&loss), 0.0];
        if self.conservative > 0.0 {
            // ln of the sum of exp Q less Q of what was done: the logarithm of its softmax, negated.
            let gap = outputs.log_prob(&self.source, self.actions).sum().neg() / self.rows;
            report[1] = outputs.number(&gap);
            loss = loss + gap * self.conservative;
        }
        (loss, report)
    }
}

/// Moves `targets` the share `rate` of the way to `weights` (Polyak averaging).
pub(super) fn follow(targets: &mut Weights, weights: &Weights, rate: f32) {
    targets
        .data_mut()
        .iter_mut()
        .zip(weights.data())
        .for_each(|(target, &weight)| *target += rate * (weight - *target));
}

/// All rows of a minibatch in order.
pub(super) fn all(rows: usize) -> Vec<u32> {
    (0..rows as u32).collect()
}

/// `size` numbers below `count`, with repetition: the rows of a minibatch.
pub fn draw(count: usize, size: usize, random: &mut impl Rng) -> Vec<usize> {
    (0..size).map(|_| random.random_range(0..count.max(1))).collect()
}

/// A new learner of the same net that is another draw of its weights.
pub(super) fn another(like: &Learner, seed: u64) -> Learner {
    let weights = like.weights();
    Learner::new(weights.config(), *weights.layout(), like.adam().config, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learned::adam::AdamConfig;
    use crate::learned::iql::Extraction;
    use crate::learned::weights::{MlpConfig, NetConfig};
    use goodput_env::gym::Layout;

    const LAYOUT: Layout = Layout { slots: 2, slot_features: 1, globals: 2, verbs: 2, services: 0, pools: false };
    const ROWS: usize = 4;

    /// The gradient that a loss with these derivatives by score and by value has at the biases of the last layers of actor and critic; the
    /// layers before are burn's, held against PyTorch elsewhere.
    fn at_the_outputs(learner: &Learner, gradient: &[f32], by_score: &[f64], by_value: f64) {
        let layers = learner.weights().layers();
        let biases = |layer: usize| layers[layer].split(gradient).1;
        for (action, (&got, &want)) in biases(1).iter().zip(by_score).enumerate() {
            assert!((f64::from(got) - want).abs() < 1e-5, "score of {action}: {got}, not {want}");
        }
        assert!((f64::from(biases(3)[0]) - by_value).abs() < 1e-5, "value: {}, not {by_value}", biases(3)[0]);
    }

    #[test]
    fn gradients_are_those_of_the_formulas() {
        let hidden = [8].into_iter().filter_map(std::num::NonZeroUsize::new).collect();
        let learner = Learner::new(&NetConfig::Mlp(MlpConfig { hidden }), LAYOUT, AdamConfig::default(), 5);
        let observations: Vec<f32> = (0..ROWS * 4).map(|at| ((at * 37 % 19) as f32 - 9.0) / 6.0).collect();
        let masks: Vec<u8> = [[1, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 1, 0, 1], [1, 1, 0, 0, 1]].concat();
        let actions = [0u32, 3, 4, 1];
        let (targets, weights, tau, alpha) = ([0.5f32, -2.0, 1.0, 3.0], [2.0f32, 0.5, 1.0, 4.0], 0.7f64, 0.8f64);
        let net = Fused::new(learner.weights());
        let mut scratch = net.scratch();
        let (mut regression, mut extraction) = (([0.0; 5], 0.0), ([0.0; 5], 0.0));
        for row in 0..ROWS {
            let (observation, mask) = (&observations[row * 4..row * 4 + 4], &masks[row * 5..row * 5 + 5]);
            let action = actions[row] as usize;
            let mut chance = [0.0f32; 5];
            net.probabilities(observation, mask, &mut scratch, &mut chance);
            let value = f64::from(net.value(observation, &mut scratch));
            let error = f64::from(q(&net, observation, action, &mut scratch) - targets[row]);
            let above = f64::from(targets[row]) - value;
            regression.1 += 2.0 * error / ROWS as f64;
            extraction.1 -= 2.0 * if above > 0.0 { tau } else { 1.0 - tau } * above / ROWS as f64;
            for at in 0..5 {
                let own = f64::from(u8::from(at == action));
                let gap = f64::from(chance[at]) - own;
                regression.0[at] += (2.0 * error * own + alpha * gap) / ROWS as f64;
                extraction.0[at] += f64::from(weights[row]) * gap / ROWS as f64;
            }
        }
        let (all, rows) = (all(ROWS), ROWS as f32);
        let source = learner.source(&observations, &masks);
        let objective = Regression { source, actions: &actions, targets: &targets, conservative: alpha as f32, rows };
        let (gradient, reports) = learner.gradient(&observations, &masks, &all, &objective);
        assert!(reports[0].iter().all(|report| *report > 0.0), "{reports:?}");
        at_the_outputs(&learner, &gradient, &regression.0, regression.1);
        let source = learner.source(&observations, &masks);
        let objective = Extraction {
            source,
            actions: &actions,
            estimates: &targets,
            weights: &weights,
            expectile: tau as f32,
            rows,
        };
        let (gradient, _) = learner.gradient(&observations, &masks, &all, &objective);
        at_the_outputs(&learner, &gradient, &extraction.0, extraction.1);
    }
}
