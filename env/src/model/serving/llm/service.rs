//! Equal replicas of a language model behind a router that sends a request to the fewest outstanding tokens.

use super::limits::{ReplicaLimits, ReplicaLimitsError};
use super::prefix::PrefixCache;
use super::replica::LlmReplica;
use super::request::{LlmOutcome, LlmRequest};
use super::step::BatchTime;

/// Equal replicas behind a router.
#[derive(Clone, Debug)]
pub struct LlmService {
    replicas: Vec<(LlmReplica, PrefixCache)>,
    reused: u64,
}

impl LlmService {
    /// `count` idle replicas, at least one, that keep no prefixes.
    ///
    /// # Errors
    /// As [`ReplicaLimits::check`], and where `count` is 0.
    pub fn new(count: u32, limits: ReplicaLimits, step: &BatchTime) -> Result<Self, ReplicaLimitsError> {
        if count == 0 {
            return Err(ReplicaLimitsError::Zero("the number of replicas"));
        }
        let replica = |_| Ok((LlmReplica::new(limits, step.clone())?, PrefixCache::default()));
        Ok(Self { replicas: (0..count).map(replica).collect::<Result<_, _>>()?, reused: 0 })
    }

    /// The service with replicas that each keep up to `most` blocks of `block` tokens of the prompts that they saw,
    /// in memory of their own.
    pub fn with_prefixes(mut self, block: u32, most: usize) -> Self {
        for (_, kept) in &mut self.replicas {
            *kept = PrefixCache::new(block, most);
        }
        self
    }

    /// Tokens of prompts that were not computed, because their replica had kept them.
    pub fn reused_tokens(&self) -> u64 {
        self.reused
    }

    /// Plays requests in order of arrival, and gives what became of each. `blocks` names the blocks of their prompts;
    /// it may be empty.
    pub fn replay(&mut self, requests: &[LlmRequest], blocks: &[Vec<u64>]) -> Vec<LlmOutcome> {
        let mut outcomes = vec![LlmOutcome::TimedOut; requests.len()];
        let mut done = |id: u32, outcome| outcomes[id as usize] = outcome;
        for (id, &request) in (0..).zip(requests) {
            for (replica, _) in &mut self.replicas {
                replica.advance(request.arrival_ps, &mut done);
            }
            // Of equal replicas the first is taken.
            let least = self.replicas.iter_mut().min_by_key(|(replica, _)| replica.outstanding_tokens());
            let Some((replica, kept)) = least else { continue };
            let known = match blocks.get(id as usize) {
                // A request that the replica refuses leaves its memory as it was.
                Some(blocks) if replica.fits(&request) => kept.reuse(blocks, request.input),
                _ => 0,
            };
            self.reused += u64::from(known);
            if let Some(answer) = replica.push(id, LlmRequest { cached: request.cached.max(known), ..request }) {
                done(id, answer);
            }
        }
        for (replica, _) in &mut self.replicas {
            replica.advance(u64::MAX, &mut done);
        }
        outcomes
    }
}
