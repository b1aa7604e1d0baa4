//! Quantile heads, from the last layer to quantiles, and the losses of nets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::NetShape;

/// Loss that training minimises.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetLoss {
    /// Pinball loss `max(q e, (q - 1) e)` of the error `e` at each level `q`: Koenker and Bassett,
    /// "Regression quantiles", Econometrica 46(1), 1978.
    #[default]
    Pinball,
    /// The squared error of the median alone.
    Squared,
}

/// Translation of raw outputs into quantiles, named where nets are stored: one of another head is
/// refused and not misread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HeadKind {
    /// Quantiles built outward from the median, as [`quantiles`] does.
    #[default]
    FromMedian,
}

/// The median is free; each quantile above it is a softplus above the one before, each below it a
/// softplus below the one after: quantiles never cross. In place, level after level.
///
/// From the median and not from the lowest: a net that has learnt nothing (all outputs 0) then
/// forecasts the centre of its window, and the median of a linear net is linear. Built up from the
/// lowest, it would begin a softplus a level too high and have to unlearn that with every weight it
/// has.
pub(super) fn quantiles(shape: &NetShape, raw: &mut [f32]) {
    let (median, steps) = (shape.median * shape.horizon, shape.horizon);
    // Outward from the median, because each level needs the finished level beside it.
    for at in median + steps..raw.len() {
        raw[at] = raw[at - steps] + softplus(raw[at]);
    }
    for at in (0..median).rev() {
        raw[at] = raw[at + steps] - softplus(raw[at]);
    }
}

fn softplus(x: f32) -> f32 {
    // The exponential of a number that is not positive cannot overflow.
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Quantile head and losses in burn. Levels are parts of the columns.
#[cfg(feature = "train")]
pub(super) mod graph {
    use burn::tensor::Tensor;
    use burn::tensor::activation::relu;

    use super::NetLoss;
    use crate::neural::spec::NetShape;

    /// Quantiles, one tensor of shape `[rows, horizon]` for each level.
    pub fn quantiles(shape: &NetShape, raw: &Tensor<2>) -> Vec<Tensor<2>> {
        let part = |level: usize| raw.clone().slice_dim(1, level * shape.horizon..(level + 1) * shape.horizon);
        let median = part(shape.median);
        let mut levels: Vec<Tensor<2>> = (0..shape.median)
            .rev()
            .scan(median.clone(), |above, level| {
                *above = above.clone() - softplus(part(level));
                Some(above.clone())
            })
            .collect();
        levels.reverse();
        levels.push(median);
        for level in shape.median + 1..shape.levels {
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
        loss: NetLoss,
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
                NetLoss::Pinball => relu(error.clone()) - error.mul_scalar(1.0 - level),
                NetLoss::Squared => error.clone() * error,
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
