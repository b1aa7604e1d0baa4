//! Failed cycles in the log: an error that goes on is one line now and then, not one line a cycle.

use std::time::{Duration, Instant};

/// Time from the first line about an error to the second one. Later ones take twice as long each.
const FIRST_REMINDER: Duration = Duration::from_secs(60);

/// Longest time between two lines about an error that goes on.
const LONGEST: Duration = Duration::from_secs(3600);

/// Cycles that fail one after the other.
#[derive(Debug, Default)]
pub(in crate::daemon) struct FailedCycles {
    /// Error of the last cycle and what the log knows of the error; `None` after a cycle that went well.
    present: Option<PresentError>,
}

/// Error that goes on.
#[derive(Debug)]
struct PresentError {
    kind: String,
    since: Instant,
    cycles: u64,
    said: Instant,
    /// Time from the last line to the next one.
    pause: Duration,
}

impl FailedCycles {
    /// Notes a failed cycle, and gives the line for the log, if one is due: for each new kind of error,
    /// and for a kind that goes on after a pause. Texts of one kind may differ: an engine that is away
    /// fails by one command or another.
    pub(in crate::daemon) fn failed(&mut self, kind: &str, error: &str, now: Instant) -> Option<String> {
        let line = error.lines().map(str::trim).collect::<Vec<_>>().join("; ");
        match &mut self.present {
            Some(present) if present.kind == kind => {
                present.cycles += 1;
                if now - present.said < present.pause {
                    return None;
                }
                present.said = now;
                present.pause = (present.pause * 2).min(LONGEST);
                let secs = (now - present.since).as_secs();
                Some(format!("{line} (for {secs} s, {} cycles)", present.cycles))
            }
            _ => {
                let kind = kind.to_owned();
                self.present = Some(PresentError { kind, since: now, cycles: 1, said: now, pause: FIRST_REMINDER });
                Some(line)
            }
        }
    }

    /// Notes a cycle that went well, and gives the line for the log where the cycle before failed.
    pub(in crate::daemon) fn succeeded(&mut self, now: Instant) -> Option<String> {
        let ended = self.present.take()?;
        let secs = (now - ended.since).as_secs();
        Some(format!("cycles go well again, after {} that failed within {secs} s", ended.cycles))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_goes_on_is_said_again_after_ever_longer_pauses() {
        let (mut failures, begin) = (FailedCycles::default(), Instant::now());
        let at = |secs| begin + Duration::from_secs(secs);
        let texts = ["squeue: no answer", "sinfo: no answer\n  at all"];
        let mut failed = |secs: u64| failures.failed("slurm", texts[secs as usize % 2], at(secs));
        let said: Vec<u64> = (0..600).filter(|&secs| failed(secs).is_some()).collect();
        assert_eq!(said, [0, 60, 180, 420]);
        assert_eq!(failed(901).as_deref(), Some("sinfo: no answer; at all (for 901 s, 601 cycles)"));
        let other = failures.failed("journal", "disk full", at(901));
        assert_eq!(other.as_deref(), Some("disk full"), "a new error is said at once");
        assert!(failures.succeeded(at(903)).is_some_and(|line| line.contains("after 1 that failed within 2 s")));
        assert_eq!(failures.succeeded(at(904)), None);
    }
}
