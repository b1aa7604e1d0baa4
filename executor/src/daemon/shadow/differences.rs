//! Completion of single jobs under two policies.

use serde::{Deserialize, Serialize};

/// Completions that differ by less count as equal, seconds.
const EQUAL_SECS: f64 = 60.0;
/// Jobs listed of one comparison.
const LISTED: usize = 200;

/// Job that one policy completes earlier than the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobDifference {
    /// Key of the job.
    pub job: String,
    /// Completion under the policy that acts minus completion under the candidate, seconds of the policy's
    /// clock. Negative: sooner under the policy that acts.
    pub secs: f64,
    /// Whether the job is not complete under one of them when the simulation ends, which makes `secs` a
    /// lower bound.
    #[serde(default)]
    pub open: bool,
}

/// Jobs at hand by the policy that completes them earlier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobDifferences {
    /// Jobs that are complete sooner under the policy that acts, by at least a minute.
    pub sooner: usize,
    /// Jobs that are complete later under the policy that acts, by at least a minute.
    pub later: usize,
    /// All other jobs.
    pub equal: usize,
    /// The jobs that differ most, largest difference first.
    pub largest: Vec<JobDifference>,
}

impl JobDifferences {
    /// Counts of all jobs, and the jobs that differ most.
    pub(super) fn of(jobs: impl Iterator<Item = JobDifference>) -> Self {
        let mut found = Self::default();
        for job in jobs {
            match job.secs {
                secs if secs <= -EQUAL_SECS => found.sooner += 1,
                secs if secs >= EQUAL_SECS => found.later += 1,
                _ => {
                    found.equal += 1;
                    continue;
                }
            }
            found.largest.push(job);
        }
        found.largest.sort_by(|a, b| b.secs.abs().total_cmp(&a.secs.abs()).then_with(|| a.job.cmp(&b.job)));
        found.largest.truncate(LISTED);
        found
    }
}
