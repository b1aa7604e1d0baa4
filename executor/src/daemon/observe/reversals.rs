//! Reversals: the daemon does not fight an administrator that works on a job by hand.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::engine::{ClusterSnapshot, JobPhase};

/// So many reversals of one job, and the daemon leaves it alone.
const REVERSALS: u32 = 2;
/// For so long.
const HANDS_OFF: Duration = Duration::from_secs(3600);

/// Changes that the daemon made to jobs, and whether they lasted.
#[derive(Debug, Default)]
pub(in crate::daemon) struct Reversals {
    /// Starts of jobs that were placed by order.
    placed: BTreeMap<String, u32>,
    reversals: BTreeMap<String, u32>,
    left_alone: BTreeMap<String, Instant>,
}

impl Reversals {
    /// An order placed a job, which has started so many times since.
    pub fn placed(&mut self, job: &str, starts: u32) {
        self.placed.insert(job.into(), starts);
    }

    /// An order moves or stops a job: that it leaves is what was wanted.
    pub fn released(&mut self, job: &str) {
        self.placed.remove(job);
    }

    /// Looks for jobs that were taken off their accelerators by hand. Returns the jobs that are
    /// left alone from now on.
    pub fn look(&mut self, snapshot: &ClusterSnapshot, now: Instant) -> Vec<String> {
        self.left_alone.retain(|_, until| now < *until);
        let mut alone = Vec::new();
        for job in &snapshot.jobs {
            let Some(&starts) = self.placed.get(&job.key) else { continue };
            if job.phase.is_over() {
                self.placed.remove(&job.key);
                self.reversals.remove(&job.key);
            } else if job.phase == JobPhase::Held && job.starts == starts {
                self.placed.remove(&job.key);
                // A job that failed, or lost its machine, and waits to be tried again was not stopped by hand.
                if !job.ended_itself {
                    let count = self.reversals.entry(job.key.clone()).or_default();
                    *count += 1;
                    if *count >= REVERSALS {
                        self.reversals.remove(&job.key);
                        self.left_alone.insert(job.key.clone(), now + HANDS_OFF);
                        alone.push(job.key.clone());
                    }
                }
            }
        }
        alone
    }

    /// Whether a job is left alone.
    pub fn leaves_alone(&self, job: &str) -> bool {
        self.left_alone.contains_key(job)
    }

    /// Jobs that were reversed or are left alone.
    pub fn jobs_reversed(&self) -> usize {
        self.reversals.len() + self.left_alone.len()
    }
}

#[cfg(test)]
mod tests {
    use goodput_env::job::{JobRequest, JobSpec, Work};
    use goodput_env::time::SimTime;

    use super::*;
    use crate::engine::JobSeen;

    /// A job that waits after its first start, and whether its attempt ended by itself.
    fn waits(ended_itself: bool) -> ClusterSnapshot {
        let spec = JobSpec { request: JobRequest::default(), work: Work::Fixed { duration: SimTime::from_secs(60) } };
        let job = JobSeen { starts: 1, ended_itself, ..JobSeen::held("a", spec) };
        ClusterSnapshot { jobs: vec![job], ..ClusterSnapshot::default() }
    }

    #[test]
    fn only_what_a_person_reversed_is_left_alone() {
        let now = Instant::now();
        let mut watch = Reversals::default();
        for fault in 0..10 {
            watch.placed("a", 1);
            assert_eq!(watch.look(&waits(true), now), [""; 0], "fault {fault} of a machine is no hand's work");
        }
        assert_eq!(watch.jobs_reversed(), 0);
        watch.placed("a", 1);
        assert_eq!(watch.look(&waits(false), now), [""; 0]);
        watch.placed("a", 1);
        assert_eq!(watch.look(&waits(false), now), ["a"]);
        assert!(watch.leaves_alone("a"));
    }
}
