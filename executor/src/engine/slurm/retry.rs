//! Whether a job that failed is tried again. Slurm does not: a job that exits other than well is over.
//!
//! A job that was handed in with a budget is put back into the queue, held, by `requeuehold`, and its failures are written into its comment; a daemon that is
//! started anew finds them there. It waits as under agents: ten seconds, doubling.

use super::read::{RawJob, RawState};
use super::stated::Stated;
use crate::job::{Cause, Exit, Meaning, RetryBudget, RetryHistory, Verdict};

/// What becomes of a job that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Retry {
    /// It does not start before, milliseconds of the Unix epoch.
    pub not_before_ms: i64,
    /// When it failed, this time included, seconds of the Unix epoch.
    pub failed: Vec<i64>,
    /// In words, for `explain`.
    pub note: String,
}

impl RawJob {
    /// What the end of its last attempt means.
    pub(super) fn meaning(&self) -> Meaning {
        let fault = matches!(self.reason.as_str(), "NodeDown" | "NodeFail" | "NODE_FAIL" | "BootFail");
        Meaning::of(self.exit.unwrap_or(Exit::Unseen), Cause { stopping: false, fault })
    }

    /// What becomes of it where it has failed, or was put back and waits; `None` where it has not, or is not tried again.
    pub(super) fn retry(&self) -> Option<Retry> {
        let budget = RetryBudget { failures: self.stated.retries?, ..RetryBudget::default() };
        let mut failed = self.stated.failed.clone();
        let (mut history, mut verdict) = (RetryHistory::default(), Verdict::GiveUp);
        for at in &failed {
            verdict = history.judge(Meaning::Failed, &budget, at.saturating_mul(1000));
        }
        match self.state {
            RawState::Failed => {
                let meaning = self.meaning();
                verdict = history.judge(meaning, &budget, self.end_ms);
                failed.extend(meaning.uses_budget().then_some(self.end_ms / 1000));
            }
            RawState::Pending { .. } if !failed.is_empty() => {}
            _ => return None,
        }
        let Verdict::Requeue { not_before_ms } = verdict else { return None };
        let note =
            format!("it failed {} times ({} forgiven in an hour), and is tried again", failed.len(), budget.failures);
        Some(Retry { not_before_ms, failed, note })
    }
}

impl RawJob {
    /// Lines for `scontrol` that put it back and write down when it failed.
    pub(super) fn put_back(&self) -> Vec<String> {
        let Some(retry) = self.retry().filter(|_| self.state == RawState::Failed) else { return Vec::new() };
        let comment = Stated { failed: retry.failed, ..self.stated.clone() }.text();
        // Slurm changes no job that is over.
        vec![format!("requeuehold {}", self.id), format!("update JobId={} Comment={comment}", self.id)]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::engine::JobPhase;

    fn failed(retries: Option<u32>, before: &[i64], exit: Exit) -> RawJob {
        let stated = Stated { retries, failed: before.to_vec(), ..Stated::default() };
        let (state, exit) = (RawState::Failed, Some(exit));
        RawJob { id: 7, state, start_ms: 1, end_ms: 1_000_000, exit, stated, ..RawJob::default() }
    }

    #[test]
    fn a_job_is_put_back_as_often_as_it_may_fail() {
        let once = failed(Some(2), &[], Exit::Code(1));
        let retry = once.retry().unwrap();
        assert_eq!((retry.not_before_ms, retry.failed.as_slice()), (1_010_000, &[1000][..]));
        assert_eq!((once.seen().phase, once.seen().failures, once.seen().starts), (JobPhase::Held, 1, 1));
        let waits = RawJob { state: RawState::Pending { held: true }, ..failed(Some(2), &[1000], Exit::Code(1)) };
        assert_eq!(waits.retry().unwrap().not_before_ms, 1_010_000, "also once it is back in the queue");
        assert_eq!(failed(Some(2), &[900, 950], Exit::Code(1)).seen().phase, JobPhase::Failed);
        assert_eq!(failed(Some(0), &[], Exit::Code(1)).seen().phase, JobPhase::Failed);
        assert_eq!(failed(None, &[], Exit::Code(1)).seen().phase, JobPhase::Failed, "somebody else's job");
        assert!(failed(Some(1), &[-9000], Exit::Signal(9)).retry().is_some(), "long ago is forgotten");
        let preempted = failed(Some(0), &[], Exit::Code(143)).retry().unwrap();
        assert!(preempted.failed.is_empty(), "giving way costs nothing");
    }
}
