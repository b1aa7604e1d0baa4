//! Accelerators that do not exist: a folder with a copy of the stand-in for NVML and the script it
//! plays.
//!
//! The stand-in is loaded as the real library is, so everything above it is what runs on real
//! machines. The program carries the stand-in in itself: a program that was copied elsewhere needs no
//! other file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use goodput_configs::live::devices::FakeAccelerator;
use goodput_nvml_double::{Device, MachineScript};
use sha2::{Digest, Sha256};

use super::DeviceError;

/// The stand-in for NVML, a shared object that the build script made.
const DOUBLE: &[u8] = include_bytes!(env!("NVML_DOUBLE"));

/// Makes the folder, keeping a script that is there, and returns the library to load.
pub(super) fn prepare(folder: &Path, node: &str, count: u32, kind: &str) -> Result<PathBuf, DeviceError> {
    let failed = |error: io::Error| DeviceError::Fake { folder: folder.to_owned(), problem: error.to_string() };
    fs::create_dir_all(folder).map_err(failed)?;
    let script = folder.join("state.json");
    let wanted = state(folder, node, count, kind);
    let uuids = |state: &MachineScript| state.devices.iter().map(|device| device.uuid.clone()).collect::<Vec<_>>();
    let found: Option<MachineScript> = fs::read(&script).ok().and_then(|text| serde_json::from_slice(&text).ok());
    if found.is_none_or(|found| uuids(&found) != uuids(&wanted)) {
        let text = serde_json::to_vec_pretty(&wanted).map_err(io::Error::from);
        fs::write(&script, text.map_err(failed)?).map_err(failed)?;
    }
    // A copy, because the loader takes two names of one file for one library; renamed into place,
    // because the old one may be in use.
    let library = folder.join("libnvidia-ml.so.1");
    // A name of its own for each call: an agent that is just ending may still be here.
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let copy = folder.join(format!("copy-{}-{call}", std::process::id()));
    fs::write(&copy, DOUBLE).and_then(|()| fs::rename(&copy, &library)).map_err(failed)?;
    Ok(library)
}

fn state(folder: &Path, node: &str, count: u32, kind: &str) -> MachineScript {
    let FakeAccelerator { product, memory_mib, .. } = FakeAccelerator::by_name(kind).unwrap_or(FakeAccelerator::ALL[0]);
    let device = |index: u32| Device {
        uuid: uuid(&format!("{kind} {node} {index} {}", folder.display())),
        name: product.to_owned(),
        mem_total: memory_mib << 20,
        temp: 40,
        power_mw: 60_000,
        numa: index * 2 / count.max(1),
        ..Device::default()
    };
    MachineScript {
        driver: "550.54.15".to_owned(),
        cuda: 12_040,
        devices: (0..count).map(device).collect(),
        ..MachineScript::default()
    }
}

/// A name as devices have, the same whenever the same node is faked in the same folder.
fn uuid(of: &str) -> String {
    let digits: String = Sha256::digest(of.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let part = |range: std::ops::Range<usize>| &digits[range];
    format!("GPU-{}-{}-{}-{}-{}", part(0..8), part(8..12), part(12..16), part(16..20), part(20..32))
}
