//! Critical errors as the driver tells them, on a thread of their own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;

/// Longest round through all devices, milliseconds.
const ROUND_MS: u32 = 200;

/// Calls `tell` with the UUID and code of each critical error, until `stop`. A driver without
/// events ends it: readings tell most of it, only later.
///
/// Each device has an event set of its own, because a device that fell off the bus cannot say which
/// it is.
pub(super) fn listen(library: &Path, stop: Arc<AtomicBool>, tell: impl Fn(&str, u64) + Send + 'static) {
    let library = library.to_owned();
    thread::spawn(move || {
        let Ok(nvml) = Nvml::builder().lib_path(library.as_os_str()).init() else { return };
        // The end is the same whether the agent asked for it or there are no events to be had.
        let _ended = follow(&nvml, &stop, &tell);
    });
}

fn follow(nvml: &Nvml, stop: &AtomicBool, tell: &dyn Fn(&str, u64)) -> Result<(), NvmlError> {
    let mut sets = Vec::new();
    for index in 0..nvml.device_count()? {
        let Ok(device) = nvml.device_by_index(index) else { continue };
        let uuid = device.uuid()?;
        if let Ok(set) = device.register_events(EventTypes::CRITICAL_XID_ERROR, nvml.create_event_set()?) {
            sets.push((uuid, set));
        }
    }
    let wait_ms = ROUND_MS / (sets.len() as u32).max(1);
    while !sets.is_empty() && !stop.load(Ordering::Relaxed) {
        for (uuid, set) in &sets {
            match set.wait(wait_ms) {
                Ok(event) => tell(uuid, code(event.event_data)),
                Err(NvmlError::Timeout | NvmlError::GpuLost) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// 0 where the driver does not say.
fn code(error: Option<XidError>) -> u64 {
    match error {
        Some(XidError::Value(code)) => code,
        Some(XidError::Unknown) | None => 0,
    }
}
