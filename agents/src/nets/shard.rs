//! A few rows of a batch, cut to the slots they use.
//!
//! Most slots are empty most of the time. Rows of a minibatch are sorted by how many slots they
//! need before they are divided into shards, and each shard computes only as many slots as its
//! neediest row.

use burn::tensor::{Device, Tensor, TensorData};
use goodput_env::gym::Layout;

use crate::nets::fused::Fused;
use crate::nets::weights::NetConfig;

/// The observations and masks of a whole batch, row by row.
pub(crate) struct Source<'a> {
    pub layout: Layout,
    /// Values of shape `[rows, obs_dim]`.
    pub observations: &'a [f32],
    /// `[rows, actions]`, 1 = allowed.
    pub masks: &'a [u8],
    /// Slots that each row needs: up to its last occupied one.
    extents: Vec<usize>,
}

impl<'a> Source<'a> {
    /// Reads once how many slots each row needs; epochs visit the rows again and again, in random order.
    pub fn new(layout: Layout, observations: &'a [f32], masks: &'a [u8]) -> Self {
        // Tensors have no empty dimension, so one slot is kept where no job is.
        let extent = |row: &[f32]| layout.extent(row).max(1);
        let extents = observations.chunks_exact(layout.obs_dim()).map(extent).collect();
        Self { layout, observations, masks, extents }
    }

    fn observation(&self, row: u32) -> &[f32] {
        let size = self.layout.obs_dim();
        &self.observations[row as usize * size..(row as usize + 1) * size]
    }

    fn mask(&self, row: u32) -> &[u8] {
        let size = self.layout.actions();
        &self.masks[row as usize * size..(row as usize + 1) * size]
    }

    /// Slots a row needs: up to its last occupied one.
    pub fn extent(&self, row: u32) -> usize {
        self.extents[row as usize]
    }
}

/// Inputs of a net.
#[expect(clippy::large_enum_variant, reason = "one of them per shard")]
pub(crate) enum Inputs {
    Set(SetInputs),
    Flat(FlatInputs),
}

/// Inputs of a perceptron: all slots side by side, and the cluster.
pub(crate) struct FlatInputs {
    /// Values of shape `[rows, slots * slot_features]`.
    pub features: Tensor<2>,
    /// `[rows, globals]`, unless there are none.
    pub globals: Option<Tensor<2>>,
}

/// Inputs of a set encoder.
pub(crate) struct SetInputs {
    pub rows: usize,
    pub slots: usize,
    /// Values of shape `[rows * slots, slot_features]`.
    pub features: Tensor<2>,
    /// `[rows, globals]`, unless there are none.
    pub globals: Option<Tensor<2>>,
    /// `[rows, slots, 1]` of 0 and 1, unless all are occupied.
    pub occupied: Option<Tensor<3>>,
    /// `[rows, 1]`: one over the number of occupied slots.
    pub share: Tensor<2>,
}

/// Some rows, cut to the slots that one of them needs.
pub(crate) struct Shard {
    /// Number of rows.
    pub rows: usize,
    /// Slots kept of each row.
    pub slots: usize,
    /// Values of shape `[rows, slots, slot_features]`.
    pub features: Vec<f32>,
    /// Values of shape `[rows, globals]`.
    pub globals: Vec<f32>,
    /// `[rows, actions kept]`: 0 where allowed, -1e9 elsewhere.
    pub penalty: Vec<f32>,
    /// Allowed actions of each row.
    pub allowed: Vec<u32>,
}

impl Shard {
    /// Copies `rows` of `source`, none of which needs more than so many slots.
    pub fn gather(source: &Source<'_>, rows: &[u32], slots: usize) -> Self {
        let Layout { slot_features, globals, verbs, .. } = source.layout;
        let count = rows.len();
        let mut shard = Self {
            rows: count,
            slots,
            features: Vec::with_capacity(count * slots * slot_features),
            globals: Vec::with_capacity(count * globals),
            penalty: Vec::with_capacity(count * (slots * verbs + source.layout.others())),
            allowed: Vec::with_capacity(count),
        };
        for &row in rows {
            let (of_slots, of_cluster) = source.observation(row).split_at(source.layout.slots * slot_features);
            shard.features.extend_from_slice(&of_slots[..slots * slot_features]);
            shard.globals.extend_from_slice(of_cluster);
            let mask = source.mask(row);
            let kept = mask[..slots * verbs].iter().chain(&mask[source.layout.first_other()..]);
            let from = shard.penalty.len();
            // The penalty makes a probability 0; an infinity would make gradients NaN.
            shard.penalty.extend(kept.map(|&allowed| if allowed == 0 { -1e9 } else { 0.0 }));
            let allowed = shard.penalty[from..].iter().filter(|&&p| p == 0.0).count();
            debug_assert_eq!(mask.iter().filter(|&&m| m != 0).count(), allowed, "actions on empty slots are masked");
            shard.allowed.push(allowed as u32);
        }
        shard
    }

    /// Actions kept of each row.
    pub fn actions(&self) -> usize {
        self.penalty.len() / self.rows.max(1)
    }

    /// Action probabilities of `net`, `[rows, actions kept]`.
    pub fn probabilities(&self, source: &Source<'_>, rows: &[u32], net: &Fused) -> Vec<f32> {
        let layout = &source.layout;
        let (mut scratch, mut all) = (net.scratch(), vec![0.0; layout.actions()]);
        let mut kept = Vec::with_capacity(self.penalty.len());
        for &row in rows {
            net.probabilities(source.observation(row), source.mask(row), &mut scratch, &mut all);
            kept.extend_from_slice(&all[..self.slots * layout.verbs]);
            kept.extend_from_slice(&all[layout.first_other()..]);
        }
        kept
    }

    /// As tensors on `device`, for a net of this kind; a perceptron needs all slots.
    pub fn inputs(&self, config: &NetConfig, device: &Device) -> Inputs {
        let Self { rows, slots, .. } = *self;
        let two = |values: Vec<f32>, shape: [usize; 2]| Tensor::<2>::from_data(TensorData::new(values, shape), device);
        let by_row = |values: &Vec<f32>| two(values.clone(), [rows, values.len() / rows]);
        let globals = (!self.globals.is_empty()).then(|| by_row(&self.globals));
        if let NetConfig::Mlp(_) = config {
            return Inputs::Flat(FlatInputs { features: by_row(&self.features), globals });
        }
        let slot_features = self.features.len() / (rows * slots);
        let jobs = self.features.chunks_exact(slot_features);
        let occupied: Vec<f32> = jobs.map(|slot| if slot[0] == 0.0 { 0.0 } else { 1.0 }).collect();
        let share = occupied.chunks_exact(slots).map(|row| 1.0 / row.iter().sum::<f32>().max(1.0)).collect();
        let full = occupied.iter().all(|&o| o == 1.0);
        Inputs::Set(SetInputs {
            rows,
            slots,
            features: two(self.features.clone(), [rows * slots, slot_features]),
            globals,
            share: two(share, [rows, 1]),
            occupied: (!full).then(|| Tensor::from_data(TensorData::new(occupied, [rows, slots, 1]), device)),
        })
    }

    /// Index of `action` among the kept actions. Those of slots that are not kept map to the last.
    pub fn local_action(&self, layout: &Layout, action: usize) -> usize {
        let of_slots = self.slots * layout.verbs;
        match action.checked_sub(layout.first_other()) {
            Some(other) => of_slots + other,
            None if action < of_slots => action,
            None => of_slots + layout.others() - 1,
        }
    }
}
