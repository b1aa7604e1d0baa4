//! Global: one small net for all load series, because it sees nothing but ratios within a series.
//!
//! For each step ahead, one perceptron looks at the recent values, at the values around this time of the past days, at
//! the means of the past days, and at the distance. It answers with shares of copies and with a correction: the median
//! is a mean of copies of the past, weighed by a softmax, plus the correction. A copy is the value at this time of a
//! past day, that value with the level of now in place of the level of then, or the last value. So the net is a learned
//! choice among the naive forecasts (attention over the past, as in Vaswani and others, NeurIPS 2017, with the copies
//! as values), and its first guess is their mean. Perceptrons shared over series and steps: Salinas and others,
//! "DeepAR", International Journal of Forecasting 36(3), 2020; Das and others, "TiDE", TMLR 2023.
//!
//! The net knows one step, of which [`DAY`] are a day; a series of other steps is brought to it, and its forecast back
//! ([`super::rate`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameters::{InitialValues, Parameter, ParameterReader, affine, relu};
use super::spec::{Layers, NetShape, within};

/// Settings of a global net.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Global {
    /// Numbers in each hidden layer.
    pub width: usize,
    /// Layers between the inputs and the quantiles.
    pub layers: usize,
}

impl Default for Global {
    fn default() -> Self {
        Self { width: 96, layers: 2 }
    }
}

/// Days that the net looks back.
pub(super) const DAYS: usize = 7;
/// Distances of the recent values from the last one, steps of a tenth of an hour where a day has 144 or 240 steps.
const LAGS: [usize; 13] = [1, 2, 3, 4, 5, 6, 8, 11, 14, 18, 24, 36, 72];
/// Values before and after this time of a past day.
const AROUND: isize = 3;
/// Recent steps of which the mean is the level.
const LEVEL: usize = 6;

/// Numbers that depend on the window and not on the distance: the recent values, the means of days, and the level now.
const SHARED: usize = LAGS.len() + DAYS + 1;
/// Numbers of one step ahead: the values around this time of past days, and four of the distance.
const STEP: usize = DAYS * (2 * AROUND as usize + 1) + 4;
/// Copies: this time of past days, with and without the level of now, and the last value.
const COPIES: usize = 2 * DAYS + 1;
/// Inputs of the perceptron: everything, the copies included.
const INPUTS: usize = SHARED + STEP + COPIES;
/// Numbers that the features of one step have: the inputs, made small where they are large, and the copies as they are.
const ROW: usize = INPUTS + COPIES;
/// Taken off what widens the quantiles, so that a net that has learned nothing begins about as wide as loads are.
const NARROW: f32 = 2.5;

impl Layers for Global {
    fn check(&self, shape: &NetShape) -> Result<(), (&'static str, String)> {
        within("width", self.width, 1, 4096)?;
        within("layers", self.layers, 1, 16)?;
        if shape.lookback != DAYS * shape.day {
            return Err(("lookback", format!("{DAYS} days of {} steps", shape.day)));
        }
        // A distance beyond a day would look at a day that is not over.
        within("horizon", shape.horizon, 1, shape.day)
    }

