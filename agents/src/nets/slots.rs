//! Scores of any number of slots by a set encoder.

use goodput_env::gym::Layout;
use sha2::{Digest, Sha256};

use crate::nets::fused::{Fused, Scratch};
use crate::nets::weights::Weights;

/// Layout of an observation of so many things, each with these numbers of features, on which a net acts by one verb.
pub const fn slot_layout(slots: usize, slot_features: usize, globals: usize) -> Layout {
    Layout { slots, slot_features, globals, verbs: 1, services: 0, pools: false, types: 0 }
}

/// SHA-256, in hexadecimal, of a kind of policy and the names of its features.
pub fn schema_hash(kind: &str, slot_features: &[&str], globals: &[&str]) -> String {
    let names = format!("{kind}:{}:{}", slot_features.join(","), globals.join(","));
    Sha256::digest(names.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A set encoder with room for as many slots as the longest row so far.
#[derive(Clone, Debug)]
pub struct SlotScorer {
    weights: Weights,
    net: Fused,
    scratch: Scratch,
    observation: Vec<f32>,
}

impl SlotScorer {
    /// Scorer by these weights, of a net with one verb.
    pub fn new(weights: &Weights) -> Self {
        let net = Fused::new(weights);
        Self { scratch: net.scratch(), net, weights: weights.clone(), observation: Vec::new() }
    }

    /// Makes room for more slots. The weights of a set encoder do not depend on their number.
    fn grow(&mut self, slots: usize) {
        let wider = Layout { slots: slots.next_power_of_two(), ..*self.weights.layout() };
        if let Ok(weights) = Weights::from_data(self.weights.config(), wider, self.weights.data().to_vec()) {
            *self = Self::new(&weights);
        }
    }

    /// Score of each slot. `features` are those of the slots, slot by slot, and then those of the cluster.
    pub fn scores(&mut self, features: &[f32]) -> &[f32] {
        let layout = *self.weights.layout();
        let (slots, globals) = features.split_at(features.len() - layout.globals);
        let count = slots.len() / layout.slot_features.max(1);
        if count > layout.slots {
            self.grow(count);
        }
        let width = self.weights.layout().slots * layout.slot_features;
        self.observation.clear();
        self.observation.extend_from_slice(slots);
        self.observation.resize(width, 0.0);
        self.observation.extend_from_slice(globals);
        &self.net.logits(&self.observation, &mut self.scratch)[..count]
    }
}
