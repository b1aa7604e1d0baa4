//! NVIDIA devices, through the NVML library that comes with the driver.
//!
//! The library is loaded at run time, so the product builds and runs where there is none, and a
//! test or another vendor's shim can be loaded in its place. Each of its functions is looked up
//! when it is first used: an old driver that lacks one costs that reading, not the whole list.

use std::path::{Path, PathBuf};

use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};

use super::{DeviceError, DeviceFault, DeviceInfo, DeviceSource, FaultKind, Inventory, MigMode};

/// The name under which the system's loader is asked for NVML.
const LIBRARY_NAME: &str = "libnvidia-ml.so.1";

const MIB: u64 = 1 << 20;

/// The NVIDIA devices of this machine.
#[derive(Debug)]
pub struct NvmlSource {
    nvml: Nvml,
    library: PathBuf,
}

impl NvmlSource {
    /// Opens the driver's own library, found as the system finds libraries.
    ///
    /// # Errors
    /// As [`NvmlSource::open_library`].
    pub fn open() -> Result<Self, DeviceError> {
        Self::open_library(Path::new(LIBRARY_NAME))
    }

    /// Opens the library at `library`: a driver in an unusual place, or a test double.
    ///
    /// # Errors
    /// No library there, one that is not NVML, or no driver behind it.
    pub fn open_library(library: &Path) -> Result<Self, DeviceError> {
        let nvml = Nvml::builder().lib_path(library.as_os_str()).init();
        let nvml =
            nvml.map_err(|error| DeviceError::from_nvml(error, "initialise NVML", &library.to_string_lossy()))?;
        Ok(Self { nvml, library: library.to_owned() })
    }

    /// Path from which the library was loaded.
    pub(super) fn library(&self) -> &Path {
        &self.library
    }

    fn error(&self, error: NvmlError, action: &'static str) -> DeviceError {
        DeviceError::from_nvml(error, action, &self.library.to_string_lossy())
    }
}

impl DeviceSource for NvmlSource {
    fn list(&mut self) -> Result<Inventory, DeviceError> {
        let driver_version = supported(self.nvml.sys_driver_version());
        let driver_version = driver_version.map_err(|error| self.error(error, "read the driver version"))?;
        let cuda_version = supported(self.nvml.sys_cuda_driver_version());
        let cuda_version = cuda_version.map_err(|error| self.error(error, "read the CUDA version"))?;
        let count = self.nvml.device_count().map_err(|error| self.error(error, "count devices"))?;

        let mut inventory =
            Inventory { driver_version, cuda_version: cuda_version.map(cuda_text), ..Inventory::default() };
        for index in 0..count {
            match read(&self.nvml, index) {
                Ok(devices) => inventory.devices.extend(devices),
                Err(error) => inventory.faults.push(fault(&self.nvml, index, &error)),
            }
        }
        Ok(inventory)
    }
}

