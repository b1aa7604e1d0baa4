//! Configuration and load of a measurement of a language model.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Numbers in which the weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Weights are 16-bit floats.
    Bf16,
    /// Weights are 8-bit floats.
    Fp8,
    /// Weights are 4-bit floats.
    Fp4,
    /// Weights are 4-bit integers.
    Int4,
}

impl Precision {
    /// Name as in the catalog.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
            Self::Fp4 => "fp4",
            Self::Int4 => "int4",
        }
    }

    /// Bytes of a weight.
    pub fn bytes(self) -> f64 {
        match self {
            Self::Bf16 => 2.0,
            Self::Fp8 => 1.0,
            Self::Fp4 | Self::Int4 => 0.5,
        }
    }
}

/// A configuration: system, backend, model, precision and parallel sizes. The version of the backend is not part of
/// it, so that a split by configuration keeps all versions on one side.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// System, such as `h100_sxm`.
    pub system: String,
    /// Program that serves, such as `vllm`.
    pub backend: String,
    /// Name of the model without its owner.
    pub model: String,
    /// Numbers of the weights.
    pub precision: Precision,
    /// Devices over which a layer is divided.
    pub tensor: u32,
    /// Copies of the attention, each with a batch of its own.
    pub data: u32,
    /// Devices over which experts are divided.
    pub expert: u32,
}

impl Configuration {
    /// Devices of a replica.
    pub fn devices(&self) -> u32 {
        self.tensor.saturating_mul(self.data)
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { system, backend, model, precision, tensor, data, expert } = self;
        write!(f, "{model}-{}/{backend}/{system}/tp{tensor}", precision.name())?;
        if *data > 1 {
            write!(f, "-dp{data}")?;
        }
        if *expert > 1 {
            write!(f, "-ep{expert}")?;
        }
        Ok(())
    }
}

/// Load of a measurement: a constant number of requests at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadShape {
    /// Tokens of a prompt.
    pub input: u32,
    /// Tokens of an answer.
    pub output: u32,
    /// Requests at a time on each copy of the attention.
    pub concurrency: u32,
}
