//! Probe of a net on one batch: losses, gradients and both forward passes, for tests and
//! diagnostics.

use burn::tensor::Device;

use super::adam::AdamW;
use super::graph;
use super::net::NeuralNet;
use super::trainer::{NetTrainError, Trainer};
use super::windows::Batch;

/// Net with one batch of windows.
#[derive(Debug, Clone)]
pub struct Probe {
    net: NeuralNet,
    batch: Batch,
    adam: AdamW,
}

impl Probe {
    /// The net of a trainer, with `rows` of its training windows.
    pub fn new(trainer: &Trainer, rows: usize) -> Self {
        let net = trainer.net().clone();
        Self { adam: AdamW::new(net.weights().len()), batch: trainer.draw(rows), net }
    }

    /// All weights, to be changed in place.
    pub fn weights_mut(&mut self) -> &mut [f32] {
        self.net.weights_mut()
    }

    /// The loss by burn.
    pub fn loss(&self) -> f64 {
        graph::loss(&self.net, &self.batch, &Device::flex())
    }

    /// The loss and its gradient by burn, without dropout.
    pub fn gradient(&self) -> (f64, Vec<f32>) {
        graph::gradient(&self.net, &self.batch, None, &Device::flex().autodiff())
    }

    /// One step of Adam on the batch; the loss before it.
    ///
    /// # Errors
    /// A gradient that is not finite.
    pub fn step(&mut self, learning_rate: f64) -> Result<f64, NetTrainError> {
        let (loss, gradient) = self.gradient();
        if !loss.is_finite() {
            return Err(NetTrainError::Diverged { step: self.adam.step });
        }
        self.adam.step(self.net.weights_mut(), &gradient, learning_rate, 0.0);
        Ok(loss)
    }

    /// Quantiles of all rows by burn, in the units of the windows.
    pub fn by_burn(&self) -> Vec<f32> {
        graph::forward(&self.net, &self.batch, &Device::flex())
    }

    /// Quantiles of all rows by the plain forward pass, in the units of the windows.
    pub fn plain(&self) -> Vec<f32> {
        let width = self.batch.features.len() / self.batch.rows.max(1);
        self.batch.features.chunks_exact(width.max(1)).flat_map(|features| self.net.of_features(features)).collect()
    }
}
