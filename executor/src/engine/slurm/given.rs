//! Queues that are given to the daemon as a whole: partitions and qualities of service that the
//! deployment names.
//!
//! A job there need not say so in its comment. The daemon takes the job: a mark goes into its
//! `AdminComment`, and then the job is held, until an order places it. A job that its user held
//! before, and that therefore has no mark, is left alone.

use goodput_configs::live::engine::SlurmConfig;

use super::SlurmEngine;
use super::id::SlurmJobId;
use super::read::{RawJob, RawState};
use super::stated::CommentFacts;
use crate::engine::EngineError;

/// Partitions and qualities of service that are given to the daemon with all their jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenQueues {
    partitions: Vec<String>,
    qos: Vec<String>,
}

impl GivenQueues {
    pub fn new(settings: &SlurmConfig) -> Self {
        Self { partitions: settings.given_partitions.clone(), qos: settings.given_qos.clone() }
    }

    fn has(&self, job: &RawJob) -> bool {
        // A job may name several partitions.
        job.partition.split(',').any(|partition| self.partitions.iter().any(|given| given == partition))
            || self.qos.contains(&job.qos)
    }

    /// Counts the jobs of these queues as given, but those that their users hold.
    pub fn claim(&self, jobs: &mut [RawJob]) {
        for job in jobs.iter_mut().filter(|job| job.foreign) {
            let held_by_user = job.state == (RawState::Pending { held: true }) && !is_taken(job);
            job.foreign = held_by_user || !self.has(job);
        }
    }

    /// Lines for `scontrol` that mark jobs which are not marked yet, and the lines that hold those
    /// after it, each with the number of its record.
    pub fn take<'a>(&self, jobs: impl Iterator<Item = &'a RawJob>) -> (Vec<String>, Vec<(SlurmJobId, String)>) {
        let (mut marks, mut holds) = (Vec::new(), Vec::new());
        let given = |job: &&RawJob| self.has(job) && !job.foreign && !CommentFacts::gives(&job.comment);
        for job in jobs.filter(given) {
            if !is_taken(job) && !job.state.is_over() {
                let facts = CommentFacts { submit_ms: Some(job.submit_ms), ..CommentFacts::default() };
                marks.push(format!("update JobId={} AdminComment={}", job.record, facts.text()));
            }
            // An order that released the job has named its nodes.
            if job.state == (RawState::Pending { held: false }) && job.required_nodes.is_empty() {
                holds.push((job.record, format!("uhold {}", job.record)));
            }
        }
        marks.sort_unstable();
        marks.dedup();
        holds.sort_unstable();
        holds.dedup();
        (marks, holds)
    }
}

impl SlurmEngine {
    /// Takes the jobs of the given queues: marks them, then holds those that wait for no order.
    pub(super) async fn take_given(&mut self) -> Result<(), EngineError> {
        let (marks, holds) = self.given.take(self.jobs.values());
        let marked = self.commands.control(&marks.iter().collect::<Vec<_>>()).await?;
        // A hold without a mark would count as the user's.
        let holds: Vec<&String> =
            holds.iter().filter(|(record, _)| marked.about(*record).is_none()).map(|(_, line)| line).collect();
        self.commands.control(&holds).await?;
        if !marks.is_empty() {
            // No line of a list shows a mark.
            self.jobs.values().filter(|job| !is_taken(job)).for_each(|job| self.poll.forget(job.number));
        }
        Ok(())
    }
}

fn is_taken(job: &RawJob) -> bool {
    CommentFacts::gives(&job.admin_comment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: u64, held: bool, admin_comment: &str) -> RawJob {
        let state = RawState::Pending { held };
        let (partition, admin_comment) = ("train".to_owned(), admin_comment.to_owned());
        RawJob { id: id.into(), record: id.into(), state, partition, admin_comment, foreign: true, ..RawJob::default() }
    }

    #[test]
    fn jobs_of_a_given_queue_are_taken_and_holds_of_users_stay() {
        let given = GivenQueues { partitions: vec!["train".into()], qos: vec!["low".into()] };
        let elsewhere = RawJob { partition: "other".into(), ..job(4, false, "") };
        let low = RawJob { qos: "low".into(), ..RawJob { id: 5.into(), ..elsewhere.clone() } };
        let mut jobs = [job(1, false, ""), job(2, true, ""), job(3, true, "goodput;submit_ms=7"), elsewhere, low];
        given.claim(&mut jobs);
        assert_eq!(jobs.each_ref().map(|job| job.foreign), [false, true, false, true, false]);
        let (marks, holds) = given.take(jobs[..3].iter());
        assert_eq!(marks, ["update JobId=1 AdminComment=goodput;submit_ms=0"]);
        assert_eq!(holds, [(1.into(), "uhold 1".to_owned())]);
        let mut none = [job(1, false, "")];
        GivenQueues::default().claim(&mut none);
        assert!(none[0].foreign);
    }

    #[test]
    fn tasks_that_wait_together_are_taken_together() {
        let given = GivenQueues { partitions: vec!["train".into()], ..GivenQueues::default() };
        let task = |index| RawJob { id: SlurmJobId::task(7, index), foreign: false, ..job(7, false, "") };
        let (marks, holds) = given.take([task(0), task(1)].iter());
        assert_eq!((marks.len(), holds.len()), (1, 1), "{marks:?}");
        let placed = RawJob { required_nodes: vec!["n1".into()], ..task(0) };
        assert!(given.take([placed].iter()).1.is_empty(), "an order released it");
    }
}
