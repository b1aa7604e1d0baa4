//! Equal replicas of a language model behind a router that sends a request to the fewest outstanding tokens.

use super::limits::{ReplicaLimits, ReplicaLimitsError};
use super::request::{LlmOutcome, LlmRequest};
use super::router::Router;
use super::step::BatchTime;

/// Equal replicas behind a router.
#[derive(Clone, Debug)]
pub struct LlmService {
    router: Router,
}

impl LlmService {
    /// `count` idle replicas, at least one, that keep no prefixes.
    ///
    /// # Errors
    /// As [`ReplicaLimits::check`], and where `count` is 0.
    pub fn new(count: u32, limits: ReplicaLimits, step: &BatchTime) -> Result<Self, ReplicaLimitsError> {
        Ok(Self { router: Router::new(count, limits, step, "the number of replicas")? })
    }

    /// The service with replicas that each keep up to `most` blocks of `block` tokens of the prompts that they saw,
    /// in memory of their own.
    pub fn with_prefixes(mut self, block: u32, most: usize) -> Self {
        self.router.keep_prefixes(block, most);
        self
    }

    /// Tokens of prompts that were not computed, because their replica had kept them.
    pub fn reused_tokens(&self) -> u64 {
        self.router.reused_tokens()
    }

    /// Plays requests in order of arrival, and gives what became of each. `blocks` names the blocks of their prompts;
    /// it may be empty.
    pub fn replay(&mut self, requests: &[LlmRequest], blocks: &[Vec<u64>]) -> Vec<LlmOutcome> {
        let mut outcomes = vec![LlmOutcome::TimedOut; requests.len()];
        let mut done = |id: u32, outcome| outcomes[id as usize] = outcome;
        for (id, &request) in (0..).zip(requests) {
            for replica in &mut self.router.replicas {
                replica.advance(request.arrival_ps, &mut done);
            }
            let least = self.router.least();
            if let Some(answer) = self.router.send(least, id, request, blocks.get(id as usize)) {
                done(id, answer);
            }
        }
        for replica in &mut self.router.replicas {
            replica.advance(u64::MAX, &mut done);
        }
        outcomes
    }
}
