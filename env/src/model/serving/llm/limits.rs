//! Limits of a replica: sequences, tokens of a step, memory, and patience.

use thiserror::Error;

/// Limits of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaLimits {
    /// Most requests that a replica works on at one time.
    pub sequences: u32,
    /// Most tokens of a step.
    pub tokens: u32,
    /// Tokens of which keys and values fit into memory.
    pub kv_tokens: u64,
    /// Tokens of a block of memory.
    pub block: u32,
    /// Longest wait for the first token, picoseconds; a request that has waited longer is given up.
    pub timeout_ps: u64,
}

/// Limits that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplicaLimitsError {
    /// A limit is zero.
    #[error("{0} is 0, expected at least 1")]
    Zero(&'static str),
    /// A step cannot hold a token of every sequence and one of a prompt.
    #[error("the token budget of a step is {tokens}, expected at least the number of sequences, {sequences}")]
    Budget {
        /// Token budget of a step.
        tokens: u32,
        /// Most sequences at a time.
        sequences: u32,
    },
    /// A service has more replicas at least than at most.
    #[error("at least {least} and at most {most} replicas contradict each other")]
    Replicas {
        /// Fewest replicas at a time.
        least: u32,
        /// Most replicas at a time.
        most: u32,
    },
}

impl ReplicaLimits {
    /// Checks that a replica can work within the limits.
    ///
    /// # Errors
    /// Where a limit is zero, or a step has fewer tokens than sequences.
    pub fn check(&self) -> Result<(), ReplicaLimitsError> {
        let named = [
            ("the number of sequences", u64::from(self.sequences)),
            ("the token budget", u64::from(self.tokens)),
            ("the number of tokens in memory", self.kv_tokens),
            ("the size of a block", u64::from(self.block)),
        ];
        if let Some((name, _)) = named.into_iter().find(|(_, value)| *value == 0) {
            return Err(ReplicaLimitsError::Zero(name));
        }
        let Self { tokens, sequences, .. } = *self;
        if tokens < sequences { Err(ReplicaLimitsError::Budget { tokens, sequences }) } else { Ok(()) }
    }
}
