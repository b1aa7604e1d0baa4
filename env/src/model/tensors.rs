//! Sizes of the parameter tensors of a model, by which Tiresias tells whether spreading hurts the model.

use serde::{Deserialize, Serialize};

/// Sizes of the parameter tensors of a model, in 32-bit floats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorSizes {
    /// Largest tensor, MiB.
    pub largest_mib: f64,
    /// Sum over all tensors, MiB.
    pub total_mib: f64,
}

impl TensorSizes {
    /// Skew of the model: the largest tensor over all, in (0, 1] (Tiresias, NSDI'19, section 3.3).
    pub fn skew(&self) -> f64 {
        self.largest_mib / self.total_mib
    }

    /// Whether both sizes are positive and finite, and no tensor is larger than all together.
    pub fn is_sound(&self) -> bool {
        self.largest_mib > 0.0 && self.largest_mib <= self.total_mib && self.total_mib.is_finite()
    }
}
