//! DLinear: one linear map of the trend and one of the rest, added.
//!
//! Zeng, Chen, Zhang, Xu, "Are transformers effective for time series forecasting?", AAAI 2023: the
//! trend is a centred moving average over `kernel` values, the ends repeated. A map to one level
//! begins as a mean (`1 / lookback`), as in their code; with more levels all begin at nothing:
//! outputs beside the median are distances, and the median then begins at the centre of the window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameters::{InitialValues, Parameter, ParameterReader};
use super::spec::{Layers, NetShape, within};

/// Settings of DLinear.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dlinear {
    /// Values averaged for the trend, an odd number.
    pub kernel: usize,
}

impl Default for Dlinear {
    fn default() -> Self {
        Self { kernel: 25 }
    }
}

impl Layers for Dlinear {
    fn check(&self, _: &NetShape) -> Result<(), (&'static str, String)> {
        within("kernel", self.kernel, 1, 100_001)?;
        if self.kernel.is_multiple_of(2) {
            Err(("kernel", format!("an odd number, not {}", self.kernel)))
        } else {
            Ok(())
        }
    }

    fn parameters(&self, shape: &NetShape) -> Vec<Parameter> {
        let mean = InitialValues::Constant(if shape.levels == 1 { 1.0 / shape.lookback as f32 } else { 0.0 });
        vec![
            Parameter::new("trend.weight", shape.lookback, shape.outputs(), mean),
            Parameter::new("trend.bias", 1, shape.outputs(), InitialValues::Constant(0.0)),
            Parameter::new("rest.weight", shape.lookback, shape.outputs(), mean),
            Parameter::new("rest.bias", 1, shape.outputs(), InitialValues::Constant(0.0)),
        ]
    }

    fn features(&self, shape: &NetShape, window: &[f32]) -> Vec<f32> {
        let half = (self.kernel / 2) as isize;
        let last = shape.lookback as isize - 1;
        let at = |index: isize| window[index.clamp(0, last) as usize];
        let trend = |i: isize| (-half..=half).map(|offset| at(i + offset)).sum::<f32>() / self.kernel as f32;
        let trends: Vec<f32> = (0..=last).map(trend).collect();
        let rest: Vec<f32> = window.iter().zip(&trends).map(|(x, trend)| x - trend).collect();
        [trends, rest].concat()
    }

    fn forward(&self, shape: &NetShape, weights: &mut ParameterReader<'_>, features: &[f32]) -> Vec<f32> {
        let (trend, rest) = features.split_at(shape.lookback);
        let mut out = weights.affine(trend);
        for (out, rest) in out.iter_mut().zip(weights.affine(rest)) {
            *out += rest;
        }
        out
    }

    #[cfg(feature = "train")]
    fn graph(&self, shape: &NetShape, graph: &mut super::graph::Graph<'_>) -> burn::tensor::Tensor<2> {
        let trend = graph.features.clone().slice_dim(1, 0..shape.lookback);
        let rest = graph.features.clone().slice_dim(1, shape.lookback..2 * shape.lookback);
        graph.affine(trend) + graph.affine(rest)
    }
}
