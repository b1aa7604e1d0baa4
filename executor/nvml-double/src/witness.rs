//! Processes that use a device, as /proc shows them.

use std::fs;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A process and the devices it may see.
type SeenProcess = Vec<(u32, Vec<String>)>;

/// A scan of /proc takes milliseconds; the devices of one listing share it.
const FRESH: Duration = Duration::from_millis(50);

static LAST: Mutex<Option<(Instant, SeenProcess)>> = Mutex::new(None);

/// Ids of the processes that may use the device, ascending.
pub fn processes(uuid: &str) -> Vec<u32> {
    let Ok(mut last) = LAST.lock() else { return Vec::new() };
    let fresh = last.take().filter(|(at, _)| at.elapsed() < FRESH);
    let (at, seen) = fresh.unwrap_or_else(|| (Instant::now(), scan()));
    let using = seen.iter().filter(|(_, devices)| devices.iter().any(|device| device == uuid)).map(|(pid, _)| *pid);
    let using = using.collect();
    *last = Some((at, seen));
    using
}

fn scan() -> SeenProcess {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()));
    let mut seen: SeenProcess = pids.filter_map(|pid| visible(pid).map(|devices| (pid, devices))).collect();
    seen.sort_unstable();
    seen
}

/// `CUDA_VISIBLE_DEVICES` of a process. A zombie process has no environment any more.
fn visible(pid: u32) -> Option<Vec<String>> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = environment.split(|byte| *byte == 0).find_map(|pair| pair.strip_prefix(b"CUDA_VISIBLE_DEVICES="))?;
    Some(String::from_utf8_lossy(value).split(',').map(str::to_owned).collect())
}
