//! Layers of a net, and the places of their parameters in one flat vector.

use std::num::NonZeroUsize;

use goodput_env::gym::Layout;
use goodput_env::seed::{Stream, rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nets::init::orthogonal;

/// Gain of hidden layers: keeps the variance of ReLU activations.
pub(crate) const HIDDEN: f32 = std::f32::consts::SQRT_2;
/// Gain of action scores: the first policy is close to uniform over what is allowed.
const POLICY: f32 = 0.01;
/// Gain of the state value.
const VALUE: f32 = 1.0;

/// A net by its hyper-parameters. Written as a table: `[agent.net.set]` or `[agent.net.mlp]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetConfig {
    /// A set encoder: the same scores whatever the order of the slots.
    Set(SetConfig),
    /// Two multilayer perceptrons on the flat observation.
    Mlp(MlpConfig),
}

/// A DeepSets actor-critic (Zaheer et al. 2017; the kernel network of RLScheduler, SC'20, with a
/// pooled context).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SetConfig {
    /// Width W of a slot's embedding; pooled layers are twice as wide.
    pub width: NonZeroUsize,
    /// Heads of attention between embedding and pooling, so that a job is seen beside each of the
    /// others and not only beside their mean and maximum (Set Transformer, Lee et al. 2019); 0:
    /// none. A round then costs the square of the jobs.
    #[serde(skip_serializing_if = "is_zero")]
    pub heads: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Heads of attention, and how long queries, keys and values of each are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    pub count: usize,
    pub depth: usize,
}

impl Heads {
    /// Factor of the products of queries and keys.
    pub fn scale(self) -> f32 {
        1.0 / (self.depth as f32).sqrt()
    }
}

/// An actor and a critic without shared layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MlpConfig {
    /// Widths of the hidden layers.
    pub hidden: Vec<NonZeroUsize>,
}

impl Default for SetConfig {
    fn default() -> Self {
        Self::new(NonZeroUsize::new(32).unwrap_or(NonZeroUsize::MIN))
    }
}

impl Default for MlpConfig {
    fn default() -> Self {
        Self { hidden: vec![NonZeroUsize::new(64).unwrap_or(NonZeroUsize::MIN); 2] }
    }
}

impl SetConfig {
    /// A set encoder of this width, without attention.
    pub const fn new(width: NonZeroUsize) -> Self {
        Self { width, heads: 0 }
    }

    /// Attention of the encoder. More heads than the width has numbers have one each.
    pub(crate) fn heads(&self) -> Option<Heads> {
        (self.heads > 0).then(|| Heads { count: self.heads, depth: (self.width.get() / self.heads).max(1) })
    }
}

/// One affine layer, `y = x W + b` with `W` stored row by row as `[inputs, outputs]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Name of its tensors in a bundle: `<name>.weight` and `<name>.bias`.
    pub name: String,
    /// Rows of the matrix.
    pub inputs: usize,
    /// Columns of the matrix and length of the bias.
    pub outputs: usize,
    /// Start of the matrix in the flat vector; the bias follows it.
    pub offset: usize,
}

impl Layer {
    /// Parameters of the layer.
    pub const fn len(&self) -> usize {
        self.inputs.saturating_add(1).saturating_mul(self.outputs)
    }

    /// True for a layer without outputs.
    pub const fn is_empty(&self) -> bool {
        self.outputs == 0
    }

    /// The matrix and the bias in the flat vector.
    pub fn split<'a>(&self, data: &'a [f32]) -> (&'a [f32], &'a [f32]) {
        data[self.offset..self.offset + self.len()].split_at(self.inputs * self.outputs)
    }
}

/// Layers of a set encoder, in the order of its flat vector.
pub(crate) mod set_layer {
    pub const SLOT1: usize = 0;
    pub const SLOT2: usize = 1;
    pub const POOL1: usize = 2;
    pub const POOL2: usize = 3;
    pub const PROJECT: usize = 4;
    pub const VERBS: usize = 5;
    pub const WAIT: usize = 6;
    pub const VALUE1: usize = 7;
    pub const VALUE2: usize = 8;
    pub const VALUE3: usize = 9;
    /// With attention only.
    pub const ATTEND: usize = 10;
    pub const MERGE: usize = 11;
}

/// Layers with their initial gains, one after the other in a flat vector. Sizes saturate: they may
/// come from a file.
#[derive(Debug, Default)]
pub(crate) struct LayerPlan {
    layers: Vec<(Layer, f32)>,
    offset: usize,
}

impl LayerPlan {
    pub fn add(&mut self, name: impl Into<String>, inputs: usize, outputs: usize, gain: f32) {
        let layer = Layer { name: name.into(), inputs, outputs, offset: self.offset };
        self.offset = self.offset.saturating_add(layer.len());
        self.layers.push((layer, gain));
    }

    /// The two layers of a set encoder's attention: to queries, keys and values, and back.
    pub fn add_attention(&mut self, config: &SetConfig) {
        if let Some(Heads { count, depth }) = config.heads() {
            let (width, inner) = (config.width.get(), count.saturating_mul(depth));
            self.add("attend", width, inner.saturating_mul(3), 1.0);
            self.add("merge", inner, width, 1.0);
        }
    }

