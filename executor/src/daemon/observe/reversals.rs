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
    /// Starts and failures of jobs that were placed by order.
    placed: BTreeMap<String, (u32, u32)>,
    reversals: BTreeMap<String, u32>,
    left_alone: BTreeMap<String, Instant>,
}

impl Reversals {
    /// An order placed a job, which has started so many times since.
    pub fn placed(&mut self, job: &str, starts: u32, failures: u32) {
        self.placed.insert(job.into(), (starts, failures));
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
            let Some(&(starts, failures)) = self.placed.get(&job.key) else { continue };
            if job.phase.is_over() {
                self.placed.remove(&job.key);
                self.reversals.remove(&job.key);
            } else if job.phase == JobPhase::Held && job.starts == starts {
                self.placed.remove(&job.key);
                // A job that failed and waits to be tried again was not stopped by hand.
                if job.failures == failures {
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
