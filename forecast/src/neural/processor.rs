//! Devices on which gradients are computed.

use burn::tensor::Device;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::trainer::NetTrainError;

/// Device on which gradients are computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Processor {
    /// Central processor, with equal bits in every run.
    #[default]
    Cpu,
    /// A graphics processor by WebGPU, only in builds with the feature `wgpu`: the one of most
    /// power, or that of the environment variable `CUBECL_WGPU_DEFAULT_DEVICE`, as in
    /// `DiscreteGpu(1)`.
    Gpu,
}

impl Processor {
    /// Name of the device in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        }
    }

    /// Device of burn.
    pub(super) fn device(self) -> Result<Device, NetTrainError> {
        match self {
            Self::Cpu => Ok(Device::flex()),
            #[cfg(feature = "wgpu")]
            Self::Gpu => {
                use burn::tensor::{DeviceKind, DeviceType};
                // Asked first: burn itself panics where there is none.
                match Device::enumerate(DeviceType::Wgpu).is_empty() {
                    true => Err(NetTrainError::NoAdapter),
                    false => Ok(Device::wgpu(DeviceKind::DefaultDevice)),
                }
            }
            #[cfg(not(feature = "wgpu"))]
            Self::Gpu => Err(NetTrainError::NoGpu),
        }
    }
}
