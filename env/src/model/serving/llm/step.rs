//! Time of one forward pass of a language model over a batch.
//!
//! A step reads the weights, reads the keys and values of every sequence, and computes. Its time is the sum
//!
//! ```text
//! fixed + experts * touched(tokens) + sequence * S + context * K + prompt * P + pair * A
//! ```
//!
//! over `S` sequences that decode one token each with `K` tokens of context together, and `P` tokens of prompts with
//! `A` pairs of a token and a token before it. Of `E` experts, of which a token uses `k`, `n` tokens read the share
//! `1 - (1 - k / E)^n`: experts are taken as drawn evenly and independently.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Costs of a step, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepCosts {
    /// Cost of a step whatever it does: launches, communication, weights that every token reads.
    pub fixed_ms: f64,
    /// Cost of reading all experts; 0 for a dense model.
    #[serde(default)]
    pub experts_ms: f64,
    /// Share of the experts that one token uses, in [0, 1].
    #[serde(default)]
    pub expert_share: f64,
    /// Cost of a sequence that decodes.
    pub sequence_ms: f64,
    /// Cost of a token of context of a sequence that decodes.
    pub context_ms: f64,
    /// Cost of a token of a prompt.
    pub prompt_ms: f64,
    /// Cost of a pair of a token of a prompt and a token before it.
    pub pair_ms: f64,
}

/// A cost that no step can have.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{key} is {value}, expected {expected}")]
pub struct BatchTimeError {
    /// Name of the cost.
    pub key: &'static str,
    /// Value that was given.
    pub value: f64,
    /// Values that are possible.
    pub expected: &'static str,
}

/// Time of a step in whole picoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchTime {
    /// Cost of a step by its number of tokens, without context and pairs and prompts. Replicas share it.
    base_ps: Arc<[u64]>,
    sequence_ps: u64,
    context_ps: u64,
    prompt_ps: u64,
    /// Attoseconds, because a pair costs less than a picosecond.
    pair_as: u64,
}

/// Picoseconds of a millisecond.
const MILLI_PS: f64 = 1e9;

impl BatchTime {
    /// Times of steps of up to `most_tokens` tokens.
    ///
    /// # Errors
    /// Where a cost is negative or a second and more, the share is outside [0, 1], or a step costs nothing.
    pub fn new(costs: &StepCosts, most_tokens: u32) -> Result<Self, BatchTimeError> {
        let named = [
            ("fixed_ms", costs.fixed_ms),
            ("experts_ms", costs.experts_ms),
            ("sequence_ms", costs.sequence_ms),
            ("context_ms", costs.context_ms),
            ("prompt_ms", costs.prompt_ms),
            ("pair_ms", costs.pair_ms),
        ];
        for (key, value) in named {
            if !(0.0..1000.0).contains(&value) {
                return Err(BatchTimeError { key, value, expected: "milliseconds of at least 0 and below 1000" });
            }
        }
        if !(0.0..=1.0).contains(&costs.expert_share) {
            let (key, value) = ("expert_share", costs.expert_share);
            return Err(BatchTimeError { key, value, expected: "a share from 0 to 1" });
        }
        if costs.fixed_ms <= 0.0 {
            return Err(BatchTimeError { key: "fixed_ms", value: costs.fixed_ms, expected: "more than 0" });
        }
        let base = |tokens: u32| costs.fixed_ms + costs.experts_ms * touched(costs.expert_share, f64::from(tokens));
        Ok(Self {
            base_ps: (0..=most_tokens).map(|tokens| (base(tokens) * MILLI_PS).round() as u64).collect(),
            sequence_ps: (costs.sequence_ms * MILLI_PS).round() as u64,
            context_ps: (costs.context_ms * MILLI_PS).round() as u64,
            prompt_ps: (costs.prompt_ms * MILLI_PS).round() as u64,
            pair_as: (costs.pair_ms * MILLI_PS * 1e6).round() as u64,
        })
    }

