//! A few rows of a batch as tensors, cut to the slots they use.
//!
//! Most slots are empty most of the time. Rows of a minibatch are sorted by how many slots they need before they are divided
//! into shards, and each shard computes only as many slots as its neediest row.

use burn::tensor::{Device, Tensor, TensorData};
use goodput_env::gym::Layout;

use super::weights::NetConfig;

/// The observations and masks of a whole batch, row by row.
pub(super) struct Source<'a> {
    pub config: &'a NetConfig,
    pub layout: Layout,
    /// `[rows, obs_dim]`.
    pub observations: &'a [f32],
    /// `[rows, actions]`, 1 = allowed.
    pub masks: &'a [u8],
}

impl Source<'_> {
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
        self.layout.extent(self.observation(row)).max(1)
    }
}

/// What a net reads.
#[expect(clippy::large_enum_variant, reason = "one of them per shard")]
pub(super) enum Inputs {
    Set(SetInputs),
    Flat(FlatInputs),
}

/// What a flat net reads: slots that are kept side by side, and the cluster.
pub(super) struct FlatInputs {
    /// `[rows, slots kept * slot_features]`.
    pub features: Tensor<2>,
    /// `[rows, globals]`, unless there are none.
    pub globals: Option<Tensor<2>>,
    /// Actions about slots that are kept.
    pub actions: usize,
}

/// What a set encoder reads.
pub(super) struct SetInputs {
    pub rows: usize,
    pub slots: usize,
    /// `[rows * slots, slot_features]`.
    pub features: Tensor<2>,
    /// `[rows, globals]`, unless there are none.
    pub globals: Option<Tensor<2>>,
    /// `[rows, slots, 1]` of 0 and 1, unless all are occupied.
    pub occupied: Option<Tensor<3>>,
    /// `[rows, 1]`: one over the number of occupied slots.
    pub share: Tensor<2>,
}

/// Some rows as tensors.
pub(super) struct Shard {
    /// Slots kept of each row.
    pub slots: usize,
    pub inputs: Inputs,
    /// `[rows, actions kept]`: 0 where allowed, -1e9 elsewhere.
    pub penalty: Tensor<2>,
    /// Allowed actions of each row.
    pub allowed: Vec<u32>,
}

impl Shard {
    /// Copies `rows` of `source` to `device`.
    pub fn gather(source: &Source<'_>, rows: &[u32], device: &Device) -> Self {
        let Layout { slot_features, globals, verbs, .. } = source.layout;
        let others = source.layout.others();
        let count = rows.len();
        let slots = rows.iter().map(|&row| source.extent(row)).max().unwrap_or(1);
        let two = |values: Vec<f32>, shape: [usize; 2]| Tensor::<2>::from_data(TensorData::new(values, shape), device);

        let mut penalty = Vec::with_capacity(count * (slots * verbs + others));
        let mut allowed = Vec::with_capacity(count);
        for &row in rows {
            let mask = source.mask(row);
            let kept = mask[..slots * verbs].iter().chain(&mask[source.layout.first_other()..]);
            let from = penalty.len();
            penalty.extend(kept.map(|&allowed| if allowed == 0 { -1e9 } else { 0.0 }));
            allowed.push(penalty[from..].iter().filter(|&&p| p == 0.0).count() as u32);
            debug_assert_eq!(
                mask.iter().filter(|&&m| m != 0).count(),
                *allowed.last().unwrap_or(&0) as usize,
                "actions on empty slots are masked"
            );
        }

        let inputs = match source.config {
            NetConfig::Mlp(_) => {
                let kept = slots * slot_features;
                let cut = |range: std::ops::Range<usize>| -> Vec<f32> {
                    rows.iter().flat_map(|&row| &source.observation(row)[range.clone()]).copied().collect()
                };
                let tail = source.layout.slots * slot_features..source.layout.obs_dim();
                Inputs::Flat(FlatInputs {
                    features: two(cut(0..kept), [count, kept]),
                    globals: (globals > 0).then(|| two(cut(tail), [count, globals])),
                    actions: slots * verbs,
                })
            }
            NetConfig::Set(_) => {
                let mut features = Vec::with_capacity(count * slots * slot_features);
                let mut context = Vec::with_capacity(count * globals);
                let (mut occupied, mut share) = (Vec::with_capacity(count * slots), Vec::with_capacity(count));
                for &row in rows {
                    let (of_slots, of_cluster) = source.observation(row).split_at(source.layout.slots * slot_features);
                    let kept = &of_slots[..slots * slot_features];
                    features.extend_from_slice(kept);
                    context.extend_from_slice(of_cluster);
                    let from = occupied.len();
                    occupied
                        .extend(kept.chunks_exact(slot_features).map(|slot| if slot[0] == 0.0 { 0.0 } else { 1.0f32 }));
                    share.push(1.0 / occupied[from..].iter().sum::<f32>().max(1.0));
                }
                let full = occupied.iter().all(|&o| o == 1.0);
                let mask =
                    |values: Vec<f32>| Tensor::<3>::from_data(TensorData::new(values, [count, slots, 1]), device);
                Inputs::Set(SetInputs {
                    rows: count,
                    slots,
                    features: two(features, [count * slots, slot_features]),
                    globals: (globals > 0).then(|| two(context, [count, globals])),
                    occupied: (!full).then(|| mask(occupied)),
                    share: two(share, [count, 1]),
                })
            }
        };
        Self { slots, inputs, penalty: two(penalty, [count, slots * verbs + others]), allowed }
    }

    /// Where `action` lies among the actions kept. Those of slots that are not kept map to the last.
    pub fn local_action(&self, layout: &Layout, action: usize) -> usize {
        let of_slots = self.slots * layout.verbs;
        match action.checked_sub(layout.first_other()) {
            Some(other) => of_slots + other,
            None if action < of_slots => action,
            None => of_slots + layout.others() - 1,
        }
    }
}
