//! `nvmlEventSet*`: critical errors, from the lines "index type data" of the file `events`.

use std::collections::BTreeMap;
use std::ffi::{c_uint, c_ulonglong};
use std::fs;
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nvml_wrapper_sys::bindings as sys;

use crate::place::events_file;
use crate::system::{INVALID, OK, Return, TIMEOUT, device, handle};

const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Set of events that a program waits for: types of events of each device, and how far the file has
/// been read.
#[derive(Default)]
struct Set {
    types: BTreeMap<usize, u64>,
    read: usize,
}

static SETS: Mutex<Vec<Option<Set>>> = Mutex::new(Vec::new());

/// Does something with a set.
fn with<T>(set: sys::nvmlEventSet_t, what: impl FnOnce(&mut Option<Set>) -> T) -> Result<T, Return> {
    let mut sets = SETS.lock().map_err(|_| INVALID)?;
    let at = set.addr().checked_sub(1).ok_or(INVALID)?;
    sets.get_mut(at).filter(|set| set.is_some()).map(what).ok_or(INVALID)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetCreate(to: *mut sys::nvmlEventSet_t) -> Return {
    let Ok(mut sets) = SETS.lock() else { return INVALID };
    // Events before the first wait are not reported, as with the real library.
    let read = fs::metadata(events_file()).map_or(0, |file| file.len() as usize);
    sets.push(Some(Set { types: BTreeMap::new(), read }));
    unsafe { *to = std::ptr::without_provenance_mut(sets.len()) };
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceRegisterEvents(
    of: sys::nvmlDevice_t,
    types: c_ulonglong,
    set: sys::nvmlEventSet_t,
) -> Return {
    let index = match device(of) {
        Ok((index, _)) => index,
        Err(error) => return error,
    };
    let registered = with(set, |set| {
        if let Some(set) = set {
            set.types.insert(index, types);
        }
    });
    registered.err().unwrap_or(OK)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetFree(set: sys::nvmlEventSet_t) -> Return {
    with(set, |set| *set = None).err().unwrap_or(OK)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetWait_v2(
    set: sys::nvmlEventSet_t,
    to: *mut sys::nvmlEventData_t,
    wait_ms: c_uint,
) -> Return {
    let end = Instant::now() + Duration::from_millis(u64::from(wait_ms));
    loop {
        let text = fs::read(events_file()).unwrap_or_default();
        match with(set, |set| set.as_mut().and_then(|set| next(set, &text))) {
            Err(error) => return error,
            Ok(Some((index, kind, data))) => {
                let event = sys::nvmlEventData_t {
                    device: handle(index),
                    eventType: kind,
                    eventData: data,
                    gpuInstanceId: c_uint::MAX,
                    computeInstanceId: c_uint::MAX,
                };
                unsafe { *to = event };
                return OK;
            }
            Ok(None) if Instant::now() >= end => return TIMEOUT,
            Ok(None) => sleep(LOOK_AGAIN),
        }
    }
}

/// The next event that the set waits for.
fn next(set: &mut Set, text: &[u8]) -> Option<(usize, u64, u64)> {
    loop {
        let rest = text.get(set.read..)?;
        let length = rest.iter().position(|byte| *byte == b'\n')?;
        let line = String::from_utf8_lossy(&rest[..length]).into_owned();
        set.read += length + 1;
        let fields: Vec<u64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        if let [index, kind, data] = fields[..]
            && set.types.get(&(index as usize)).is_some_and(|types| types & kind != 0)
        {
            return Some((index as usize, kind, data));
        }
    }
}
