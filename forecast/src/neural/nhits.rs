//! N-HiTS: perceptrons that look at the window at several rates, each explaining what the ones
//! before it left.
//!
//! Challu, Olivares, Oreshkin, Garza, Mergenthaler-Canseco, Dubrawski, "N-HiTS: Neural hierarchical
//! interpolation for time series forecasting", AAAI 2023. Stack `i` max-pools what is left of the
//! window by `pools[i]`, and its perceptron answers with the values of backcast and forecast at
//! every `rates[i]`-th step, between which it is interpolated: slow stacks can only say slow
//! things. Backcasts are taken off the window, forecasts added up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameters::{Parameter, ParameterReader, affine, relu};
use super::spec::{Layers, NetShape, within};

/// Settings of N-HiTS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Nhits {
    /// Values pooled into one, stack by stack; each a divisor of the lookback.
    pub pools: Vec<usize>,
    /// Steps between two values a stack answers with.
    pub rates: Vec<usize>,
    /// Units of a hidden layer.
    pub width: usize,
    /// Hidden layers of a perceptron.
    pub layers: usize,
}

impl Default for Nhits {
    fn default() -> Self {
        Self { pools: vec![8, 4, 1], rates: vec![24, 6, 1], width: 128, layers: 3 }
    }
}

impl Nhits {
    fn stacks(&self) -> impl Iterator<Item = (usize, usize)> {
        self.pools.iter().copied().zip(self.rates.iter().copied())
    }
}

/// Number of knots for `steps` steps with one knot every `rate` steps.
fn knots(steps: usize, rate: usize) -> usize {
    (steps / rate).max(1)
}

impl Layers for Nhits {
    fn check(&self, shape: &NetShape) -> Result<(), (&'static str, String)> {
        within("width", self.width, 1, 4096)?;
        within("layers", self.layers, 1, 16)?;
        if self.pools.is_empty() || self.pools.len() != self.rates.len() {
            return Err(("rates", format!("as many as pools, of which there are {}", self.pools.len())));
        }
        if self.pools.iter().any(|&pool| pool == 0 || !shape.lookback.is_multiple_of(pool)) {
            return Err(("pools", format!("divisors of the lookback of {} steps", shape.lookback)));
        }
        if self.rates.contains(&0) { Err(("rates", "at least 1 each".into())) } else { Ok(()) }
    }

    fn parameters(&self, shape: &NetShape) -> Vec<Parameter> {
        let mut list = Vec::new();
        for (stack, (pool, rate)) in self.stacks().enumerate() {
            let mut inputs = shape.lookback / pool;
            for layer in 0..self.layers {
                list.extend(affine(&format!("stack{stack}.hidden{layer}"), inputs, self.width));
                inputs = self.width;
            }
            list.extend(affine(&format!("stack{stack}.backcast"), inputs, knots(shape.lookback, rate)));
            list.extend(affine(&format!("stack{stack}.forecast"), inputs, knots(shape.horizon, rate) * shape.levels));
        }
        list
    }

    fn forward(&self, shape: &NetShape, weights: &mut ParameterReader<'_>, features: &[f32]) -> Vec<f32> {
        let mut rest = features.to_vec();
        let mut out = vec![0.0; shape.outputs()];
        for (pool, rate) in self.stacks() {
            let mut x: Vec<f32> =
                rest.chunks_exact(pool).map(|x| x.iter().copied().fold(f32::NEG_INFINITY, f32::max)).collect();
            for _ in 0..self.layers {
                x = weights.affine(&x);
                relu(&mut x);
            }
            let (backcast, forecast) = (weights.affine(&x), weights.affine(&x));
            let places = places(knots(shape.lookback, rate), shape.lookback);
            for (rest, place) in rest.iter_mut().zip(&places) {
                *rest -= place.of(&backcast);
            }
            let places = self::places(knots(shape.horizon, rate), shape.horizon);
            let levels = forecast.chunks_exact(knots(shape.horizon, rate));
            for (out, knots) in out.chunks_exact_mut(shape.horizon).zip(levels) {
                for (out, place) in out.iter_mut().zip(&places) {
                    *out += place.of(knots);
                }
            }
        }
        out
    }

    #[cfg(feature = "train")]
    fn graph(&self, shape: &NetShape, graph: &mut super::graph::Graph<'_>) -> burn::tensor::Tensor<2> {
        use burn::tensor::{Tensor, activation};
        let rows = graph.rows();
        let mut rest = graph.features.clone();
        let mut out: Option<Tensor<2>> = None;
        for (stack, (pool, rate)) in self.stacks().enumerate() {
            let pooled: Tensor<3> = rest.clone().reshape([rows, shape.lookback / pool, pool]);
            let mut x = if pool == 1 { rest.clone() } else { pooled.max_dim(2).reshape([rows, shape.lookback / pool]) };
            for _ in 0..self.layers {
                x = activation::relu(graph.affine(x));
            }
            let (backcast, forecast) = (graph.affine(x.clone()), graph.affine(x));
            // Nothing looks at what the last stack leaves of the window.
            if stack + 1 < self.pools.len() {
                rest = rest
                    - graph.interpolate(backcast, &spread(knots(shape.lookback, rate), shape.lookback), shape.lookback);
            }
            let knots = knots(shape.horizon, rate);
            let forecast = forecast.reshape([rows * shape.levels, knots]);
            let forecast = graph.interpolate(forecast, &spread(knots, shape.horizon), shape.horizon);
            let forecast = forecast.reshape([rows, shape.outputs()]);
            out = Some(match out {
                Some(out) => out + forecast,
                None => forecast,
            });
        }
        out.unwrap_or(rest)
    }
}

/// Position of a step between two knots.
struct KnotPosition {
    before: usize,
    after: usize,
    /// Distance from the knot before, from 0 to 1.
    share: f32,
}

impl KnotPosition {
    fn of(&self, knots: &[f32]) -> f32 {
        knots[self.before] * (1.0 - self.share) + knots[self.after] * self.share
    }
}

/// Position of each of `steps` steps between `knots` knots: a knot stands in the middle of its
/// steps, and the ends are flat.
fn places(knots: usize, steps: usize) -> Vec<KnotPosition> {
    let last = knots - 1;
    let place = |step: usize| {
        let at = ((step as f32 + 0.5) * knots as f32 / steps as f32 - 0.5).clamp(0.0, last as f32);
        let before = (at.floor() as usize).min(last);
        KnotPosition { before, after: (before + 1).min(last), share: at - before as f32 }
    };
    (0..steps).map(place).collect()
}

/// Linear interpolation between knots as a matrix of shape `[knots, steps]`.
#[cfg(feature = "train")]
fn spread(knots: usize, steps: usize) -> Vec<f32> {
    let mut matrix = vec![0.0; knots * steps];
    for (step, place) in places(knots, steps).iter().enumerate() {
        matrix[place.before * steps + step] += 1.0 - place.share;
        matrix[place.after * steps + step] += place.share;
    }
    matrix
}
