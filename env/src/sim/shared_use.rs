//! How much jobs on parts of cards hold over a run.

use serde::{Deserialize, Serialize};

use crate::model::sharing::ShareRequest;
use crate::state::SharedCard;

/// Use of shared cards over a run: integrals over time, in whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedUse {
    /// Time for which cards had a job with a share on them, card-milliseconds.
    pub card_millis: i64,
    /// Time for which cards had two or more such jobs, card-milliseconds.
    pub joint_card_millis: i64,
    /// Compute that jobs held on such cards, percent of a card times milliseconds.
    pub compute_percent_millis: i64,
    /// Device memory that jobs held on such cards, MiB times milliseconds.
    pub memory_mib_millis: i128,
    /// Most jobs on one card at a time.
    pub most_jobs: u32,
    /// Times a job came to a card of which its jobs then held more than all of the compute or all of the memory.
    pub over_committed: u64,
}

/// What jobs with shares hold at one moment, and the integrals until then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SharedBooks {
    pub total: SharedUse,
    cards: i64,
    joint: i64,
    compute_percent: i64,
    memory_mib: i128,
}

impl SharedBooks {
    /// Adds `millis` to the integrals over time.
    pub fn advance(&mut self, millis: i64) {
        if self.cards > 0 {
            self.total.card_millis += self.cards * millis;
            self.total.joint_card_millis += self.joint * millis;
            self.total.compute_percent_millis += self.compute_percent * millis;
            self.total.memory_mib_millis += self.memory_mib * i128::from(millis);
        }
    }

    /// A job has come to a card.
    pub fn joined(&mut self, card: &SharedCard, part: ShareRequest) {
        let jobs = card.jobs.len() as u32;
        self.count(jobs, part, 1);
        self.total.most_jobs = self.total.most_jobs.max(jobs);
        let sum = |of: fn(&ShareRequest) -> u32| card.jobs.iter().map(|(_, part)| u64::from(of(part))).sum::<u64>();
        let over = sum(|part| part.compute_percent) > 100 || sum(|part| part.memory_mib) > card.card.total_mib.into();
        self.total.over_committed += u64::from(over);
    }

    /// A job has left a card, on which `jobs` are now.
    pub fn left(&mut self, jobs: u32, part: ShareRequest) {
        self.count(jobs + 1, part, -1);
    }

    /// Counts the job that made the number of jobs on a card `jobs`, or that ends it.
    fn count(&mut self, jobs: u32, part: ShareRequest, sign: i64) {
        self.cards += sign * i64::from(jobs == 1);
        self.joint += sign * i64::from(jobs == 2);
        self.compute_percent += sign * i64::from(part.compute_percent);
        self.memory_mib += i128::from(sign) * i128::from(part.memory_mib);
    }
}
