//! Failures that a job brings about by itself: which jobs never succeed, and after how long each
//! attempt fails.

use rand::RngExt;

use super::JobId;
use crate::model::FaultModel;
use crate::model::fault::JOB_KEY;
use crate::seed::{Stream, keyed};
use crate::time::SimTime;

/// Bits of the keys of draws that belong to one attempt of a job.
const ATTEMPT: u64 = JOB_KEY | 1 << 61;

impl FaultModel {
    /// Whether `job` of `tenant` will never succeed.
    pub fn is_buggy(&self, seed: u64, job: JobId, tenant: u32) -> bool {
        let Some(bugs) = self.bugs.filter(|bugs| bugs.tenant.is_none_or(|only| only == tenant)) else { return false };
        keyed(seed, Stream::Faults, JOB_KEY | u64::from(job.0)).random::<f64>() < bugs.share
    }

    /// Running time after which attempt number `attempt` of a buggy job fails.
    pub fn fails_after(&self, seed: u64, job: JobId, attempt: u32) -> SimTime {
        let Some(bugs) = self.bugs else { return SimTime::NEVER };
        let mut rng = keyed(seed, Stream::Faults, ATTEMPT | u64::from(attempt) << 32 | u64::from(job.0));
        bugs.after.draw(rng.random(), rng.random())
    }
}