    /// Picoseconds of a step of `sequences` with `context` tokens together, and `prompt` tokens with twice `pairs2`
    /// pairs.
    pub fn mixed_ps(&self, sequences: u32, context: u64, prompt: u32, pairs2: u64) -> u64 {
        let tokens = (sequences + prompt) as usize;
        // A long prompt has more attoseconds of pairs than 64 bits hold.
        let pairs_ps = u128::from(self.pair_as) * u128::from(pairs2) / 2_000_000;
        self.base_ps[tokens.min(self.base_ps.len() - 1)]
            + self.sequence_ps * u64::from(sequences)
            + self.context_ps * context
            + self.prompt_ps * u64::from(prompt)
            + pairs_ps as u64
    }

    /// Picoseconds of `steps` steps in which `sequences` decode, with `context` tokens in the first of them. A step
    /// adds a token to the context of each sequence.
    pub fn decode_ps(&self, sequences: u32, context: u64, steps: u64) -> u64 {
        let grown = context * steps + u64::from(sequences) * (steps * steps.saturating_sub(1) / 2);
        self.mixed_ps(sequences, 0, 0, 0) * steps + self.context_ps * grown
    }

    /// Most steps of [`Self::decode_ps`] of which every one begins before `span_ps` is over, of at most `most` and
    /// at least 1.
    pub fn steps_within(&self, sequences: u32, context: u64, span_ps: u64, most: u64) -> u64 {
        // The first step is the shortest, so the span holds no more steps than this.
        let bound = span_ps / self.mixed_ps(sequences, context, 0, 0).max(1) + 1;
        let (mut low, mut high) = (1, most.min(bound).max(1));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            // The last step begins when the steps before it end.
            if self.decode_ps(sequences, context, middle - 1) < span_ps { low = middle } else { high = middle - 1 }
        }
        low
    }
}

/// Share of the experts that `tokens` tokens use, where one token uses the share `share`.
pub fn touched(share: f64, tokens: f64) -> f64 {
    1.0 - (1.0 - share).powf(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> BatchTime {
        let costs =
            StepCosts { fixed_ms: 5.0, sequence_ms: 0.01, context_ms: 1e-4, prompt_ms: 0.05, ..Default::default() };
        BatchTime::new(&costs, 256).unwrap()
    }

    #[test]
    fn steps_in_closed_form_are_steps_one_by_one() {
        let step = step();
        let each = |count: u64| (0..count).map(|at| step.mixed_ps(7, 1000 + 7 * at, 0, 0)).sum::<u64>();
        for count in [1, 2, 3, 50, 999] {
            assert_eq!(step.decode_ps(7, 1000, count), each(count));
        }
        for span in [1, 5_000_000_000, 5_170_000_001, 900_000_000_000] {
            let within = step.steps_within(7, 1000, span, 10_000);
            assert!(each(within - 1) < span && each(within) >= span, "{span}: {within}");
        }
        assert_eq!(step.steps_within(7, 1000, 900_000_000_000, 12), 12);
    }

    #[test]
    fn pairs_of_a_long_prompt_do_not_overflow() {
        let costs = StepCosts { fixed_ms: 5.0, pair_ms: 1e-6, ..Default::default() };
        let step = BatchTime::new(&costs, 256).unwrap();
        let pairs2 = 1_u64 << 36;
        assert_eq!(step.mixed_ps(0, 0, 0, pairs2) - step.mixed_ps(0, 0, 0, 0), pairs2 * 500);
    }

    #[test]
    fn costs_out_of_range_are_named() {
        let costs = StepCosts { fixed_ms: 5.0, prompt_ms: -1.0, ..Default::default() };
        let error = BatchTime::new(&costs, 8).unwrap_err();
        assert_eq!(error.to_string(), "prompt_ms is -1, expected milliseconds of at least 0 and below 1000");
        assert_eq!(BatchTime::new(&StepCosts::default(), 8).unwrap_err().key, "fixed_ms");
    }
}
