//! `nvmlInit`, `nvmlSystem*` and finding devices.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::atomic::{AtomicU32, Ordering};

use nvml_wrapper_sys::bindings as sys;

use crate::place::state;
use crate::script::{Device, ScriptedFault, ScriptedInstance};

pub type Return = sys::nvmlReturn_t;

pub const OK: Return = sys::nvmlReturn_enum_NVML_SUCCESS;
pub const INVALID: Return = sys::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
pub const LOST: Return = sys::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST;
pub const TOO_SMALL: Return = sys::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;
pub const NOT_SUPPORTED: Return = sys::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED;
pub const NOT_FOUND: Return = sys::nvmlReturn_enum_NVML_ERROR_NOT_FOUND;
pub const TIMEOUT: Return = sys::nvmlReturn_enum_NVML_ERROR_TIMEOUT;
pub const UNINITIALIZED: Return = sys::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED;

static USERS: AtomicU32 = AtomicU32::new(0);

/// Handles of the instances of a device are so far apart from its own, by their place counted from
/// 1.
const INSTANCE: usize = 1 << 16;

/// Handle of a device: its index, counted from 1.
pub fn handle(index: usize) -> sys::nvmlDevice_t {
    std::ptr::without_provenance_mut(index + 1)
}

/// Handle of the instance at `place` of a device.
pub fn instance_handle(index: usize, place: usize) -> sys::nvmlDevice_t {
    std::ptr::without_provenance_mut((place + 1) * INSTANCE + index + 1)
}

/// The device behind a handle, or that of which the instance behind it is a part.
pub fn parent(of: sys::nvmlDevice_t) -> Result<(usize, Device), Return> {
    device(std::ptr::without_provenance_mut(of.addr() % INSTANCE))
}

/// Part with a name, memory and processes of its own: a device or an instance.
pub fn part(of: sys::nvmlDevice_t) -> Result<Device, Return> {
    let (_, device) = parent(of)?;
    let Some(place) = (of.addr() / INSTANCE).checked_sub(1) else { return Ok(device) };
    let ScriptedInstance { uuid, profile, mem_total, mem_used } =
        device.instances.get(place).cloned().ok_or(NOT_FOUND)?;
    Ok(Device { uuid, name: format!("{} MIG {profile}", device.name), mem_total, mem_used, ..device })
}

/// The whole device behind a handle. Instances have neither power nor temperature of their own.
pub fn device(handle: sys::nvmlDevice_t) -> Result<(usize, Device), Return> {
    if USERS.load(Ordering::SeqCst) == 0 {
        return Err(UNINITIALIZED);
    }
    if handle.addr() >= INSTANCE {
        return Err(NOT_SUPPORTED);
    }
    let index = handle.addr().checked_sub(1).ok_or(INVALID)?;
    let device = state().devices.get(index).cloned().ok_or(INVALID)?;
    match device.fault {
        Some(ScriptedFault::Lost | ScriptedFault::FallenOffBus) => Err(LOST),
        _ => Ok((index, device)),
    }
}

/// Copies text to where the caller wants it.
pub unsafe fn put(text: &str, to: *mut c_char, room: c_uint) -> Return {
    if to.is_null() || text.len() + 1 > room as usize {
        return TOO_SMALL;
    }
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast::<c_char>(), to, text.len());
        *to.add(text.len()) = 0;
    }
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlInit_v2() -> Return {
    match state().init_error {
        0 => {
            USERS.fetch_add(1, Ordering::SeqCst);
            OK
        }
        error => error,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> Return {
    unsafe { nvmlInit_v2() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlShutdown() -> Return {
    let left = USERS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |users| users.checked_sub(1));
    if left.is_ok() { OK } else { UNINITIALIZED }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlErrorString(_error: Return) -> *const c_char {
    c"an error of the stand-in for NVML".as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, room: c_uint) -> Return {
    unsafe { put(&state().driver, to, room) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetNVMLVersion(to: *mut c_char, room: c_uint) -> Return {
    unsafe { put(&format!("12.{}", state().driver), to, room) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(to: *mut c_int) -> Return {
    unsafe { *to = state().cuda };
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(to: *mut c_uint) -> Return {
    unsafe { *to = state().devices.len() as c_uint };
    OK
}

fn find(found: impl Fn(usize, &Device) -> bool, otherwise: Return, to: *mut sys::nvmlDevice_t) -> Return {
    let state = state();
    let Some(index) = (0..state.devices.len()).find(|index| found(*index, &state.devices[*index])) else {
        return otherwise;
    };
    if state.devices[index].fault == Some(ScriptedFault::FallenOffBus) {
        return LOST;
    }
    unsafe { *to = handle(index) };
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut sys::nvmlDevice_t) -> Return {
    find(|at, _| at == index as usize, INVALID, to)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, to: *mut sys::nvmlDevice_t) -> Return {
    let uuid = unsafe { CStr::from_ptr(uuid) }.to_string_lossy();
    find(|_, device| device.uuid == uuid, NOT_FOUND, to)
}
