//! The set encoder without a tensor framework: only occupied slots cost anything.

use goodput_env::gym::Layout;

use super::Scratch;
use super::attention::{Buffers, attend};
use super::dense::{Activation, Dense};
use crate::nets::weights::{Heads, SetConfig, Weights, set_layer as layer};

/// Layers of the set encoder, indexed by [`layer`].
#[derive(Clone, Debug)]
pub(super) struct SetForward {
    layers: Vec<Dense>,
    width: usize,
    heads: Option<Heads>,
}

impl SetForward {
    pub fn new(weights: &Weights, config: &SetConfig) -> Self {
        Self { layers: super::dense_layers(weights), width: config.width.get(), heads: config.heads() }
    }

    /// Buffers of attention among this many slots.
    pub fn attention_buffers(&self, slots: usize) -> Buffers {
        self.heads.map_or_else(Buffers::default, |heads| Buffers::new(heads, self.width, slots))
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn layers_mut(&mut self) -> &mut [Dense] {
        &mut self.layers
    }

    /// Embeds the occupied slots into `scratch.b` and pools them with the globals into
    /// `scratch.pooled`.
    pub fn encode(&self, layout: &Layout, observation: &[f32], scratch: &mut Scratch) {
        let (features, w) = (layout.slot_features, self.width);
        let (slots, globals) = observation.split_at(layout.slots * features);
        scratch.occupied.clear();
        if features > 0 {
            for (slot, row) in slots.chunks_exact(features).enumerate() {
                // The first feature marks an occupied slot. Empty slots are left out here, so a short queue costs
                // little in every layer that follows.
                if row[0] != 0.0 {
                    let n = scratch.occupied.len();
                    scratch.x[n * features..(n + 1) * features].copy_from_slice(row);
                    scratch.occupied.push(slot);
                }
            }
        }
        let n = scratch.occupied.len();
        // Rows are padded to whole vectors, so they lie `stride` apart although `w` numbers of each count.
        let stride = self.layers[layer::SLOT1].width();
        self.layers[layer::SLOT1].forward(n, &scratch.x, features, Activation::Relu, &mut scratch.a);
        self.layers[layer::SLOT2].forward(n, &scratch.a, stride, Activation::Relu, &mut scratch.b);
        if let Some(heads) = self.heads {
            let layers = [layer::ATTEND, layer::MERGE].map(|at| &self.layers[at]);
            attend(heads, layers, n, &mut scratch.b, &mut scratch.attention);
        }
        pool(&scratch.b, stride, n, w, globals, &mut scratch.pooled);
    }

    /// Scores of all actions from what [`Self::encode`] left; 0 for empty slots, which allow no
    /// action.
    pub fn logits(&self, layout: &Layout, scratch: &mut Scratch) {
        let (n, verbs) = (scratch.occupied.len(), layout.verbs);
        let [pool1, pool2, project] = [layer::POOL1, layer::POOL2, layer::PROJECT].map(|i| &self.layers[i]);
        pool1.forward(1, &scratch.pooled, 0, Activation::Relu, &mut scratch.hidden);
        pool2.forward(1, &scratch.hidden, 0, Activation::None, &mut scratch.context);
        // All jobs share the context, so it is added once, to the bias.
        for (start, (&context, &bias)) in scratch.start.iter_mut().zip(scratch.context.iter().zip(project.bias())) {
            *start = context + bias;
        }
        let stride = project.width();
        project.forward_from(&scratch.start, n, &scratch.b, stride, Activation::Relu, &mut scratch.a);
        let head = &self.layers[layer::VERBS];
        head.forward(n, &scratch.a, stride, Activation::None, &mut scratch.scores);

        scratch.logits.fill(0.0);
        // Scores are in order of occupied slots, and actions are numbered by slot.
        for (&slot, row) in scratch.occupied.iter().zip(scratch.scores.chunks_exact(head.width().max(1))) {
            scratch.logits[slot * verbs..(slot + 1) * verbs].copy_from_slice(&row[..verbs]);
        }
        // The slots took the context as a bias, negative parts included; only waiting goes through the activation.
        scratch.context.iter_mut().for_each(|c| *c = c.max(0.0));
        self.layers[layer::WAIT].forward(1, &scratch.context, 0, Activation::None, &mut scratch.out);
        scratch.logits[layout.first_other()..].copy_from_slice(&scratch.out[..layout.others()]);
    }

    /// Value of the state from what [`Self::encode`] left.
    pub fn value(&self, scratch: &mut Scratch) -> f32 {
        let [value1, value2, value3] = [layer::VALUE1, layer::VALUE2, layer::VALUE3].map(|i| &self.layers[i]);
        value1.forward(1, &scratch.pooled, 0, Activation::Relu, &mut scratch.hidden);
        value2.forward(1, &scratch.hidden, 0, Activation::Relu, &mut scratch.context);
        value3.forward(1, &scratch.context, 0, Activation::None, &mut scratch.out);
        scratch.out[0]
    }
}

/// Writes the mean and the maximum of `rows` embeddings of this `width`, which lie `stride` apart
/// and are not negative, and `globals` after them.
pub(crate) fn pool(embedded: &[f32], stride: usize, rows: usize, width: usize, globals: &[f32], pooled: &mut [f32]) {
    let (mean, rest) = pooled.split_at_mut(width);
    let (max, rest) = rest.split_at_mut(width);
    rest.copy_from_slice(globals);
    mean.fill(0.0);
    // Zero is below no embedding, since embeddings are not negative; it stays where there are no rows.
    max.fill(0.0);
    for row in embedded.chunks_exact(stride).take(rows) {
        for ((mean, max), &h) in mean.iter_mut().zip(max.iter_mut()).zip(row) {
            *mean += h;
            *max = if h > *max { h } else { *max };
        }
    }
    let count = rows.max(1) as f32;
    mean.iter_mut().for_each(|mean| *mean /= count);
}
