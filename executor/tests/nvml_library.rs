//! A real NVML library, or a double of one, where there is one.
//!
//! With the double of `shared/prototypes/nvml-double`, built anywhere:
//! `NVML_MOCK_STATE=.../state.json GOODPUT_NVML_LIBRARY=.../libnvml_mock.so cargo nextest run -p
//! goodput-executor --run-ignored all`; with a driver: `GOODPUT_NVML_LIBRARY=libnvidia-ml.so.1`.

use std::path::Path;

use goodput_executor::devices::{DeviceError, DeviceSource, FaultKind, NvmlSource};

#[test]
fn a_library_that_is_not_nvml_is_refused() {
    let error = NvmlSource::open_library(Path::new("libc.so.6")).expect_err("libc is no driver");
    assert!(matches!(error, DeviceError::Nvml { action: "initialise NVML", .. }), "{error:?}");
}

#[test]
#[ignore = "needs an NVML library, named by GOODPUT_NVML_LIBRARY"]
fn readings_are_within_their_bounds() {
    let library = std::env::var("GOODPUT_NVML_LIBRARY").expect("GOODPUT_NVML_LIBRARY names an NVML library");
    let mut source = NvmlSource::open_library(Path::new(&library)).unwrap();
    let inventory = source.list().unwrap();
    println!("{}", serde_json::to_string_pretty(&inventory).unwrap());

    assert!(inventory.driver_version.is_some());
    assert!(!inventory.devices.is_empty());
    for device in &inventory.devices {
        assert!(device.uuid.starts_with(if device.part_of.is_some() { "MIG-" } else { "GPU-" }), "{device:?}");
        assert!(device.memory_used_mib <= device.memory_total_mib, "{device:?}");
        assert!(device.compute_percent.is_none_or(|percent| percent <= 100), "{device:?}");
        assert!(device.memory_percent.is_none_or(|percent| percent <= 100), "{device:?}");
        assert!(device.power_watts.is_none_or(|watts| (0.0..2_000.0).contains(&watts)), "{device:?}");
    }
    for fault in &inventory.faults {
        assert_ne!(fault.kind, FaultKind::Other, "{fault:?}");
    }
    let names: std::collections::BTreeSet<&str> = inventory.devices.iter().map(|device| device.uuid.as_str()).collect();
    assert_eq!(names.len(), inventory.devices.len(), "each device once");
    let mut indices: Vec<u32> = inventory.devices.iter().map(|device| device.index).collect();
    indices.extend(inventory.faults.iter().map(|fault| fault.index));
    indices.sort_unstable();
    indices.dedup();
    assert!(indices.iter().copied().eq(0..indices.len() as u32), "no device is passed over: {indices:?}");
}
