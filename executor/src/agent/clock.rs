//! Two clocks: one for people, one for deadlines.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since the Unix epoch. An administrator may set it forward or back: for reading,
/// never for deadlines.
pub fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// Milliseconds since the machine started, sleep included. All processes read one clock, and no
/// process can set it, so leases and deadlines are counted on it.
pub fn boot_ms() -> i64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}
