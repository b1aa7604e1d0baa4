//! A linear priority policy: each verb scores a slot by a weighted sum of its features, and waiting
//! and all else that is about no job has a score of its own.
//!
//! About a dozen weights, tuned by [`crate::learning::cem`]: the honest baseline a network has to
//! beat.

use goodput_env::gym::Layout;

use crate::nets::distribution::argmax;

/// Weights of the policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    layout: Layout,
    /// `verbs x slot_features`, then the scores of actions that concern no job, waiting last.
    weights: Vec<f32>,
}

impl Linear {
    /// Weights a policy for `layout` has.
    pub const fn parameters(layout: &Layout) -> usize {
        layout.verbs * layout.slot_features + layout.others()
    }

    /// A policy with these weights: `verbs x slot_features`, then the scores of actions that
    /// concern no job, waiting last. `None` if their number is not [`Self::parameters`].
    pub fn new(layout: Layout, weights: Vec<f32>) -> Option<Self> {
        (weights.len() == Self::parameters(&layout)).then_some(Self { layout, weights })
    }

    /// Shapes of observations and actions.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// All weights: verb by verb, then the scores of actions that concern no job.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Writes the scores `[A]` of all actions. Those of empty slots are 0 and mean nothing.
    pub fn logits(&self, observation: &[f32], logits: &mut [f32]) {
        let Layout { slots, slot_features, verbs, .. } = self.layout;
        let (matrix, others) = self.weights.split_at(verbs * slot_features);
        for slot in 0..slots {
            let features = &observation[slot * slot_features..(slot + 1) * slot_features];
            for verb in 0..verbs {
                let weights = &matrix[verb * slot_features..(verb + 1) * slot_features];
                logits[slot * verbs + verb] = features.iter().zip(weights).fold(0.0, |sum, (x, w)| sum + x * w);
            }
        }
        logits[self.layout.first_other()..].copy_from_slice(others);
    }

    /// The allowed action of the greatest score, the first of equals. `logits` is room for `[A]`.
    pub fn greedy(&self, observation: &[f32], mask: &[u8], logits: &mut [f32]) -> usize {
        self.logits(observation, logits);
        argmax(logits, mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_weight_on_size_is_shortest_first() {
        let layout = Layout { slots: 3, slot_features: 2, globals: 1, verbs: 2, services: 0, pools: false, types: 0 };
        let policy = Linear::new(layout, vec![10.0, -1.0, 0.0, -9.0, 5.0]).unwrap();
        let observation = [1.0, 4.0, 1.0, 2.0, 0.0, 0.0, 0.5];
        let mut logits = [0.0; 7];
        assert_eq!(policy.greedy(&observation, &[1, 1, 1, 1, 0, 0, 1], &mut logits), 2);
        assert_eq!(logits, [6.0, -36.0, 8.0, -18.0, 0.0, 0.0, 5.0]);
        assert_eq!(policy.greedy(&observation, &[0, 1, 0, 1, 0, 0, 1], &mut logits), 6);
        assert_eq!(Linear::new(layout, vec![0.0; 4]), None);
    }
}