    pub fn layers(self) -> Vec<Layer> {
        self.layers.into_iter().map(|(layer, _)| layer).collect()
    }

    /// Orthogonal matrices and zero biases from the stream [`Stream::Initialisation`] of `seed`.
    pub fn initial(&self, seed: u64) -> Vec<f32> {
        let mut random = rng(seed, Stream::Initialisation);
        let mut data = Vec::with_capacity(self.offset);
        for (layer, gain) in &self.layers {
            data.extend(orthogonal(layer.inputs, layer.outputs, *gain, &mut random));
            data.resize(data.len() + layer.outputs, 0.0);
        }
        data
    }
}

impl NetConfig {
    /// The layers of this net for observations and actions of `layout`, in storage order.
    pub fn layers(&self, layout: &Layout) -> Vec<Layer> {
        self.plan(layout).layers()
    }

    /// Parameters of this net for `layout`.
    pub fn parameters(&self, layout: &Layout) -> usize {
        self.layers(layout).iter().map(Layer::len).fold(0, usize::saturating_add)
    }

    fn plan(&self, layout: &Layout) -> LayerPlan {
        let mut plan = LayerPlan::default();
        match self {
            Self::Set(config) => {
                let w = config.width.get();
                let (double, pooled) = (w.saturating_mul(2), w.saturating_mul(2).saturating_add(layout.globals));
                plan.add("slot1", layout.slot_features, w, HIDDEN);
                plan.add("slot2", w, w, HIDDEN);
                plan.add("pool1", pooled, double, HIDDEN);
                plan.add("pool2", double, w, HIDDEN);
                plan.add("project", w, w, HIDDEN);
                plan.add("verbs", w, layout.verbs, POLICY);
                plan.add("wait", w, layout.others(), POLICY);
                plan.add("value1", pooled, double, HIDDEN);
                plan.add("value2", double, w, HIDDEN);
                plan.add("value3", w, 1, VALUE);
                plan.add_attention(config);
            }
            Self::Mlp(config) => {
                for (trunk, outputs, gain) in [("actor", layout.actions(), POLICY), ("critic", 1, VALUE)] {
                    let mut inputs = layout.obs_dim();
                    for (depth, width) in config.hidden.iter().enumerate() {
                        plan.add(format!("{trunk}{}", depth + 1), inputs, width.get(), HIDDEN);
                        inputs = width.get();
                    }
                    plan.add(format!("{trunk}_out"), inputs, outputs, gain);
                }
            }
        }
        plan
    }
}

/// The parameters of one net: a flat vector and the layers that divide it.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    config: NetConfig,
    layout: Layout,
    layers: Vec<Layer>,
    data: Vec<f32>,
}

/// Parameters that do not fit the net they are meant for.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WeightsError {
    /// Too few or too many numbers.
    #[error("{found} parameters for a net that has {expected}")]
    Length {
        /// Parameters of the net.
        expected: usize,
        /// Number of parameters given.
        found: usize,
    },
    /// A NaN or an infinity.
    #[error("parameter {index} of layer `{layer}` is not finite")]
    NotFinite {
        /// Name of the layer.
        layer: String,
        /// Position in the layer, the bias after the matrix.
        index: usize,
    },
}

impl WeightsError {
    /// Whether `data` are the finite numbers of these layers.
    pub(crate) fn check(layers: &[Layer], data: &[f32]) -> Result<(), Self> {
        let expected = layers.iter().map(Layer::len).fold(0, usize::saturating_add);
        if data.len() != expected {
            return Err(Self::Length { expected, found: data.len() });
        }
        for layer in layers {
            let values = &data[layer.offset..layer.offset + layer.len()];
            if let Some(index) = values.iter().position(|value| !value.is_finite()) {
                return Err(Self::NotFinite { layer: layer.name.clone(), index });
            }
        }
        Ok(())
    }
}

impl Weights {
    /// Orthogonal matrices and zero biases from the stream [`Stream::Initialisation`] of `seed`.
    pub fn new(config: &NetConfig, layout: Layout, seed: u64) -> Self {
        let plan = config.plan(&layout);
        Self { config: config.clone(), layout, data: plan.initial(seed), layers: plan.layers() }
    }

    /// Net of stored parameters.
    ///
    /// # Errors
    /// When their number is not that of the net, or one is not finite.
    pub fn from_data(config: &NetConfig, layout: Layout, data: Vec<f32>) -> Result<Self, WeightsError> {
        let layers = config.layers(&layout);
        WeightsError::check(&layers, &data)?;
        Ok(Self { config: config.clone(), layout, layers, data })
    }

    /// The net's hyper-parameters.
    pub const fn config(&self) -> &NetConfig {
        &self.config
    }

    /// The hyper-parameters of a set encoder; `None` for another net.
    pub const fn set_config(&self) -> Option<&SetConfig> {
        match &self.config {
            NetConfig::Set(config) => Some(config),
            NetConfig::Mlp(_) => None,
        }
    }

    /// Shapes of observations and actions.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Layers in storage order.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// All parameters as one flat vector.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// All parameters, to be changed in place.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// Matrix and bias of layer `index`.
    pub fn layer(&self, index: usize) -> (&[f32], &[f32]) {
        self.layers[index].split(&self.data)
    }
}
