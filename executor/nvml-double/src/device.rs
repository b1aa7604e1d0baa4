//! `nvmlDeviceGet*`: readings of one device.

use std::ffi::{c_char, c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings as sys;

use crate::script::{Device, ScriptedFault};
use crate::system::{NOT_FOUND, OK, Return, TOO_SMALL, device, instance_handle, part, put};
use crate::witness::processes;

/// A function that writes one reading of a device.
macro_rules! reading {
    ($name:ident, $kind:ty, |$index:pat_param, $device:pat_param| $value:expr) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(of: sys::nvmlDevice_t, to: *mut $kind) -> Return {
            match device(of) {
                Ok(($index, $device)) => {
                    unsafe { *to = $value };
                    OK
                }
                Err(error) => error,
            }
        }
    };
}

reading!(nvmlDeviceGetIndex, c_uint, |index, _| index as c_uint);
reading!(nvmlDeviceGetMinorNumber, c_uint, |index, _| index as c_uint);
// What A100 and later can be split into.
reading!(nvmlDeviceGetMaxMigDeviceCount, c_uint, |_, _| 7);
reading!(nvmlDeviceGetPowerUsage, c_uint, |_, device| device.power_mw);
reading!(nvmlDeviceGetTotalEnergyConsumption, c_ulonglong, |_, device| device.energy_mj);
reading!(nvmlDeviceGetCurrentClocksThrottleReasons, c_ulonglong, |_, device| device.throttle);
reading!(nvmlDeviceGetUtilizationRates, sys::nvmlUtilization_t, |_, device| sys::nvmlUtilization_t {
    gpu: device.util,
    memory: device.mem_util,
});
// XID errors and ECC errors of one and of two bits.
reading!(nvmlDeviceGetSupportedEventTypes, c_ulonglong, |_, _| 8 | 2 | 1);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(of: sys::nvmlDevice_t, to: *mut sys::nvmlMemory_v2_t) -> Return {
    match part(of) {
        Ok(Device { mem_total, mem_used, .. }) => {
            let info = unsafe { &mut *to };
            (info.total, info.used, info.reserved) = (mem_total, mem_used, 0);
            info.free = mem_total.saturating_sub(mem_used);
            OK
        }
        Err(error) => error,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(of: sys::nvmlDevice_t, to: *mut c_char, room: c_uint) -> Return {
    match part(of) {
        Ok(device) => unsafe { put(&device.uuid, to, room) },
        Err(error) => error,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(of: sys::nvmlDevice_t, to: *mut c_char, room: c_uint) -> Return {
    match part(of) {
        Ok(device) => unsafe { put(&device.name, to, room) },
        Err(error) => error,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(
    of: sys::nvmlDevice_t,
    _sensor: sys::nvmlTemperatureSensors_t,
    to: *mut c_uint,
) -> Return {
    match device(of) {
        Ok((_, device)) => {
            unsafe { *to = device.temp };
            OK
        }
        Err(error) => error,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEccErrors(
    of: sys::nvmlDevice_t,
    kind: sys::nvmlMemoryErrorType_t,
    _counter: sys::nvmlEccCounterType_t,
    to: *mut c_ulonglong,
) -> Return {
    match device(of) {
        Ok((_, device)) => {
            let uncorrected = kind == sys::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED;
            let more = u64::from(device.fault == Some(ScriptedFault::EccUncorrectable));
            unsafe { *to = if uncorrected { device.ecc_uncorrected + more } else { 0 } };
            OK
        }
        Err(error) => error,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigMode(
    of: sys::nvmlDevice_t,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> Return {
    match device(of) {
        Ok((_, device)) => {
            unsafe { (*current, *pending) = (device.mig, device.mig) };
            OK
        }
        Err(error) => error,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    of: sys::nvmlDevice_t,
    place: c_uint,
    to: *mut sys::nvmlDevice_t,
) -> Return {
    match device(of) {
        Ok((index, device)) if (place as usize) < device.instances.len() => {
            unsafe { *to = instance_handle(index, place as usize) };
            OK
        }
        Ok(_) => NOT_FOUND,
        Err(error) => error,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTopologyCommonAncestor(
    one: sys::nvmlDevice_t,
    other: sys::nvmlDevice_t,
    to: *mut sys::nvmlGpuTopologyLevel_t,
) -> Return {
    let (near, far) = (sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE, sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM);
    match (device(one), device(other)) {
        (Ok((_, one)), Ok((_, other))) => {
            unsafe { *to = if one.numa == other.numa { near } else { far } };
            OK
        }
        (Err(error), _) | (_, Err(error)) => error,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    of: sys::nvmlDevice_t,
    count: *mut c_uint,
    to: *mut sys::nvmlProcessInfo_t,
) -> Return {
    let device = match part(of) {
        Ok(device) => device,
        Err(error) => return error,
    };
    let using = processes(&device.uuid);
    let room = unsafe { std::mem::replace(&mut *count, using.len() as c_uint) } as usize;
    if using.len() > room || (to.is_null() && !using.is_empty()) {
        return TOO_SMALL;
    }
    for (at, pid) in using.into_iter().enumerate() {
        let info = sys::nvmlProcessInfo_t {
            pid,
            usedGpuMemory: 1 << 30,
            gpuInstanceId: c_uint::MAX,
            computeInstanceId: c_uint::MAX,
        };
        unsafe { *to.add(at) = info };
    }
    OK
}
