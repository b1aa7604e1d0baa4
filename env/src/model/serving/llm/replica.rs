//! A replica with continuous batching and chunked prefill, after the scheduler of vLLM (version 1).
//!
//! A step first gives every sequence that decodes one token. The rest of the token budget goes to the prompt that was
//! begun before, then to waiting requests in order of arrival, while sequences and memory allow. A prompt holds the
//! memory of all of its tokens from its admission on. Where a step needs a block and none is free, the request that
//! was admitted last loses its memory and waits at the head of the queue.

use std::collections::VecDeque;

use thiserror::Error;

use super::request::{LlmOutcome, LlmRequest, ServedTokens};
use super::sequences::{Sequence, Sequences};
use super::step::BatchTime;

/// Limits of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaLimits {
    /// Most requests that hold memory at one time.
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

/// A prompt that is computed in chunks.
#[derive(Clone, Copy, Debug)]
struct Prompt {
    sequence: Sequence,
    done: u32,
    admitted: u64,
}

/// A replica of a language model.
#[derive(Clone, Debug)]
pub struct LlmReplica {
    limits: ReplicaLimits,
    step: BatchTime,
    now_ps: u64,
    waiting: VecDeque<Sequence>,
    /// Prompts of the current step. After a step only a prompt that is not complete is left.
    prompts: Vec<Prompt>,
    decoding: Sequences,
    free_blocks: u64,
    admissions: u64,
    outstanding: u64,
}

impl LlmReplica {
    /// An idle replica.
    ///
    /// # Errors
    /// As [`ReplicaLimits::check`].
    pub fn new(limits: ReplicaLimits, step: BatchTime) -> Result<Self, ReplicaLimitsError> {
        limits.check()?;
        Ok(Self {
            limits,
            step,
            now_ps: 0,
            waiting: VecDeque::with_capacity(1024),
            prompts: Vec::with_capacity(limits.sequences as usize),
            decoding: Sequences::new(limits.sequences, limits.block),
            free_blocks: limits.kv_tokens / u64::from(limits.block),
            admissions: 0,
            outstanding: 0,
        })
    }

    /// Tokens of prompts and answers of the requests that are not finished.
    pub fn outstanding_tokens(&self) -> u64 {
        self.outstanding
    }

    /// Whether the memory of the replica holds a request to its last token.
    pub fn fits(&self, request: &LlmRequest) -> bool {
        let most = u64::from(request.input) + u64::from(request.output);
        most <= self.limits.kv_tokens / u64::from(self.limits.block) * u64::from(self.limits.block)
    }

    /// Adds a request, not earlier than those before it. Play the steps before its arrival first, by
    /// [`Self::advance`]. The answer is at once where the request can never fit.
    pub fn push(&mut self, id: u32, request: LlmRequest) -> Option<LlmOutcome> {
        if !self.fits(&request) {
            return Some(LlmOutcome::TooLong);
        }
        self.outstanding += u64::from(request.input) + u64::from(request.output);
        self.waiting.push_back(Sequence { id, request, made: 0, first_ps: None, preemptions: 0 });
        None
    }

    /// Plays all steps that begin before `until_ps`, and tells `done` what becomes of each request.
    pub fn advance(&mut self, until_ps: u64, done: &mut impl FnMut(u32, LlmOutcome)) {
        while let Some(start) = self.next_start().filter(|&start| start < until_ps) {
            self.now_ps = start;
            self.give_up(done);
            if self.running() + self.waiting.len() > 0 {
                self.play(until_ps, done);
            }
        }
    }

    fn running(&self) -> usize {
        self.prompts.len() + self.decoding.count() as usize
    }

    /// Start of the next step; `None` where nothing is left to do.
    fn next_start(&self) -> Option<u64> {
        if self.running() > 0 {
            return Some(self.now_ps);
        }
        Some(self.waiting.front()?.request.arrival_ps.max(self.now_ps))
    }

    /// Gives up the requests at the head of the queue that have waited too long.
    fn give_up(&mut self, done: &mut impl FnMut(u32, LlmOutcome)) {
        while let Some(head) = self.waiting.front().filter(|head| self.now_ps > self.deadline(head)) {
            self.outstanding -= u64::from(head.request.input) + u64::from(head.request.output);
            done(head.id, LlmOutcome::TimedOut);
            self.waiting.pop_front();
        }
    }

    /// Last moment at which a request is not given up.
    fn deadline(&self, of: &Sequence) -> u64 {
        match of.first_ps {
            Some(_) => u64::MAX,
            None => of.request.arrival_ps.saturating_add(self.limits.timeout_ps),
        }
    }

