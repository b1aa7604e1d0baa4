//! Folder of this copy of the library, with the script beside it.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::script::MachineScript;

const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Folder of this copy of the library, as the loader knows it.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        let found = unsafe { libc::dladdr(folder as *const libc::c_void, &raw mut info) };
        if found == 0 || info.dli_fname.is_null() {
            return PathBuf::from(".");
        }
        let name = unsafe { CStr::from_ptr(info.dli_fname) };
        Path::new(OsStr::from_bytes(name.to_bytes())).parent().unwrap_or(Path::new(".")).to_owned()
    })
}

/// The file of events.
pub fn events_file() -> PathBuf {
    folder().join("events")
}

fn read() -> MachineScript {
    let text = std::fs::read(folder().join("state.json"));
    text.ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// The script as it is now, after the hang it asks for.
pub fn state() -> MachineScript {
    let asked = Instant::now();
    loop {
        let state = read();
        if asked.elapsed() >= Duration::from_millis(state.hang_ms) {
            return state;
        }
        sleep(LOOK_AGAIN);
    }
}
