//! End of a process, and its meaning for the job.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Exit code of a job that saved its state because it was told to stop: 128 + SIGTERM.
pub const PREEMPTED: i32 = 143;

/// Exit code of a job that wants to be tried again (`EX_TEMPFAIL` of sysexits.h).
pub const TRY_AGAIN: i32 = 75;

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// End of the process of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// The program exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// The program is gone and its end was not seen: its keeper was killed as well.
    Unseen,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => write!(f, "signal {signal}"),
            Exit::Unseen => write!(f, "an end that was not seen"),
        }
    }
}

/// Circumstances of the end, as the agent knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EndCause {
    /// Whether the attempt had been told to stop.
    pub stopping: bool,
    /// An accelerator or the node it ran on had failed.
    pub fault: bool,
}

/// Meaning of an end for the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitMeaning {
    /// The job is done.
    Done,
    /// The job gave way: it waits to be placed again, and no failure is counted.
    Preempted,
    /// The machine failed, not the job: as [`ExitMeaning::Preempted`].
    Infrastructure,
    /// The job asks to be tried again; counts as a failure.
    TryAgain,
    /// The job failed.
    Failed,
}

impl ExitMeaning {
    /// Of an end: 0 is done; 143 (and death by SIGTERM of a program that does not handle it) gives
    /// way; death by SIGKILL after a stop was asked for is a job that did not make it in its grace
    /// period, and it gives way too; whatever else ends on a failed machine is the machine's
    /// failure.
    #[must_use]
    pub fn of(exit: Exit, cause: EndCause) -> Self {
        match exit {
            Exit::Code(0) => ExitMeaning::Done,
            Exit::Code(PREEMPTED) => ExitMeaning::Preempted,
            Exit::Signal(SIGTERM | SIGKILL) if cause.stopping && !cause.fault => ExitMeaning::Preempted,
            Exit::Unseen => ExitMeaning::Infrastructure,
            _ if cause.fault => ExitMeaning::Infrastructure,
            Exit::Code(TRY_AGAIN) => ExitMeaning::TryAgain,
            Exit::Code(_) | Exit::Signal(_) => ExitMeaning::Failed,
        }
    }

    /// Whether the retry budget pays for it.
    #[must_use]
    pub fn uses_budget(self) -> bool {
        matches!(self, ExitMeaning::TryAgain | ExitMeaning::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_contract() {
        let calm = EndCause::default();
        let stopping = EndCause { stopping: true, fault: false };
        let fault = EndCause { stopping: false, fault: true };
        let both = EndCause { stopping: true, fault: true };
        let rows = [
            (Exit::Code(0), calm, ExitMeaning::Done),
            (Exit::Code(0), both, ExitMeaning::Done),
            (Exit::Code(143), calm, ExitMeaning::Preempted),
            (Exit::Code(143), stopping, ExitMeaning::Preempted),
            (Exit::Code(143), fault, ExitMeaning::Preempted),
            (Exit::Code(75), calm, ExitMeaning::TryAgain),
            (Exit::Code(1), calm, ExitMeaning::Failed),
            (Exit::Code(1), stopping, ExitMeaning::Failed),
            (Exit::Code(1), fault, ExitMeaning::Infrastructure),
            (Exit::Signal(15), calm, ExitMeaning::Failed),
            (Exit::Signal(15), stopping, ExitMeaning::Preempted),
            (Exit::Signal(9), calm, ExitMeaning::Failed),
            (Exit::Signal(9), stopping, ExitMeaning::Preempted),
            (Exit::Signal(9), fault, ExitMeaning::Infrastructure),
            (Exit::Signal(9), both, ExitMeaning::Infrastructure),
            (Exit::Signal(11), calm, ExitMeaning::Failed),
            (Exit::Unseen, calm, ExitMeaning::Infrastructure),
        ];
        for (exit, cause, meaning) in rows {
            assert_eq!(ExitMeaning::of(exit, cause), meaning, "{exit:?} {cause:?}");
        }
        let paying = [
            ExitMeaning::Done,
            ExitMeaning::Preempted,
            ExitMeaning::Infrastructure,
            ExitMeaning::TryAgain,
            ExitMeaning::Failed,
        ];
        assert_eq!(paying.map(ExitMeaning::uses_budget), [false, false, false, true, true]);
    }
}
