//! Nets in burn: built from the flat vector for one gradient, then dropped.

use burn::tensor::module::layer_norm;
use burn::tensor::{Device, Tensor, TensorData};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::head;
use super::net::NeuralNet;
use super::spec::NetShape;
use super::windows::Batch;

/// One forward pass: it hands out parameters in order, and has the few operations that all
/// architectures are made of.
pub(super) struct Graph<'a> {
    /// Features of the batch, shape `[rows, features]`.
    pub features: Tensor<2>,
    parameters: std::slice::Iter<'a, Tensor<2>>,
    dropout: Option<&'a mut ChaCha8Rng>,
    device: &'a Device,
}

impl Graph<'_> {
    /// Rows of the batch.
    pub fn rows(&self) -> usize {
        self.features.dims()[0]
    }

    /// The next parameter.
    pub fn next(&mut self) -> Tensor<2> {
        self.parameters.next().expect("as many parameters as the architecture lists").clone()
    }

    /// `x W + b` with the next two parameters.
    pub fn affine(&mut self, x: Tensor<2>) -> Tensor<2> {
        let (weight, bias) = (self.next(), self.next());
        x.matmul(weight) + bias
    }

    /// Layer normalisation with the next two parameters.
    pub fn norm(&mut self, x: Tensor<2>, epsilon: f32) -> Tensor<2> {
        let (gain, bias) = (self.next(), self.next());
        let width = gain.dims()[1];
        layer_norm(x, gain.reshape([width]), Some(bias.reshape([width])), f64::from(epsilon))
    }

    /// Leaves out about this share of numbers while training, and enlarges the others.
    pub fn drop(&mut self, x: Tensor<2>, share: f64) -> Tensor<2> {
        let Some(random) = &mut self.dropout else { return x };
        // One random byte a number is enough, because the scale below is that of the rounded share.
        let limit = (share * 256.0).round() as u8;
        if limit == 0 {
            return x;
        }
        let [rows, columns] = x.dims();
        let mut bytes = vec![0; rows * columns];
        random.fill_bytes(&mut bytes);
        let scale = 256.0 / (256.0 - f32::from(limit));
        let kept: Vec<f32> = bytes.into_iter().map(|byte| if byte < limit { 0.0 } else { scale }).collect();
        x * Tensor::from_data(TensorData::new(kept, [rows, columns]), self.device)
    }

    /// `x` times a constant `[columns of x, steps]` matrix; `x` itself where it is as wide already.
    pub fn interpolate(&self, x: Tensor<2>, matrix: &[f32], steps: usize) -> Tensor<2> {
        let knots = x.dims()[1];
        if knots == steps {
            return x;
        }
        x.matmul(constant(matrix.to_vec(), [knots, steps], self.device))
    }
}

fn constant(values: Vec<f32>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("tensors of this crate hold f32")
}

/// The parameters of `net` as tensors, tracked where the device has autodiff.
fn parameters(net: &NeuralNet, device: &Device) -> Vec<Tensor<2>> {
    let tensor = |(_, shape, values): (&str, [usize; 2], &[f32])| {
        let tensor = constant(values.to_vec(), shape, device);
        if tensor.is_autodiff() { tensor.require_grad() } else { tensor }
    };
    net.tensors().map(tensor).collect()
}

fn quantiles(
    net: &NeuralNet,
    parameters: &[Tensor<2>],
    batch: &Batch,
    dropout: Option<&mut ChaCha8Rng>,
    device: &Device,
) -> Vec<Tensor<2>> {
    let shape = NetShape { horizon: batch.horizon, ..net.spec().shape() };
    let width = batch.features.len() / batch.rows.max(1);
    let features = constant(batch.features.clone(), [batch.rows, width], device);
    let mut graph = Graph { features, parameters: parameters.iter(), dropout, device };
    let raw = net.spec().architecture.layers().graph(&shape, &mut graph);
    head::graph::quantiles(&shape, &raw)
}

fn loss_of(net: &NeuralNet, batch: &Batch, quantiles: &[Tensor<2>], device: &Device) -> Tensor<1> {
    let shape = [batch.rows, batch.horizon];
    let target = constant(batch.targets.clone(), shape, device);
    let weight = constant(batch.weights.clone(), shape, device);
    head::graph::loss(net.spec().loss, &net.spec().levels, quantiles, &target, &weight)
}

/// The loss of a batch and its gradient, in the order of the flat vector. `device` has autodiff.
pub(super) fn gradient(
    net: &NeuralNet,
    batch: &Batch,
    dropout: Option<&mut ChaCha8Rng>,
    device: &Device,
) -> (f64, Vec<f32>) {
    let parameters = parameters(net, device);
    let quantiles = quantiles(net, &parameters, batch, dropout, device);
    let loss = loss_of(net, batch, &quantiles, device);
    let value = host(loss.clone().inner()).first().copied().map_or(f64::NAN, f64::from);
    let mut gradients = loss.backward();
    let mut flat = Vec::with_capacity(net.weights().len());
    for parameter in &parameters {
        match parameter.grad_remove(&mut gradients) {
            Some(gradient) => flat.extend(host(gradient)),
            // A parameter without influence on the loss has no gradient; zeros keep the flat order.
            None => flat.resize(flat.len() + parameter.dims().iter().product::<usize>(), 0.0),
        }
    }
    (value, flat)
}

/// The loss of a batch. `device` has no autodiff.
pub(super) fn loss(net: &NeuralNet, batch: &Batch, device: &Device) -> f64 {
    let quantiles = quantiles(net, &parameters(net, device), batch, None, device);
    host(loss_of(net, batch, &quantiles, device)).first().copied().map_or(f64::NAN, f64::from)
}

/// Quantiles of a batch by burn, row after row, level after level. The plain forward must equal
/// them.
pub(super) fn forward(net: &NeuralNet, batch: &Batch, device: &Device) -> Vec<f32> {
    let levels = quantiles(net, &parameters(net, device), batch, None, device);
    host(Tensor::cat(levels, 1))
}
