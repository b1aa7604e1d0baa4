//! Places where a drill lets the daemon die.
//!
//! `GOODPUT_FAILPOINT=NAME:COUNT` ends the process by SIGKILL the COUNT-th time it comes past NAME:
//! nothing is flushed, no destructor runs. Without the variable a place costs one comparison.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Places at which a daemon can be made to die, in the order of a cycle.
pub const PLACES: [&str; 5] = ["before-intent", "after-intent", "before-act", "after-act", "before-done"];

/// Dies here, if a drill says so.
pub fn pass(place: &'static str) {
    static ARMED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let armed = ARMED.get_or_init(|| {
        let text = std::env::var("GOODPUT_FAILPOINT").ok()?;
        let (name, count) = text.split_once(':')?;
        Some((name.to_string(), count.parse().ok()?))
    });
    let Some((name, count)) = armed else { return };
    if name == place && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *count {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
