//! Learned order of a batch queue: a score of each waiting job, the greatest of which comes first.
//!
//! The score takes the place of a published number ([`JobOrder`](crate::heuristic::backfill::JobOrder)) in the very
//! rules that the heuristics have, so that a comparison is about the order alone. It sees what those numbers see:
//! requests, requested run times, waits, and what runs. The true run time of a job is not among its features.
//!
//! - `features`: the observation of a queue.
//! - `score`: a weighted sum of the features of a job, or a set encoder over the queue.
//! - `order`: the order by the scores, and choices drawn from them while a policy learns.
//! - `rule`: the rules of batch scheduling that an order serves.

mod features;
mod order;
mod rule;
mod score;

pub use features::{GLOBALS, JOB_FEATURES, layout, schema_hash};
pub use order::{ChoiceLog, LearnedOrder, QueueChoice};
pub use rule::QueueRule;
pub use score::QueueScore;

/// Learned policy for a batch queue.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedQueue {
    /// Score of a waiting job.
    pub score: QueueScore,
    /// Rule that the order serves.
    pub rule: QueueRule,
}

impl LearnedQueue {
    /// The policy behind the interface of all schedulers: the greatest score comes first.
    pub fn policy(&self) -> Box<dyn goodput_env::policy::Policy> {
        self.rule.policy(LearnedOrder::greedy(&self.score))
    }
}
