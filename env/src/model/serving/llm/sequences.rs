//! Requests that a replica decodes, counted so that the cost of a step does not grow with their number.
//!
//! Every sequence gains a token in every step. So a sequence is stored as the step at which it ends, memory as the
//! number of sequences that begin a block in each of the coming steps, and neither changes while steps pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::request::LlmRequest;

/// A request that holds memory or waits to hold it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    /// Number of the request.
    pub(super) id: u32,
    /// Request as it arrived.
    pub(super) request: LlmRequest,
    /// Tokens of the answer that were made.
    pub(super) made: u32,
    /// Time of the first token; `None` before it.
    pub(super) first_ps: Option<u64>,
    /// Times that it lost its memory.
    pub(super) preemptions: u32,
}

impl Sequence {
    /// Tokens to compute before the next token is made: the prompt, and after a preemption the answer so far.
    pub(super) fn prompt(&self) -> u32 {
        self.request.input + self.made
    }

    /// Moment from which the sequence may hold memory: the arrival of the request, or its first token.
    pub(super) fn since_ps(&self) -> u64 {
        self.first_ps.unwrap_or(self.request.arrival_ps)
    }

    /// Whether the keys and values of the sequence are on the replica that has prefilled them.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.made > 0 && self.preemptions == 0
    }

    /// Tokens of the prompt that are in memory at the start. A preempted request computes all again.
    pub(super) fn cached(&self) -> u32 {
        if self.preemptions == 0 { self.request.cached } else { 0 }
    }
}

/// A sequence that decodes.
#[derive(Clone, Copy, Debug)]
struct Decoding {
    sequence: Sequence,
    /// Step of the replica in which it began to decode.
    since: u64,
    /// Tokens in memory at that step.
    tokens: u32,
    /// Position in the order of admission.
    admitted: u64,
}

/// The sequences that decode.
#[derive(Clone, Debug)]
pub(super) struct Sequences {
    block: u64,
    /// Steps that were played.
    step: u64,
    slots: Vec<Option<Decoding>>,
    free: Vec<u32>,
    /// Step of the last token, slot, and order of admission, by which an entry of an earlier sequence of the slot is
    /// known.
    ends: BinaryHeap<Reverse<(u64, u32, u64)>>,
    /// Sequences that begin a block in a step, by the step modulo the size of a block.
    begins: Vec<u32>,
    count: u32,
    context: u64,
}

impl Sequences {
    /// No sequences, of at most `most`; memory in blocks of `block` tokens.
    pub(super) fn new(most: u32, block: u32) -> Self {
        Self {
            block: u64::from(block),
            step: 0,
            slots: vec![None; most as usize],
            free: (0..most).rev().collect(),
            ends: BinaryHeap::with_capacity(2 * most as usize),
            begins: vec![0; block as usize],
            count: 0,
            context: 0,
        }
    }

    /// Number of sequences.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Tokens to which the next step attends, over all sequences: those in memory and the new ones.
    pub(super) fn context(&self) -> u64 {
        self.context + u64::from(self.count)
    }

    /// Blocks that hold `tokens` tokens.
    pub(super) fn blocks(&self, tokens: u32) -> u64 {
        u64::from(tokens).div_ceil(self.block)
    }

    /// Blocks that the next step begins.
    pub(super) fn begun_next(&self) -> u64 {
        u64::from(self.begins[(self.step % self.block) as usize])
    }

    /// Blocks that the next `steps` steps begin.
    pub(super) fn begun(&self, steps: u64) -> u64 {
        let cycles = steps / self.block * u64::from(self.count);
        let rest = (0..steps % self.block).map(|at| u64::from(self.begins[((self.step + at) % self.block) as usize]));
        cycles + rest.sum::<u64>()
    }

    /// Steps until the first sequence ends; 0 where there is none.
    pub(super) fn steps_left(&mut self) -> u64 {
        self.drop_stale();
        self.ends.peek().map_or(0, |Reverse((end, _, _))| end - self.step)
    }

    /// Plays a number of steps.
    pub(super) fn advance(&mut self, steps: u64) {
        self.step += steps;
        self.context += u64::from(self.count) * steps;
    }

    /// Adds a sequence with tokens left to make. Its prompt and its answer, less the newest token, are in memory.
    pub(super) fn add(&mut self, sequence: Sequence, admitted: u64) {
        let Some(slot) = self.free.pop() else { return };
        let tokens = sequence.request.input + sequence.made - 1;
        let end = self.step + u64::from(sequence.request.output - sequence.made);
        let begin = self.begin_of(self.step, tokens);
        self.begins[begin] += 1;
        self.ends.push(Reverse((end, slot, admitted)));
        self.slots[slot as usize] = Some(Decoding { sequence, since: self.step, tokens, admitted });
        self.count += 1;
        self.context += u64::from(tokens);
    }

    /// Takes a sequence that has made its last token, with the blocks that it held.
    pub(super) fn take_ended(&mut self) -> Option<(Sequence, u64)> {
        self.drop_stale();
        let Reverse((_, slot, _)) = *self.ends.peek().filter(|Reverse((end, _, _))| *end <= self.step)?;
        self.ends.pop();
        self.take(slot)
    }

    /// Takes the sequence that was admitted last, with the blocks that it held.
    pub(super) fn take_last(&mut self) -> Option<(Sequence, u64)> {
        let order = |slot: &u32| self.slots[*slot as usize].map(|one| one.admitted);
        let last = (0..self.slots.len() as u32).max_by_key(order)?;
        self.take(last)
    }

    fn take(&mut self, slot: u32) -> Option<(Sequence, u64)> {
        let mut one = self.slots[slot as usize].take()?;
        self.free.push(slot);
        self.count -= 1;
        let begin = self.begin_of(one.since, one.tokens);
        self.begins[begin] -= 1;
        let grown = (self.step - one.since) as u32;
        self.context -= u64::from(one.tokens + grown);
        one.sequence.made += grown;
        Some((one.sequence, self.blocks(one.tokens + grown)))
    }

    /// The step, modulo the size of a block, in which a sequence with `tokens` tokens at `step` begins a block.
    fn begin_of(&self, step: u64, tokens: u32) -> usize {
        let until = (self.block - u64::from(tokens) % self.block) % self.block;
        ((step + until) % self.block) as usize
    }

    /// Drops entries of sequences that were preempted.
    fn drop_stale(&mut self) {
        while let Some(Reverse((_, slot, admitted))) = self.ends.peek() {
            if self.slots[*slot as usize].is_some_and(|one| one.admitted == *admitted) {
                return;
            }
            self.ends.pop();
        }
    }
}
