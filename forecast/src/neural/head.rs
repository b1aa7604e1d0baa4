//! From the last layer to quantiles, and what they are worth.

use serde::{Deserialize, Serialize};

use super::spec::Shape;

/// What is minimised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loss {
    /// `max(q e, (q - 1) e)` of the error `e` at each level `q`: Koenker and Bassett, "Regression quantiles", Econometrica 46(1), 1978.
    #[default]
    Pinball,
    /// The squared error of the median alone.
    Squared,
}

/// The lowest quantile is free, each next one is above it by a softplus: quantiles never cross. In place, level after level.
pub(super) fn quantiles(shape: &Shape, raw: &mut [f32]) {
    for at in shape.horizon..raw.len() {
        raw[at] = raw[at - shape.horizon] + softplus(raw[at]);
    }
}

fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The same in burn, and the loss. Levels are parts of the columns.
#[cfg(feature = "train")]
pub(super) mod graph {
    use burn::tensor::Tensor;
    use burn::tensor::activation::relu;

    use super::Loss;
    use crate::neural::spec::Shape;

    /// One `[rows, horizon]` tensor a level.
    pub fn quantiles(shape: &Shape, raw: &Tensor<2>) -> Vec<Tensor<2>> {
        let part = |level: usize| raw.clone().slice_dim(1, level * shape.horizon..(level + 1) * shape.horizon);
        let mut levels = vec![part(0)];
        for level in 1..shape.levels {
            let above = levels[level - 1].clone() + softplus(part(level));
            levels.push(above);
        }
        levels
    }

    fn softplus(x: Tensor<2>) -> Tensor<2> {
        relu(x.clone()) + x.abs().neg().exp().log1p()
    }

    /// The sum of `weight * loss` over all rows, steps and levels, divided by the number of levels.
    pub fn loss(
        loss: Loss,
        levels: &[f64],
        quantiles: &[Tensor<2>],
        target: &Tensor<2>,
        weight: &Tensor<2>,
    ) -> Tensor<1> {
        let mut total: Option<Tensor<1>> = None;
        for (&level, quantile) in levels.iter().zip(quantiles) {
            let error = target.clone() - quantile.clone();
            let each = match loss {
                // q e where e is positive, else (q - 1) e.
                Loss::Pinball => relu(error.clone()) - error.mul_scalar(1.0 - level),
                Loss::Squared => error.clone() * error,
            };
            let sum = (each * weight.clone()).sum();
            total = Some(match total {
                Some(total) => total + sum,
                None => sum,
            });
        }
        let total = total.unwrap_or_else(|| weight.clone().sum().mul_scalar(0.0));
        total.div_scalar(levels.len().max(1) as f64)
    }
}
