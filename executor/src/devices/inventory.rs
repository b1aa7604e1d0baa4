//! Inventory of devices, in the units that the rest of the product uses: MiB, percent, watts,
//! degrees Celsius.

use serde::{Deserialize, Serialize};

/// The devices of a machine at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Version of the kernel driver, such as `550.54.15`.
    pub driver_version: Option<String>,
    /// Newest CUDA version that the driver supports, such as `12.4`.
    pub cuda_version: Option<String>,
    /// Devices that answer, by index.
    pub devices: Vec<DeviceInfo>,
    /// Devices that do not, by index.
    pub faults: Vec<DeviceFault>,
}

/// One device and its readings; `None` is a reading that this device or its driver does not give. A
/// device that is split is not listed, and its instances are, each as a device: jobs are given
/// instances. Temperature, power and errors are then those of the whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Position in the driver's list, from 0, of an instance that of the whole. It may change when
    /// the machine restarts: remember the UUID instead.
    pub index: u32,
    /// The device's own name for itself, such as `GPU-2b1c...` or `MIG-07f3...`.
    pub uuid: String,
    /// UUID of the whole, where it is an instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// Product name, as the driver reports it.
    pub name: String,
    /// Memory of the device, MiB.
    pub memory_total_mib: Option<u64>,
    /// Memory in use by processes, MiB, rounded down.
    pub memory_used_mib: Option<u64>,
    /// Share of the last sample period in which a kernel ran, 0 to 100.
    pub compute_percent: Option<u32>,
    /// Share of the last sample period in which memory was read or written, 0 to 100.
    pub memory_percent: Option<u32>,
    /// Temperature of the chip, degrees Celsius.
    pub temperature_celsius: Option<u32>,
    /// Power drawn by the board, watts.
    pub power_watts: Option<f64>,
    /// Energy drawn since the driver was loaded, joules.
    #[serde(default)]
    pub energy_joules: Option<f64>,
    /// Reasons why clocks are held down, as bits of NVML's clocks throttle reasons.
    #[serde(default)]
    pub throttle_bits: Option<u64>,
    /// Memory errors since the driver was loaded that could not be corrected.
    #[serde(default)]
    pub ecc_uncorrected: Option<u64>,
    /// Number of processes with a compute context.
    pub processes: Option<u32>,
    /// Process ids of the users.
    #[serde(default)]
    pub process_ids: Vec<u32>,
    /// Whether the device is split into instances; `None` where it cannot be.
    pub mig_mode: Option<MigMode>,
}

impl DeviceInfo {
    /// Whether this is the device of that UUID, or an instance of that device.
    pub fn is_of(&self, uuid: &str) -> bool {
        self.uuid == uuid || self.part_of.as_deref() == Some(uuid)
    }

    /// Whether both are of one physical device.
    pub fn shares_device_with(&self, other: &Self) -> bool {
        self.is_of(other.part_of.as_ref().unwrap_or(&other.uuid))
    }
}

/// Whether a device is split into isolated instances (NVIDIA's Multi-Instance GPU).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MigMode {
    /// One whole device.
    Disabled,
    /// Split: processes use instances, which report no utilisation.
    Enabled,
}

/// A device that is there but fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFault {
    /// Position in the driver's list, from 0.
    pub index: u32,
    /// The device's UUID, if it could still tell.
    pub uuid: Option<String>,
    /// Kind of fault, for programs.
    pub kind: FaultKind,
    /// Message about the fault, for users.
    pub message: String,
}

/// Kind of fault of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The device fell off the bus: only a restart of the machine brings it back, if at all.
    Lost,
    /// The device works again after a reset.
    ResetRequired,
    /// This user may not see it.
    NoPermission,
    /// Something else; the message says what.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_null_for_what_is_not_reported() {
        let device = DeviceInfo {
            index: 0,
            uuid: "GPU-0".to_owned(),
            part_of: None,
            name: "NVIDIA H200".to_owned(),
            memory_total_mib: Some(143_771),
            memory_used_mib: Some(0),
            compute_percent: None,
            memory_percent: None,
            temperature_celsius: Some(31),
            power_watts: Some(76.5),
            energy_joules: None,
            throttle_bits: Some(0),
            ecc_uncorrected: Some(0),
            processes: Some(0),
            process_ids: Vec::new(),
            mig_mode: Some(MigMode::Enabled),
        };
        let inventory = Inventory { devices: vec![device], ..Inventory::default() };
        let json = serde_json::to_string(&inventory).unwrap();
        assert!(json.contains(r#""compute_percent":null,"memory_percent":null,"temperature_celsius":31"#), "{json}");
        assert!(json.contains(r#""mig_mode":"enabled""#), "{json}");
        assert_eq!(serde_json::from_str::<Inventory>(&json).unwrap(), inventory);
    }
}
