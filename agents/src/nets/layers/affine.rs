//! Affine layers in burn, of which all nets are made.

use burn::tensor::{Device, Gradients, Tensor, TensorData};

use crate::nets::weights::Layer;

/// An affine layer; the bias is a row.
pub(crate) struct Affine {
    weight: Tensor<2>,
    bias: Tensor<2>,
}

impl Affine {
    /// The layers of a flat vector; its parameters are tracked when the device has autodiff.
    pub fn all(layers: &[Layer], data: &[f32], device: &Device) -> Vec<Self> {
        let parameter = |values: &[f32], shape: [usize; 2]| {
            let tensor = Tensor::<2>::from_data(TensorData::new(values.to_vec(), shape), device);
            if tensor.is_autodiff() { tensor.require_grad() } else { tensor }
        };
        let of = |layer: &Layer| {
            let (matrix, bias) = layer.split(data);
            Self { weight: parameter(matrix, [layer.inputs, layer.outputs]), bias: parameter(bias, [1, layer.outputs]) }
        };
        layers.iter().map(of).collect()
    }

    /// The gradient of every parameter in the order of the flat vector; 0 where the loss does not
    /// reach.
    pub fn gradient(layers: &[Self], gradients: &mut Gradients) -> Vec<f32> {
        let mut flat = Vec::new();
        for parameter in layers.iter().flat_map(|layer| [&layer.weight, &layer.bias]) {
            match parameter.grad_remove(gradients) {
                Some(gradient) => flat.extend(host(gradient)),
                None => flat.resize(flat.len() + parameter.dims().iter().product::<usize>(), 0.0),
            }
        }
        flat
    }

    /// Values of shape `[rows, inputs] -> [rows, outputs]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x.matmul(self.weight.clone()) + self.bias.clone()
    }
}

/// The numbers of a tensor.
pub(crate) fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("tensors of this crate hold f32")
}
