//! LSTM: a recurrent net over the window, all steps ahead from its last state.
//!
//! Hochreiter and Schmidhuber, "Long short-term memory", Neural Computation 9(8), 1997, with forget
//! gates (Gers et al. 2000, bias 1 at the start). A direct head for all steps, because a net that
//! is fed its own forecasts adds up errors. It takes in `chunk` values at a time: a day of ten
//! minutes is then 24 steps of recurrence and not 144, which is where all its time goes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameters::{InitialValues, Parameter, ParameterReader, affine};
use super::spec::{Layers, NetShape, within};

/// Settings of the LSTM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Lstm {
    /// Number of units of the state.
    pub hidden: usize,
    /// Number of values taken in at once; the lookback is a multiple of it.
    pub chunk: usize,
}

impl Default for Lstm {
    fn default() -> Self {
        Self { hidden: 64, chunk: 1 }
    }
}

const GATES: [&str; 4] = ["input", "forget", "output", "candidate"];

impl Layers for Lstm {
    fn check(&self, shape: &NetShape) -> Result<(), (&'static str, String)> {
        within("hidden", self.hidden, 1, 4096)?;
        within("chunk", self.chunk, 1, shape.lookback)?;
        if shape.lookback.is_multiple_of(self.chunk) {
            Ok(())
        } else {
            Err(("chunk", format!("a divisor of the lookback of {} steps", shape.lookback)))
        }
    }

    fn parameters(&self, shape: &NetShape) -> Vec<Parameter> {
        let start = InitialValues::Uniform(1.0 / (self.hidden as f32).sqrt());
        let mut list = Vec::new();
        for gate in GATES {
            let bias = if gate == "forget" { 1.0 } else { 0.0 };
            list.push(Parameter::new(format!("{gate}.input"), self.chunk, self.hidden, start));
            list.push(Parameter::new(format!("{gate}.state"), self.hidden, self.hidden, start));
            list.push(Parameter::new(format!("{gate}.bias"), 1, self.hidden, InitialValues::Constant(bias)));
        }
        list.extend(affine("head", self.hidden, shape.outputs()));
        list
    }

    fn forward(&self, _: &NetShape, weights: &mut ParameterReader<'_>, features: &[f32]) -> Vec<f32> {
        let gates: [_; 4] = std::array::from_fn(|_| (weights.next(), weights.next(), weights.next()));
        let (mut state, mut cell) = (vec![0.0; self.hidden], vec![0.0; self.hidden]);
        // One step of recurrence takes in a chunk of values, which makes the recurrence that much
        // shorter.
        for x in features.chunks_exact(self.chunk) {
            let [i, f, o, g] = gates.map(|(input, recurrent, bias)| {
                let from_input = input.affine(x, bias.data);
                recurrent.affine(&state, &from_input)
            });
            for unit in 0..self.hidden {
                cell[unit] = sigmoid(f[unit]) * cell[unit] + sigmoid(i[unit]) * tanh(g[unit]);
                state[unit] = sigmoid(o[unit]) * tanh(cell[unit]);
            }
        }
        weights.affine(&state)
    }

    #[cfg(feature = "train")]
    fn graph(&self, shape: &NetShape, graph: &mut super::graph::Graph<'_>) -> burn::tensor::Tensor<2> {
        use burn::tensor::{Tensor, activation::sigmoid};
        // Twice a logistic function less one is the hyperbolic tangent, and much cheaper than
        // burn's own.
        let tanh = |x: Tensor<2>| sigmoid(x.mul_scalar(2.0)).mul_scalar(2.0).sub_scalar(1.0);
        // The gates side by side: one product a step and not four.
        let gates: [_; 4] = std::array::from_fn(|_| [graph.next(), graph.next(), graph.next()]);
        let [input, recurrent, bias] =
            std::array::from_fn(|part| Tensor::cat(gates.iter().map(|gate| gate[part].clone()).collect(), 1));
        let mut state: Option<(Tensor<2>, Tensor<2>)> = None;
        for step in 0..shape.lookback / self.chunk {
            let x = graph.features.clone().slice_dim(1, step * self.chunk..(step + 1) * self.chunk);
            let from_input = x.matmul(input.clone()) + bias.clone();
            let raw = match &state {
                Some((hidden, _)) => hidden.clone().matmul(recurrent.clone()) + from_input,
                None => from_input,
            };
            let open = sigmoid(raw.clone().slice_dim(1, 0..3 * self.hidden));
            let gate = |number: usize| open.clone().slice_dim(1, number * self.hidden..(number + 1) * self.hidden);
            let new = gate(0) * tanh(raw.slice_dim(1, 3 * self.hidden..4 * self.hidden));
            let cell = match state {
                Some((_, cell)) => gate(1) * cell + new,
                None => new,
            };
            state = Some((gate(2) * tanh(cell.clone()), cell));
        }
        let hidden = state.map_or_else(|| graph.features.clone(), |(hidden, _)| hidden);
        graph.affine(hidden)
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

fn tanh(x: f32) -> f32 {
    2.0 * sigmoid(2.0 * x) - 1.0
}
