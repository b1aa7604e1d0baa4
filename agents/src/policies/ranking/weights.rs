//! The net of a ranking: which layers, and their numbers in one flat vector.

use super::observation::{Observation, PAIR_FEATURES};
use crate::nets::weights::{HIDDEN, Layer, Plan, SetConfig, WeightsError};

/// Layers, in the order of the flat vector; those of attention, where there is any, follow.
pub(super) mod layer {
    pub const JOB1: usize = 0;
    pub const JOB2: usize = 1;
    pub const POOL1: usize = 2;
    pub const POOL2: usize = 3;
    pub const PROJECT: usize = 4;
    pub const PAIR: usize = 5;
    pub const SCORE: usize = 6;
    /// With attention only.
    pub const ATTEND: usize = 7;
    pub const MERGE: usize = 8;
}

/// A set encoder over jobs that scores pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct RankingNet {
    config: SetConfig,
    layers: Vec<Layer>,
    data: Vec<f32>,
}

impl RankingNet {
    /// Orthogonal matrices and zero biases by `seed`; the last layer is zero, so that it says nothing yet.
    pub fn new(config: &SetConfig, seed: u64) -> Self {
        let plan = plan(config);
        Self { config: config.clone(), data: plan.initial(seed), layers: plan.layers() }
    }

    /// Stored numbers.
    ///
    /// # Errors
    /// When their number is not that of the net, or one is not finite.
    pub fn from_data(config: &SetConfig, data: Vec<f32>) -> Result<Self, WeightsError> {
        let layers = plan(config).layers();
        WeightsError::check(&layers, &data)?;
        Ok(Self { config: config.clone(), layers, data })
    }

    /// Its hyper-parameters.
    pub const fn config(&self) -> &SetConfig {
        &self.config
    }

    /// Layers in storage order.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The layers of such a net.
    pub fn layers_of(config: &SetConfig) -> Vec<Layer> {
        plan(config).layers()
    }

    /// All numbers.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// All numbers, to be changed in place.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// Matrix and bias of layer `index`.
    pub fn layer(&self, index: usize) -> (&[f32], &[f32]) {
        self.layers[index].split(&self.data)
    }
}

fn plan(config: &SetConfig) -> Plan {
    let layout = Observation::layout();
    let width = config.width.get();
    let (double, pooled) = (width.saturating_mul(2), width.saturating_mul(2).saturating_add(layout.globals));
    let mut plan = Plan::default();
    plan.add("job1", layout.slot_features, width, HIDDEN);
    plan.add("job2", width, width, HIDDEN);
    plan.add("pool1", pooled, double, HIDDEN);
    plan.add("pool2", double, width, HIDDEN);
    plan.add("project", width, width, HIDDEN);
    plan.add("pair", PAIR_FEATURES, width, HIDDEN);
    plan.add("score", width, 1, 0.0);
    plan.add_attention(config);
    plan
}
