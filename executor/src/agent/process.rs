//! Processes as /proc shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::job::contract::{FENCE, NODE};

/// A process for good: numbers are used again, but not with the same time of start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessId {
    /// Process id, as the kernel gives it.
    pub pid: u32,
    /// Start of the process, in clock ticks since the machine started.
    pub start: u64,
}

/// Fields of `/proc/PID/stat` that are read.
struct Stat {
    dead: bool,
    parent: u32,
    start: u64,
}

impl ProcessId {
    /// The process that has this number now.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        stat(pid).map(|stat| Self { pid, start: stat.start })
    }

    /// Whether the process lives. A zombie process does not.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.start == self.start && !stat.dead)
    }

    /// Whether the process carries the token of an attempt.
    #[must_use]
    pub fn carries(&self, fence: &str) -> bool {
        self.is_alive() && carries(self.pid, FENCE, fence)
    }

    /// Sends a signal to its process group, which it leads.
    pub fn signal_group(&self, signal: Signal) {
        if let (Some(pid), true) = (number(self.pid), self.is_alive()) {
            // It may end at any time; that is what was wanted.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Sends a signal to the process alone.
    pub fn signal(&self, signal: Signal) {
        if let Some(held) = self.hold() {
            // It may end at any time; that is what was wanted.
            let _ = pidfd_send_signal(held, signal);
        }
    }

    /// Whether the process handles a signal. A signal that it does not handle would end it.
    #[must_use]
    pub fn catches(&self, signal: Signal) -> bool {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        self.is_alive() && mask >> (signal.as_raw() - 1) & 1 == 1
    }

    /// Waits until it is dead.
    pub fn wait(&self) {
        while let Some(held) = self.hold() {
            let mut polled = [PollFd::new(&held, PollFlags::IN)];
            // At most this is interrupted, and then the loop looks again.
            let _ = poll(&mut polled, None);
        }
    }

    /// A handle of this process and no other that has its number: it is looked at after it is held.
    fn hold(&self) -> Option<OwnedFd> {
        let held = pidfd_open(number(self.pid)?, PidfdFlags::empty()).ok()?;
        self.is_alive().then_some(held)
    }
}

fn number(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Kills one process.
pub fn kill(pid: u32) {
    if let Some(process) = ProcessId::of(pid) {
        process.signal(Signal::KILL);
    }
}

/// All that descend from a process and live.
pub fn descendants(ancestor: u32) -> BTreeSet<u32> {
    let parents: BTreeMap<u32, u32> =
        all().filter_map(|pid| stat(pid).filter(|stat| !stat.dead).map(|stat| (pid, stat.parent))).collect();
    let mut found = BTreeSet::new();
    loop {
        let known = found.len();
        let next = parents.iter().filter(|(_, parent)| **parent == ancestor || found.contains(*parent));
        let next: Vec<u32> = next.map(|(pid, _)| *pid).collect();
        found.extend(next);
        if found.len() == known {
            return found;
        }
    }
}

/// Whether a process descends from another.
pub fn descends(pid: u32, ancestor: u32) -> bool {
    let mut at = pid;
    for _ in 0..1000 {
        match stat(at) {
            _ if at == ancestor => return true,
            Some(stat) if stat.parent > 1 => at = stat.parent,
            _ => return false,
        }
    }
    false
}

/// All that carry the token of an attempt on a node, wherever they went.
pub fn processes_with_token(fence: &str, node: &str) -> Vec<u32> {
    all().filter(|pid| carries(*pid, FENCE, fence) && carries(*pid, NODE, node)).collect()
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
}

fn carries(pid: u32, key: &str, value: &str) -> bool {
    let wanted = format!("{key}={value}");
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|pair| pair == wanted.as_bytes())
}

/// Fields 3, 4 and 22 of /proc/PID/stat; the name in field 2 may contain anything, so they are
/// counted from its closing bracket.
fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    let dead = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some(Stat { dead, parent, start })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, id};

    use super::*;

    #[test]
    fn a_child_is_known_by_number_start_descent_and_token() {
        let mut child = Command::new("sleep").arg("60").env(FENCE, "abc").env(NODE, "n-test").spawn().unwrap();
        let known = ProcessId::of(child.id()).unwrap();
        // Between fork and exec the child still shows our environment.
        while !known.carries("abc") {
            std::thread::yield_now();
        }
        assert!(known.is_alive() && !known.carries("abd"));
        assert!(!ProcessId { start: known.start + 1, ..known }.is_alive());
        assert!(descends(child.id(), id()) && !descends(id(), child.id()));
        assert!(descendants(id()).contains(&child.id()));
        assert_eq!(processes_with_token("abc", "n-test"), [child.id()]);
        kill(child.id());
        while known.is_alive() {
            std::thread::yield_now();
        }
        assert!(ProcessId::of(child.id()).is_some(), "dead, not waited for");
        child.wait().unwrap();
    }
}
