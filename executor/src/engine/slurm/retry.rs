//! Whether a job that failed is tried again. Slurm does not: a job that exits other than well is
//! over.
//!
//! A job that was handed in with a budget is put back into the queue, held, by `requeuehold`, and
//! its failures are written into its comment; a daemon that is started anew finds them there. It
//! waits as under agents: ten seconds, doubling.

use std::collections::BTreeMap;

use super::facts_key::FactsKey;
use super::id::SlurmJobId;
use super::read::{RawJob, RawState};
use super::stated::CommentFacts;
use crate::job::{EndCause, Exit, ExitMeaning, RetryBudget, RetryDecision, RetryHistory};

/// Retry of a job that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Retry {
    /// Earliest time of the next start, milliseconds of the Unix epoch.
    pub not_before_ms: i64,
    /// Times of its failures, this one included, seconds of the Unix epoch.
    pub failed: Vec<i64>,
    /// In words, for `explain`.
    pub note: String,
}

impl RawJob {
    /// Meaning of the end of the last attempt.
    pub(super) fn meaning(&self) -> ExitMeaning {
        let fault = matches!(self.reason.as_str(), "NodeDown" | "NodeFail" | "NODE_FAIL" | "BootFail");
        ExitMeaning::of(self.exit.unwrap_or(Exit::Unseen), EndCause { stopping: false, fault })
    }

    /// Retry of a job that has failed, or was put back and waits; `None` where the job has not
    /// failed, or is not tried again.
    pub(super) fn retry(&self) -> Option<Retry> {
        let budget = RetryBudget { failures: self.stated.retries?, ..RetryBudget::default() };
        let mut failed = self.stated.failed.clone();
        let (mut history, mut verdict) = (RetryHistory::default(), RetryDecision::GiveUp);
        // All failures are judged anew, because a daemon that was started anew knows only the
        // comment.
        for at in &failed {
            verdict = history.judge(ExitMeaning::Failed, &budget, at.saturating_mul(1000));
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
        let RetryDecision::Requeue { not_before_ms } = verdict else { return None };
        let note =
            format!("it failed {} times ({} forgiven in an hour), and is tried again", failed.len(), budget.failures);
        Some(Retry { not_before_ms, failed, note })
    }
}

/// Failures that are not in comments yet, by number and time of submission of their job: Slurm
/// alters no job that is over, nor one that is still leaving its nodes, so the comment comes after
/// the requeue and may have to be written again.
#[derive(Debug, Default)]
pub(super) struct Owed(BTreeMap<(SlurmJobId, i64), Vec<i64>>);

impl Owed {
    /// Has jobs know what their comments do not say yet, and forgets what they do.
    pub fn tell(&mut self, jobs: &mut [RawJob]) {
        let mut left = BTreeMap::new();
        for job in jobs {
            let Some(owed) = self.0.remove(&(job.id, job.submit_ms)) else { continue };
            if owed.iter().all(|at| job.stated.failed.contains(at)) {
                continue;
            }
            // One that has not even been put back shows its last failure by itself.
            let shown = (job.state == RawState::Failed).then_some(job.end_ms / 1000);
            let mut all = [owed, std::mem::take(&mut job.stated.failed)].concat();
            all.sort_unstable();
            all.dedup();
            job.stated.failed = all.iter().copied().filter(|at| Some(*at) != shown).collect();
            left.insert((job.id, job.submit_ms), all);
        }
        self.0 = left;
    }

    /// A line for `scontrol` that puts a job back which failed and may be tried again.
    pub fn put_back(&mut self, job: &RawJob) -> Option<String> {
        let retry = job.retry().filter(|_| job.state == RawState::Failed)?;
        self.0.insert((job.id, job.submit_ms), retry.failed);
        Some(format!("requeuehold {}", job.id))
    }

    /// A line that writes down when a job failed, where its comment does not say so.
    pub fn comment(&self, job: &RawJob, key: &FactsKey) -> Option<String> {
        let failed = self.0.get(&(job.id, job.submit_ms))?.clone();
        let over = matches!(job.state, RawState::Completed | RawState::Cancelled)
            || job.state == RawState::Failed && job.retry().is_none();
        let comment = key.signed(&CommentFacts { failed, ..job.stated.clone() }, job.uid);
        (!over).then(|| format!("update JobId={} Comment={comment}", job.id))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::engine::JobPhase;

    fn failed(retries: Option<u32>, before: &[i64], exit: Exit) -> RawJob {
        let stated = CommentFacts { retries, failed: before.to_vec(), ..CommentFacts::default() };
        let (state, exit) = (RawState::Failed, Some(exit));
        RawJob { id: 7.into(), state, start_ms: 1, end_ms: 1_000_000, exit, stated, ..RawJob::default() }
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

    #[test]
    fn a_failure_is_not_forgotten_because_its_comment_came_too_early() {
        let (mut owed, key) = (Owed::default(), FactsKey::random().unwrap());
        let first = failed(Some(1), &[], Exit::Code(1));
        assert_eq!(owed.put_back(&first).unwrap(), "requeuehold 7");
        let comment = owed.comment(&first, &key).unwrap();
        assert!(comment.starts_with("update JobId=7 Comment=") && comment.contains("failed=1000"), "{comment}");
        let mut still_there = [first.clone()];
        owed.tell(&mut still_there);
        assert_eq!(still_there[0].retry().unwrap().failed, [1000], "the same failure is not counted twice");
        let waiting = RawJob { state: RawState::Pending { held: true }, ..first.clone() };
        let mut jobs = [waiting.clone()];
        owed.tell(&mut jobs);
        assert_eq!(
            (jobs[0].stated.failed.as_slice(), jobs[0].retry().unwrap().not_before_ms),
            (&[1000][..], 1_010_000)
        );
        assert_eq!(
            (owed.put_back(&jobs[0]), owed.comment(&jobs[0], &key)),
            (None, Some(comment)),
            "written again only"
        );
        let mut second = [RawJob { end_ms: 2_000_000, ..first }];
        owed.tell(&mut second);
        assert_eq!((second[0].seen().phase, second[0].seen().failures), (JobPhase::Failed, 2), "it may fail once");
        assert_eq!(owed.comment(&second[0], &key), None, "Slurm alters no job that is over");
        let mut of_another_daemon =
            [RawJob { stated: CommentFacts { failed: vec![900], ..waiting.stated.clone() }, ..waiting.clone() }];
        owed.tell(&mut of_another_daemon);
        assert_eq!(of_another_daemon[0].stated.failed, [900, 1000]);
        let mut told =
            [RawJob { stated: CommentFacts { failed: vec![900, 1000], ..waiting.stated.clone() }, ..waiting }];
        owed.tell(&mut told);
        assert_eq!(owed.comment(&told[0], &key), None, "its comment says so");
    }
}
