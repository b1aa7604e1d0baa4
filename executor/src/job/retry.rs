//! Whether and when a job that ended is started again.
//!
//! A job that crashes at once would otherwise be restarted for ever; a job that loses its machine
//! would be punished for it. So failures are counted over a window and delayed ever longer, and
//! only failures of the job itself count.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::exit::ExitMeaning;

/// Number of failures that a job may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryBudget {
    /// Failures within `window_s` that are still forgiven.
    pub failures: u32,
    /// Seconds after which a failure is forgotten.
    pub window_s: u32,
    /// Wait before the first retry, seconds; doubles with each failure in the window.
    pub first_wait_s: u32,
    /// Longest wait, seconds.
    pub longest_wait_s: u32,
}

impl Default for RetryBudget {
    /// Three failures an hour; 10 s, doubling to 10 min.
    fn default() -> Self {
        Self { failures: 3, window_s: 3600, first_wait_s: 10, longest_wait_s: 600 }
    }
}

/// Times at which a job failed, oldest first, in milliseconds of the caller's clock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RetryHistory {
    failed_at: VecDeque<i64>,
}

/// Fate of a job after an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryDecision {
    /// The job is done.
    Done,
    /// The job is pending again, and may start from this moment on (milliseconds of the caller's
    /// clock).
    Requeue {
        /// Earliest time of the next start.
        not_before_ms: i64,
    },
    /// The job failed too often.
    GiveUp,
}

impl RetryHistory {
    /// Judges an end at `now_ms` and remembers it.
    pub fn judge(&mut self, meaning: ExitMeaning, budget: &RetryBudget, now_ms: i64) -> RetryDecision {
        if meaning == ExitMeaning::Done {
            return RetryDecision::Done;
        }
        if !meaning.uses_budget() {
            return RetryDecision::Requeue { not_before_ms: now_ms };
        }
        let forgotten = now_ms.saturating_sub(i64::from(budget.window_s) * 1000);
        self.failed_at.retain(|at| *at > forgotten);
        self.failed_at.push_back(now_ms);
        let failures = self.failed_at.len() as u32;
        if failures > budget.failures {
            return RetryDecision::GiveUp;
        }
        let doubled = 2_i64.checked_pow(failures - 1).unwrap_or(i64::MAX);
        let wait_s = i64::from(budget.first_wait_s).saturating_mul(doubled).min(i64::from(budget.longest_wait_s));
        RetryDecision::Requeue { not_before_ms: now_ms.saturating_add(wait_s * 1000) }
    }

    /// Number of failures that are remembered.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.failed_at.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn three_failures_an_hour_and_waits_that_double() {
        let budget = RetryBudget::default();
        let mut history = RetryHistory::default();
        let mut judge = |now| history.judge(ExitMeaning::Failed, &budget, now);
        assert_eq!(judge(0), RetryDecision::Requeue { not_before_ms: 10_000 });
        assert_eq!(judge(60_000), RetryDecision::Requeue { not_before_ms: 80_000 });
        assert_eq!(judge(120_000), RetryDecision::Requeue { not_before_ms: 160_000 });
        assert_eq!(judge(180_000), RetryDecision::GiveUp);
        assert_eq!(
            judge(180_000 + HOUR),
            RetryDecision::Requeue { not_before_ms: 190_000 + HOUR },
            "an hour later all is forgotten"
        );
    }

    #[test]
    fn waits_end_at_ten_minutes() {
        let budget = RetryBudget { failures: 100, ..RetryBudget::default() };
        let mut history = RetryHistory::default();
        let waits: Vec<i64> = (0..70)
            .map(|now| match history.judge(ExitMeaning::TryAgain, &budget, now) {
                RetryDecision::Requeue { not_before_ms } => (not_before_ms - now) / 1000,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(waits[..8], [10, 20, 40, 80, 160, 320, 600, 600]);
        assert!(waits[6..].iter().all(|wait| *wait == 600), "{waits:?}");
    }

    proptest! {
        #[test]
        fn what_is_not_the_jobs_fault_never_costs_and_a_job_never_fails_more_often_than_allowed(
            ends in prop::collection::vec((0_i64..400_000, 0_usize..4), 1..60),
        ) {
            let budget = RetryBudget::default();
            let kinds = [ExitMeaning::Preempted, ExitMeaning::Infrastructure, ExitMeaning::TryAgain, ExitMeaning::Failed];
            let mut history = RetryHistory::default();
            let mut now = 0;
            for (later, kind) in ends {
                now += later;
                let before = history.failures();
                let verdict = history.judge(kinds[kind], &budget, now);
                if kinds[kind].uses_budget() {
                    prop_assert_eq!(verdict == RetryDecision::GiveUp, history.failures() > 3);
                } else {
                    prop_assert_eq!(verdict, RetryDecision::Requeue { not_before_ms: now });
                    prop_assert_eq!(history.failures(), before);
                }
            }
        }
    }
}