/// The device at `index`, or the instances that it is split into.
fn read(nvml: &Nvml, index: u32) -> Result<Vec<DeviceInfo>, NvmlError> {
    let device = nvml.device_by_index(index)?;
    let whole = whole(&device, index)?;
    if whole.mig_mode != Some(MigMode::Enabled) {
        return Ok(vec![whole]);
    }
    let mut instances = Vec::new();
    for place in 0..device.mig_device_count()? {
        match device.mig_device_by_index(place).and_then(|part| instance(&part, &whole)) {
            Ok(part) => instances.push(part),
            // Not every place is taken, and an instance may go between two questions.
            Err(NvmlError::NotFound | NvmlError::InvalidArg) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(instances)
}

fn instance(part: &Device<'_>, whole: &DeviceInfo) -> Result<DeviceInfo, NvmlError> {
    let memory = supported(part.memory_info())?;
    let processes = supported(part.running_compute_processes())?;
    Ok(DeviceInfo {
        uuid: part.uuid()?,
        part_of: Some(whole.uuid.clone()),
        name: part.name()?,
        memory_total_mib: memory.as_ref().map(|memory| memory.total / MIB),
        memory_used_mib: memory.as_ref().map(|memory| memory.used / MIB),
        compute_percent: None,
        memory_percent: None,
        processes: processes.as_ref().map(|processes| processes.len() as u32),
        process_ids: processes.into_iter().flatten().map(|process| process.pid).collect(),
        ..whole.clone()
    })
}

fn whole(device: &Device<'_>, index: u32) -> Result<DeviceInfo, NvmlError> {
    let memory = supported(device.memory_info())?;
    let utilization = supported(device.utilization_rates())?;
    let processes = supported(device.running_compute_processes())?;
    let ecc = device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile);
    Ok(DeviceInfo {
        index,
        uuid: device.uuid()?,
        part_of: None,
        name: device.name()?,
        memory_total_mib: memory.as_ref().map(|memory| memory.total / MIB),
        memory_used_mib: memory.as_ref().map(|memory| memory.used / MIB),
        compute_percent: utilization.as_ref().map(|utilization| utilization.gpu),
        memory_percent: utilization.as_ref().map(|utilization| utilization.memory),
        temperature_celsius: supported(device.temperature(TemperatureSensor::Gpu))?,
        power_watts: supported(device.power_usage())?.map(|milliwatts| f64::from(milliwatts) / 1000.0),
        energy_joules: supported(device.total_energy_consumption())?.map(|millijoules| millijoules as f64 / 1000.0),
        throttle_bits: supported(device.current_throttle_reasons())?.map(|reasons| reasons.bits()),
        ecc_uncorrected: supported(ecc)?,
        processes: processes.as_ref().map(|processes| processes.len() as u32),
        process_ids: processes.into_iter().flatten().map(|process| process.pid).collect(),
        mig_mode: supported(device.mig_mode())?.map(|mode| match mode.current {
            0 => MigMode::Disabled,
            _ => MigMode::Enabled,
        }),
    })
}

/// A reading that this card, driver or user does not get is no reading; any other error is one.
fn supported<T>(reading: Result<T, NvmlError>) -> Result<Option<T>, NvmlError> {
    match reading {
        Ok(value) => Ok(Some(value)),
        Err(
            NvmlError::NotSupported
            | NvmlError::NoData
            | NvmlError::NoPermission
            | NvmlError::FunctionNotFound
            | NvmlError::FailedToLoadSymbol(_),
        ) => Ok(None),
        Err(error) => Err(error),
    }
}

fn fault(nvml: &Nvml, index: u32, error: &NvmlError) -> DeviceFault {
    let uuid = nvml.device_by_index(index).and_then(|device: Device<'_>| device.uuid());
    DeviceFault { index, uuid: uuid.ok(), kind: fault_kind(error), message: error.to_string() }
}

fn fault_kind(error: &NvmlError) -> FaultKind {
    match error {
        NvmlError::GpuLost => FaultKind::Lost,
        NvmlError::ResetRequired => FaultKind::ResetRequired,
        NvmlError::NoPermission => FaultKind::NoPermission,
        _ => FaultKind::Other,
    }
}

/// NVML counts 12.4 as 12040.
fn cuda_text(version: i32) -> String {
    format!("{}.{}", cuda_driver_version_major(version), cuda_driver_version_minor(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_the_library_is_told_where_it_was_looked_for_and_what_to_do() {
        let error = NvmlSource::open_library(Path::new("/nowhere/libnvidia-ml.so.1")).unwrap_err();
        let DeviceError::LibraryNotFound { looked_for, detail } = &error else { panic!("{error:?}") };
        assert_eq!(looked_for, "/nowhere/libnvidia-ml.so.1");
        assert!(detail.contains("No such file"), "{detail}");
        assert!(error.remedy().unwrap().starts_with("install the NVIDIA driver"));
    }

    #[test]
    fn a_reading_that_is_not_supported_is_none_and_a_lost_device_is_an_error() {
        assert_eq!(supported(Ok(7)).unwrap(), Some(7));
        let unsupported = [
            NvmlError::NotSupported,
            NvmlError::NoPermission,
            NvmlError::FailedToLoadSymbol("nvmlDeviceGetMigMode".to_owned()),
        ];
        for error in unsupported {
            assert_eq!(supported::<u32>(Err(error)).unwrap(), None);
        }
        let error = supported::<u32>(Err(NvmlError::GpuLost)).unwrap_err();
        assert_eq!(fault_kind(&error), FaultKind::Lost);
        assert_eq!(fault_kind(&NvmlError::Unknown), FaultKind::Other);
    }

    #[test]
    fn cuda_versions_read_as_people_write_them() {
        assert_eq!(cuda_text(12_040), "12.4");
        assert_eq!(cuda_text(13_000), "13.0");
        assert_eq!(cuda_text(11_080), "11.8");
    }
}
