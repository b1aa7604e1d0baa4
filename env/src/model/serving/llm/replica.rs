//! A replica with continuous batching and chunked prefill, after the scheduler of vLLM (version 1).
//!
//! A step first gives every sequence that decodes one token. The rest of the token budget goes to the prompt that was
//! begun before, then to waiting requests in order of arrival, while sequences and memory allow. A prompt holds the
//! memory of all of its tokens from its admission on. Where a step needs a block and none is free, the request that
//! was admitted last loses its memory and waits at the head of the queue.
//!
//! A replica of a pool ([`super::pools`]) does a part of this work. A prefill replica holds the memory of a
//! prompt until `release` is called. A decode replica takes requests that were prefilled elsewhere.

use std::collections::VecDeque;

use super::handover::{KvLink, KvTransfer, OnTheWay};
use super::limits::{ReplicaLimits, ReplicaLimitsError};
use super::request::{LlmOutcome, LlmRequest, ServedTokens};
use super::sequences::{Sequence, Sequences};
use super::step::BatchTime;

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
    /// Whether a request that has made its last token holds its memory until [`Self::release`].
    holds: bool,
    /// Requests that were prefilled elsewhere, with memory here and their keys and values not here yet.
    on_the_way: OnTheWay,
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
            holds: false,
            on_the_way: OnTheWay::over(KvLink::FREE),
        })
    }

    /// The replica, as one that prefills for others: memory is held until [`Self::release`].
    pub(super) fn that_holds(self) -> Self {
        Self { holds: true, ..self }
    }

    /// The replica, as one that decodes requests that were prefilled elsewhere and come over `link`.
    pub(super) fn that_pulls(self, link: KvLink) -> Self {
        Self { on_the_way: OnTheWay::over(link), ..self }
    }

    /// Tokens of prompts and answers of the requests that are not finished.
    pub fn outstanding_tokens(&self) -> u64 {
        self.outstanding
    }

    /// Blocks of memory that are free.
    #[cfg(test)]
    pub(super) fn free_blocks(&self) -> u64 {
        self.free_blocks
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

    /// Adds a request of which another replica has made the first token at `first_ps`. Play the steps before that
    /// moment first. The request has at least one more token to make, and fits.
    pub(super) fn push_prefilled(&mut self, id: u32, request: LlmRequest, first_ps: u64) {
        self.outstanding += u64::from(request.input) + u64::from(request.output);
        self.waiting.push_back(Sequence { id, request, made: 1, first_ps: Some(first_ps), preemptions: 0 });
    }

    /// Gives back the memory of a prompt of `tokens` tokens that was held, at `at_ps`.
    pub(super) fn release(&mut self, tokens: u32, at_ps: u64) {
        self.free_blocks += self.decoding.blocks(tokens);
        if !self.works() {
            self.now_ps = self.now_ps.max(at_ps);
        }
    }

    /// Transfers to this replica that have begun since the last call.
    pub(super) fn take_begun(&mut self) -> impl Iterator<Item = KvTransfer> + '_ {
        self.on_the_way.take_begun()
    }

    /// Plays all steps that begin before `until_ps`, and tells `done` what becomes of each request.
    pub fn advance(&mut self, until_ps: u64, done: &mut impl FnMut(u32, LlmOutcome)) {
        loop {
            let start = self.next_start();
            if start >= until_ps {
                return;
            }
            self.now_ps = start;
            self.give_up(done);
            if self.running() + self.waiting.len() > 0 {
                self.play(until_ps, done);
            }
        }
    }

    /// Requests that hold memory, without those of which only the memory is held.
    fn running(&self) -> usize {
        self.prompts.len() + self.decoding.count() as usize + self.on_the_way.count()
    }

    /// Whether the next step has prompts or sequences from the steps before.
    fn works(&self) -> bool {
        !self.prompts.is_empty() || self.decoding.count() > 0
    }

    /// Start of the next step; `u64::MAX` where nothing is left to do.
    pub(super) fn next_start(&self) -> u64 {
        if self.works() {
            return self.now_ps;
        }
        let head = self.waiting.front().map_or(u64::MAX, |head| match self.has_room(head) {
            true => head.since_ps(),
            // Others hold the memory. The request waits for it until it is given up.
            false => self.deadline(head).saturating_add(1),
        });
        head.min(self.on_the_way.next_ps()).max(self.now_ps)
    }

    /// Moment before which no waiting request gets memory, at the latest the end of the steps that need no decision;
    /// `u64::MAX` where no request waits.
    pub(super) fn next_admission(&mut self) -> u64 {
        let Some(head) = self.waiting.front() else { return u64::MAX };
        if !self.works() {
            return self.next_start();
        }
        let decides = !self.prompts.is_empty()
            || self.has_room(head)
            || self.decoding.begun_next() > self.free_blocks
            || self.on_the_way.next_ps() <= self.now_ps;
        if decides { self.now_ps } else { self.now_ps + self.stretch(u64::MAX).1 }
    }

    /// Whether a waiting request may hold memory: with its next token, beside the blocks that the next step begins.
    fn has_room(&self, of: &Sequence) -> bool {
        self.running() < self.limits.sequences as usize
            && self.decoding.blocks(of.prompt()) + self.decoding.begun_next() <= self.free_blocks
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
        while let Some((sequence, admitted)) = self.on_the_way.take_arrived(self.now_ps) {
            self.decoding.add(sequence, admitted);
        }
        let preempted = self.make_room();
        let (prompt, pairs2) = self.fill(preempted);
        let (steps, span) = if prompt > 0 {
            (1, self.step.mixed_ps(self.decoding.count(), self.decoding.context(), prompt, pairs2))
        } else if self.decoding.count() > 0 {
            self.stretch(until_ps)
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

    /// Number and time of the equal steps that begin before `until_ps`, in which sequences decode and nothing else
    /// changes.
    fn stretch(&mut self, until_ps: u64) -> (u64, u64) {
        let (count, context) = (self.decoding.count(), self.decoding.context());
        // The head of the queue is given up one picosecond after its deadline.
        let head = self.waiting.front().map_or(u64::MAX, |head| self.deadline(head).saturating_add(1));
        let until = until_ps.min(head.min(self.on_the_way.next_ps()).max(self.now_ps + 1));
        let most = self.decoding.steps_left().min(self.steps_in_memory());
        let steps = self.step.steps_within(count, context, until - self.now_ps, most);
        (steps, self.step.decode_ps(count, context, steps))
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
        while budget > 0 && !preempted {
            let ready = |head: &&Sequence| head.since_ps() <= self.now_ps && self.has_room(head);
            let Some(&sequence) = self.waiting.front().filter(ready) else { break };
            self.waiting.pop_front();
            let admitted = self.admissions;
            self.admissions += 1;
            if sequence.is_elsewhere() {
                self.free_blocks -= self.decoding.blocks(sequence.request.input);
                // Where the transfer takes no time, the request makes a token in this step.
                if self.on_the_way.begin(sequence, admitted, self.now_ps) {
                    self.decoding.add(sequence, admitted);
                    budget -= 1;
                }
                continue;
            }
            self.free_blocks -= self.decoding.blocks(sequence.prompt());
            let mut prompt = Prompt { sequence, done: sequence.cached(), admitted };
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
                self.free_blocks += if self.holds { 0 } else { blocks };
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