    fn parameters(&self, shape: &NetShape) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        let mut inputs = INPUTS;
        for layer in 0..self.layers {
            parameters.extend(affine(&format!("layers.{layer}"), inputs, self.width));
            inputs = self.width;
        }
        // The answers begin at nothing: equal shares of all copies, and no correction.
        let nothing = InitialValues::Constant(0.0);
        parameters.push(Parameter::new("answer.weight", inputs, COPIES + shape.levels, nothing));
        parameters.push(Parameter::new("answer.bias", 1, COPIES + shape.levels, nothing));
        parameters
    }

    fn features(&self, shape: &NetShape, window: &[f32]) -> Vec<f32> {
        let (day, known) = (shape.day, window.len());
        let at = |index: isize| window[index.clamp(0, known as isize - 1) as usize];
        let mean = |end: usize, steps: usize| {
            // Before the window nothing is known: its first steps stand for those before it.
            let end = end.max(steps);
            window[end - steps..end].iter().sum::<f32>() / steps as f32
        };
        let level = |end: usize| mean(end, LEVEL.min(day));
        let mut shared: Vec<f32> = LAGS.iter().map(|&lag| at(known as isize - 1 - lag as isize)).collect();
        shared.extend((0..DAYS).map(|back| mean(known - back * day, day)));
        shared.push(level(known));
        let mut features = Vec::with_capacity(shape.horizon * ROW);
        for step in 0..shape.horizon {
            let begin = features.len();
            features.extend_from_slice(&shared);
            let of_day = |back: usize| (known + step) as isize - (back * day) as isize;
            for back in 1..=DAYS {
                features.extend((-AROUND..=AROUND).map(|offset| at(of_day(back) + offset)));
            }
            let ahead = (step + 1) as f32 / day as f32;
            features.extend([ahead, ahead.sqrt(), (-24.0 * ahead).exp(), (-6.0 * ahead).exp()]);
            let copies = features.len();
            features.extend((1..=DAYS).map(|back| at(of_day(back))));
            features.extend((1..=DAYS).map(|back| at(of_day(back)) + level(known) - level(known - back * day)));
            features.push(at(known as isize - 1));
            features.extend_from_within(copies..);
            features[begin..begin + INPUTS].iter_mut().for_each(|value| *value = value.asinh());
        }
        features
    }

    fn forward(&self, shape: &NetShape, weights: &mut ParameterReader<'_>, features: &[f32]) -> Vec<f32> {
        let mut inputs: Vec<f32> = features.chunks_exact(ROW).flat_map(|row| row[..INPUTS].to_vec()).collect();
        for _ in 0..self.layers {
            inputs = weights.affine(&inputs);
            relu(&mut inputs);
        }
        let answers = weights.affine(&inputs);
        let mut out = vec![0.0; shape.outputs()];
        let rows = features.chunks_exact(ROW).zip(answers.chunks_exact(COPIES + shape.levels));
        for (step, (row, answer)) in rows.enumerate() {
            let (scores, answer) = answer.split_at(COPIES);
            let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let shares: Vec<f32> = scores.iter().map(|score| (score - highest).exp()).collect();
            let copied: f32 = shares.iter().zip(&row[INPUTS..]).map(|(share, copy)| share * copy).sum();
            for (level, value) in answer.iter().enumerate() {
                let begin = if level == shape.median { copied / shares.iter().sum::<f32>() } else { -NARROW };
                out[level * shape.horizon + step] = value + begin;
            }
        }
        out
    }

    #[cfg(feature = "train")]
    fn graph(&self, shape: &NetShape, graph: &mut super::graph::Graph<'_>) -> burn::tensor::Tensor<2> {
        use burn::tensor::Tensor;
        use burn::tensor::activation::{relu, softmax};
        let rows = graph.rows();
        let features = graph.features.clone().reshape([rows * shape.horizon, ROW]);
        let mut inputs = features.clone().slice_dim(1, 0..INPUTS);
        for _ in 0..self.layers {
            inputs = relu(graph.affine(inputs));
        }
        let answers = graph.affine(inputs);
        let shares = softmax(answers.clone().slice_dim(1, 0..COPIES), 1);
        let copied = (shares * features.slice_dim(1, INPUTS..ROW)).sum_dim(1);
        let median = COPIES + shape.median;
        let mut levels = Vec::new();
        if shape.median > 0 {
            levels.push(answers.clone().slice_dim(1, COPIES..median) - NARROW);
        }
        levels.push(answers.clone().slice_dim(1, median..median + 1) + copied);
        if median + 1 < COPIES + shape.levels {
            levels.push(answers.slice_dim(1, median + 1..COPIES + shape.levels) - NARROW);
        }
        // From a row a step with its levels, to a row a window with all steps of the first level, then of the next.
        let by_step: Tensor<3> = Tensor::cat(levels, 1).reshape([rows, shape.horizon, shape.levels]);
        by_step.swap_dims(1, 2).reshape([rows, shape.outputs()])
    }
}
