//! The flat vector of a net's parameters and the matrices that divide it.

use serde::{Deserialize, Serialize};

/// A matrix of parameters, stored row by row; a bias is a matrix of one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Parameter {
    pub name: String,
    pub rows: usize,
    pub columns: usize,
    /// Initial values of the matrix.
    pub start: InitialValues,
}

/// Initial values of a matrix of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) enum InitialValues {
    /// Uniform between minus and plus this bound.
    Uniform(f32),
    /// One constant for all values.
    Constant(f32),
}

impl Parameter {
    pub fn new(name: impl Into<String>, rows: usize, columns: usize, start: InitialValues) -> Self {
        Self { name: name.into(), rows, columns, start }
    }

    pub fn len(&self) -> usize {
        self.rows * self.columns
    }
}

/// The matrix and the bias of an affine layer, both uniform within `1 / sqrt(inputs)` (LeCun et
/// al., "Efficient BackProp", 1998).
pub(super) fn affine(name: &str, inputs: usize, outputs: usize) -> [Parameter; 2] {
    let start = InitialValues::Uniform(1.0 / (inputs.max(1) as f32).sqrt());
    [
        Parameter::new(format!("{name}.weight"), inputs, outputs, start),
        Parameter::new(format!("{name}.bias"), 1, outputs, start),
    ]
}

/// Hands out the matrices of a flat vector in the order of their list.
pub(super) struct ParameterReader<'a> {
    list: std::slice::Iter<'a, Parameter>,
    rest: &'a [f32],
}

/// Numbers of one matrix.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub columns: usize,
    pub data: &'a [f32],
}

impl<'a> ParameterReader<'a> {
    /// `data` is as long as the list says.
    pub fn new(list: &'a [Parameter], data: &'a [f32]) -> Self {
        Self { list: list.iter(), rest: data }
    }

    /// The next matrix; an empty one after the last.
    pub fn next(&mut self) -> Matrix<'a> {
        let Some(parameter) = self.list.next() else { return Matrix { columns: 0, data: &[] } };
        let (data, rest) = self.rest.split_at(parameter.len());
        self.rest = rest;
        Matrix { columns: parameter.columns, data }
    }

    /// `x W + b` of the next two matrices, for rows of `x` as wide as `W` is high.
    pub fn affine(&mut self, x: &[f32]) -> Vec<f32> {
        let (weight, bias) = (self.next(), self.next());
        weight.affine(x, bias.data)
    }
}

impl Matrix<'_> {
    /// `x W + b` for rows of `x`.
    pub fn affine(&self, x: &[f32], bias: &[f32]) -> Vec<f32> {
        let inputs = self.data.len() / self.columns.max(1);
        let mut out = Vec::with_capacity(x.len() / inputs.max(1) * self.columns);
        for x in x.chunks_exact(inputs.max(1)) {
            let start = out.len();
            out.extend_from_slice(bias);
            for (&x, weights) in x.iter().zip(self.data.chunks_exact(self.columns)) {
                for (out, weight) in out[start..].iter_mut().zip(weights) {
                    *out += x * weight;
                }
            }
        }
        out
    }
}

pub(super) fn relu(x: &mut [f32]) {
    x.iter_mut().for_each(|x| *x = x.max(0.0));
}
