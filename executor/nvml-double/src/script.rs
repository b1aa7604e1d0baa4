//! Script of the double: the machine that it shows.

use serde::{Deserialize, Serialize};

/// A machine, as written in `state.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MachineScript {
    /// Version of the driver.
    pub driver: String,
    /// Version of CUDA: 12.4 is 12040.
    pub cuda: i32,
    /// Accelerators of the machine.
    pub devices: Vec<Device>,
    /// Return code of `nvmlInit`, 0: it works.
    pub init_error: u32,
    /// Time for which each call hangs, milliseconds; a hang ends early when this becomes 0.
    pub hang_ms: u64,
}

/// Accelerator of the scripted machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Device {
    /// UUID of the device, as NVML reports it.
    pub uuid: String,
    /// Product name, as NVML reports it.
    pub name: String,
    /// Device memory, bytes.
    pub mem_total: u64,
    /// Memory in use, bytes.
    pub mem_used: u64,
    /// Utilisation of its compute, percent.
    pub util: u32,
    /// Utilisation of its memory, percent.
    pub mem_util: u32,
    /// Temperature, degrees Celsius.
    pub temp: u32,
    /// Power draw, milliwatts.
    pub power_mw: u32,
    /// Energy since the driver was loaded, millijoules.
    pub energy_mj: u64,
    /// Bits of the reasons why clocks are held down (`nvmlClocksThrottleReason*`).
    pub throttle: u64,
    /// Uncorrected memory errors since the driver was loaded.
    pub ecc_uncorrected: u64,
    /// Whether the device is split into instances: 0 or 1.
    pub mig: u32,
    /// MIG instances, where the device is split.
    pub instances: Vec<ScriptedInstance>,
    /// NUMA node of the device.
    pub numa: u32,
    /// Fault that the device shows; `None` where it is well.
    pub fault: Option<ScriptedFault>,
}

/// An isolated part of an accelerator (NVIDIA's Multi-Instance GPU).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedInstance {
    /// UUID of the instance: `MIG-` and a UUID.
    pub uuid: String,
    /// Profile, such as `1g.10gb`.
    pub profile: String,
    /// Memory of the instance, bytes.
    pub mem_total: u64,
    /// Memory in use, bytes.
    pub mem_used: u64,
}

/// Fault of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedFault {
    /// The device can be named, and every question to it fails with "GPU is lost".
    Lost,
    /// The device cannot even be named.
    FallenOffBus,
    /// The device counts one uncorrectable memory error more than `ecc_uncorrected`.
    EccUncorrectable,
}