    /// Plays one step, or as many equal ones as begin before `until_ps`.
    fn play(&mut self, until_ps: u64, done: &mut impl FnMut(u32, LlmOutcome)) {
        let preempted = self.make_room();
        let (prompt, pairs2) = self.fill(preempted);
        let (count, context) = (self.decoding.count(), self.decoding.context());
        let (steps, span) = if prompt > 0 {
            (1, self.step.mixed_ps(count, context, prompt, pairs2))
        } else if count > 0 {
            // The head of the queue is given up one picosecond after its deadline.
            let head = self.waiting.front().map_or(u64::MAX, |head| self.deadline(head).saturating_add(1));
            let until = until_ps.min(head.max(self.now_ps + 1));
            let most = self.decoding.steps_left().min(self.steps_in_memory());
            let steps = self.step.steps_within(count, context, until - self.now_ps, most);
            (steps, self.step.decode_ps(count, context, steps))
        } else {
            return;
        };
        self.free_blocks -= self.decoding.begun(steps);
        self.now_ps += span;
        self.decoding.advance(steps);
        while let Some((sequence, blocks)) = self.decoding.take_ended() {
            self.free_blocks += blocks;
            self.finish(&sequence, done);
        }
        self.end_prompts(done);
    }

    /// Steps for which the free blocks suffice, at least 1 because the next step has its blocks.
    fn steps_in_memory(&self) -> u64 {
        let (count, block) = (u64::from(self.decoding.count()), u64::from(self.limits.block));
        // Each sequence begins at most one block in `block` steps, and one more.
        let sure = (self.free_blocks / count.max(1)).saturating_sub(1) * block;
        if sure > 0 {
            sure
        } else {
            (1..=block).take_while(|&n| self.decoding.begun(n) <= self.free_blocks).count().max(1) as u64
        }
    }

    /// Takes memory from the requests that were admitted last until the next step has the blocks that it needs.
    fn make_room(&mut self) -> bool {
        let mut preempted = false;
        while self.decoding.begun_next() > self.free_blocks {
            let taken = match self.prompts.pop() {
                Some(prompt) => Some((prompt.sequence, self.decoding.blocks(prompt.sequence.prompt()))),
                None => self.decoding.take_last(),
            };
            let Some((mut sequence, blocks)) = taken else { break };
            self.free_blocks += blocks;
            sequence.preemptions += 1;
            self.waiting.push_front(sequence);
            preempted = true;
        }
        preempted
    }

    /// Fills the token budget with prompts; gives their tokens in this step and twice their pairs.
    fn fill(&mut self, preempted: bool) -> (u32, u64) {
        let mut budget = self.limits.tokens - self.decoding.count();
        let (mut tokens, mut pairs2) = (0, 0);
        let mut compute = |prompt: &mut Prompt, budget: &mut u32| {
            let chunk = (*budget).min(prompt.sequence.prompt() - prompt.done);
            pairs2 += u64::from(chunk) * (2 * u64::from(prompt.done) + u64::from(chunk));
            prompt.done += chunk;
            *budget -= chunk;
            tokens += chunk;
        };
        for prompt in &mut self.prompts {
            compute(prompt, &mut budget);
        }
        // A step that preempts admits no request.
        while budget > 0 && !preempted && self.running() < self.limits.sequences as usize {
            let Some(head) = self.waiting.front().filter(|head| head.request.arrival_ps <= self.now_ps) else { break };
            let blocks = self.decoding.blocks(head.prompt());
            if blocks + self.decoding.begun_next() > self.free_blocks {
                break;
            }
            self.free_blocks -= blocks;
            let mut prompt = Prompt { sequence: *head, done: head.cached(), admitted: self.admissions };
            self.waiting.pop_front();
            self.admissions += 1;
            compute(&mut prompt, &mut budget);
            self.prompts.push(prompt);
        }
        (tokens, pairs2)
    }

    /// Gives the prompts that are complete their next token, and lets them decode.
    fn end_prompts(&mut self, done: &mut impl FnMut(u32, LlmOutcome)) {
        for at in 0..self.prompts.len() {
            let Prompt { mut sequence, done: computed, admitted } = self.prompts[at];
            if computed < sequence.prompt() {
                continue;
            }
            let blocks = self.decoding.blocks(sequence.prompt());
            sequence.made += 1;
            sequence.first_ps.get_or_insert(self.now_ps);
            if sequence.made == sequence.request.output {
                self.free_blocks += blocks;
                self.finish(&sequence, done);
            } else {
                self.decoding.add(sequence, admitted);
            }
        }
        self.prompts.retain(|prompt| prompt.done < prompt.sequence.prompt());
    }

    fn finish(&mut self, sequence: &Sequence, done: &mut impl FnMut(u32, LlmOutcome)) {
        let LlmRequest { arrival_ps, input, output, .. } = sequence.request;
        self.outstanding -= u64::from(input) + u64::from(output);
        let first_ps = sequence.first_ps.unwrap_or(self.now_ps);
        let preemptions = sequence.preemptions;
        done(
            sequence.id,
            LlmOutcome::Served(ServedTokens { arrival_ps, first_ps, last_ps: self.now_ps, output, preemptions }),
        );
    }
}
