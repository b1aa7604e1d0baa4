//! Router that sends a request to the replica with the fewest outstanding tokens, and the prompts that replicas keep.

use super::limits::{ReplicaLimits, ReplicaLimitsError};
use super::prefix::PrefixCache;
use super::replica::LlmReplica;
use super::request::{LlmOutcome, LlmRequest};
use super::step::BatchTime;

/// Equal replicas behind a router.
#[derive(Clone, Debug)]
pub(super) struct Router {
    /// Replicas, at least one.
    pub(super) replicas: Vec<LlmReplica>,
    /// Prompts that each replica keeps.
    kept: Vec<PrefixCache>,
    reused: u64,
}

impl Router {
    /// `count` idle replicas that keep no prompts; `name` says what is counted.
    ///
    /// # Errors
    /// As [`ReplicaLimits::check`], and where `count` is 0.
    pub(super) fn new(
        count: u32,
        limits: ReplicaLimits,
        step: &BatchTime,
        name: &'static str,
    ) -> Result<Self, ReplicaLimitsError> {
        if count == 0 {
            return Err(ReplicaLimitsError::Zero(name));
        }
        let replicas = (0..count).map(|_| LlmReplica::new(limits, step.clone())).collect::<Result<_, _>>()?;
        Ok(Self { replicas, kept: vec![PrefixCache::default(); count as usize], reused: 0 })
    }

    /// Lets each replica keep up to `most` blocks of `block` tokens of the prompts that it saw, in memory of their own.
    pub(super) fn keep_prefixes(&mut self, block: u32, most: usize) {
        self.kept.fill(PrefixCache::new(block, most));
    }

    /// Tokens of prompts that were not computed, because their replica had kept them.
    pub(super) fn reused_tokens(&self) -> u64 {
        self.reused
    }

    /// Number of the replica with the fewest outstanding tokens; of equal ones the first.
    pub(super) fn least(&self) -> usize {
        let outstanding = |&at: &usize| self.replicas[at].outstanding_tokens();
        (0..self.replicas.len()).min_by_key(outstanding).unwrap_or(0)
    }

    /// Sends a request to replica `at`, less what the replica has kept of the `blocks` of its prompt. The answer is at
    /// once where the request can never fit.
    pub(super) fn send(
        &mut self,
        at: usize,
        id: u32,
        request: LlmRequest,
        blocks: Option<&Vec<u64>>,
    ) -> Option<LlmOutcome> {
        let replica = &mut self.replicas[at];
        let known = match blocks {
            // A request that the replica refuses leaves its memory as it was.
            Some(blocks) if replica.fits(&request) => self.kept[at].reuse(blocks, request.input),
            _ => 0,
        };
        self.reused += u64::from(known);
        replica.push(id, LlmRequest { cached: request.cached.max(known), ..request })
    }
}
