//! Clock of the computing thread, which stands still while others use the core.

use rustix::time::{ClockId, clock_gettime};

/// Seconds that this thread has computed.
pub fn cpu_secs() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
