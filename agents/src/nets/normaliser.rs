//! Feature scaling measured in training and frozen into the bundle.
//!
//! One scale per slot feature, shared by all slots, keeps the net indifferent to their order. Empty
//! slots stay all zeros and the occupancy flag stays 1.

use goodput_env::gym::Layout;

/// `(x - mean) / deviation`, cut at `limit`.
#[derive(Clone, Debug, PartialEq)]
pub struct Normaliser {
    layout: Layout,
    /// Means of slot features, then of globals.
    mean: Vec<f32>,
    /// Standard deviations in the same order.
    deviation: Vec<f32>,
    limit: f32,
}

impl Normaliser {
    /// Numbers in each of the two vectors of a layout.
    pub const fn len(layout: &Layout) -> usize {
        layout.slot_features + layout.globals
    }

    /// Scales by these means and deviations, both `[slot_features + globals]`. `None` if a length
    /// is wrong, a number is not finite, or a deviation is not positive.
    pub fn new(layout: Layout, mean: Vec<f32>, deviation: Vec<f32>, limit: f32) -> Option<Self> {
        let fits = mean.len() == Self::len(&layout) && deviation.len() == mean.len();
        let sound =
            mean.iter().all(|m| m.is_finite()) && deviation.iter().all(|d| d.is_finite() && *d > 0.0) && limit > 0.0;
        (fits && sound).then_some(Self { layout, mean, deviation, limit })
    }

    /// Means, deviations and the limit.
    pub fn parts(&self) -> (&[f32], &[f32], f32) {
        (&self.mean, &self.deviation, self.limit)
    }

    /// Scales one flat observation in place.
    pub fn apply(&self, observation: &mut [f32]) {
        let features = self.layout.slot_features;
        let (slots, globals) = observation.split_at_mut(self.layout.slots * features);
        if features > 0 {
            for slot in slots.chunks_exact_mut(features).filter(|slot| slot[0] != 0.0) {
                self.scale(&mut slot[1..], 1);
            }
        }
        self.scale(globals, features);
    }

    fn scale(&self, values: &mut [f32], from: usize) {
        for (i, value) in values.iter_mut().enumerate() {
            *value = ((*value - self.mean[from + i]) / self.deviation[from + i]).clamp(-self.limit, self.limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_slots_and_the_flag_are_left_alone() {
        let layout = Layout { slots: 2, slot_features: 2, globals: 1, verbs: 1, services: 0, pools: false, types: 0 };
        let normaliser = Normaliser::new(layout, vec![9.0, 1.0, 4.0], vec![9.0, 2.0, 0.5], 3.0).unwrap();
        let mut observation = [1.0, 5.0, 0.0, 0.0, 40.0];
        normaliser.apply(&mut observation);
        assert_eq!(observation, [1.0, 2.0, 0.0, 0.0, 3.0]);
        assert_eq!(Normaliser::new(layout, vec![0.0; 3], vec![1.0, 0.0, 1.0], 3.0), None);
    }
}
