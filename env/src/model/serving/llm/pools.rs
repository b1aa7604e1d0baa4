//! Replicas that only prefill, and replicas that only decode (DistServe: Zhong et al., OSDI 2024; Splitwise: Patel et
//! al., ISCA 2024).
//!
//! 1. A request goes to the prefill replica with the fewest outstanding tokens. That replica computes the prompt in
//!    chunks and makes the first token, at which the time to the first token ends.
//! 2. At that moment the request goes to the decode replica with the fewest outstanding tokens, and waits there in
//!    order until that replica has memory for it. Until the transfer ends, the prompt holds memory on the prefill
//!    replica, too. So decode replicas without memory stop the prefill replicas in the end.
//! 3. The keys and values of the whole prompt move, and the request decodes from the next step on. Both the wait and
//!    the transfer count in the time of a further token.
//!
//! Where a decode replica preempts a request, that replica computes the prompt and the answer so far again. So does
//! a decode replica of vLLM, and nothing moves twice.
//!
//! The replicas are those of [`super::replica`]. Those of each pool depend on those of the other, so events are played
//! in order of time, and a decode replica tells how long it surely gives no memory to a request that waits
//! ([`LlmReplica::next_admission`]). `env/tests/llm_pools.rs` compares with pools that are played step by step.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::handover::KvLink;
use super::limits::{ReplicaLimits, ReplicaLimitsError};
use super::replica::LlmReplica;
use super::request::{LlmOutcome, LlmRequest};
use super::router::Router;
use super::step::BatchTime;

/// Equal replicas of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaPool {
    /// Number of replicas, at least 1.
    pub count: u32,
    /// Limits of a replica.
    pub limits: ReplicaLimits,
    /// Time of a step of a replica.
    pub step: BatchTime,
}

/// A replay on pools.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolReplay {
    /// Outcome of each request.
    pub outcomes: Vec<LlmOutcome>,
    /// Time of each transfer from the first token until the keys and values are on the decode replica, picoseconds, in
    /// the order in which the transfers began.
    pub handover_ps: Vec<u64>,
}

/// Pools of replicas that divide prefill and decode.
#[derive(Clone, Debug)]
pub struct LlmPools {
    prefill: Router,
    decode: Vec<DecodeReplica>,
}

#[derive(Clone, Debug)]
struct DecodeReplica {
    replica: LlmReplica,
    /// Moment before which no request that waits gets memory.
    next_ps: u64,
}

/// Events at one moment happen in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PoolEvent {
    /// A request arrives.
    Arrival,
    /// A first token is made.
    FirstToken,
    /// A decode replica may give memory to a request.
    Admission(usize),
    /// A transfer ends.
    Release,
    /// A prefill replica begins a step.
    Prefill(usize),
}

impl LlmPools {
    /// Idle pools that keep no prefixes.
    ///
    /// # Errors
    /// As [`ReplicaLimits::check`] for each pool, and where a pool has no replica.
    pub fn new(prefill: &ReplicaPool, decode: &ReplicaPool, link: KvLink) -> Result<Self, ReplicaLimitsError> {
        let router = |pool: &ReplicaPool, name| Router::new(pool.count, pool.limits, &pool.step, name);
        let mut prefill = router(prefill, "the number of replicas that prefill")?;
        let decode = router(decode, "the number of replicas that decode")?;
        prefill.replicas = prefill.replicas.into_iter().map(LlmReplica::that_holds).collect();
        let further = |replica: LlmReplica| DecodeReplica { replica: replica.that_pulls(link), next_ps: u64::MAX };
        Ok(Self { prefill, decode: decode.replicas.into_iter().map(further).collect() })
    }

    /// The pools with prefill replicas that each keep up to `most` blocks of `block` tokens of the prompts that they
    /// saw, in memory of their own.
    pub fn with_prefixes(mut self, block: u32, most: usize) -> Self {
        self.prefill.keep_prefixes(block, most);
        self
    }

    /// Tokens of prompts that were not computed, because their prefill replica had kept them.
    pub fn reused_tokens(&self) -> u64 {
        self.prefill.reused_tokens()
    }

    /// Plays requests in order of arrival, and gives what became of each. `blocks` names the blocks of their prompts;
    /// it may be empty. A timeout is that of the prefill replicas, because a request waits for its first token there.
    pub fn replay(&mut self, requests: &[LlmRequest], blocks: &[Vec<u64>]) -> PoolReplay {
        let mut course = PoolCourse::new(requests);
        while let Some((now_ps, event)) = self.next(&course) {
            match event {
                PoolEvent::Arrival => self.arrive(&mut course, blocks),
                PoolEvent::FirstToken => self.hand_over(&mut course, now_ps),
                PoolEvent::Admission(at) => self.decode[at].advance(now_ps + 1, &mut course),
                PoolEvent::Release => {
                    if let Some(Reverse((_, id))) = course.releases.pop() {
                        let home = course.homes[id as usize] as usize;
                        self.prefill.replicas[home].release(requests[id as usize].input, now_ps);
                    }
                }
                PoolEvent::Prefill(at) => course.prefill(&mut self.prefill.replicas[at], now_ps),
            }
        }
        self.decode.iter_mut().for_each(|decode| decode.advance(u64::MAX, &mut course));
        PoolReplay { outcomes: course.outcomes, handover_ps: course.handover_ps }
    }

    /// The next event and its moment; `None` where only requests are left that decode.
    fn next(&self, course: &PoolCourse<'_>) -> Option<(u64, PoolEvent)> {
        let time = |heap: &BinaryHeap<Reverse<(u64, u32)>>| heap.peek().map(|Reverse((at_ps, _))| *at_ps);
        let known = [
            (course.requests.get(course.arrived).map(|request| request.arrival_ps), PoolEvent::Arrival),
            (time(&course.first_tokens), PoolEvent::FirstToken),
            (time(&course.releases), PoolEvent::Release),
        ];
        let known = known.into_iter().filter_map(|(at_ps, event)| Some((at_ps?, event)));
        let admissions = self.decode.iter().enumerate().map(|(at, one)| (one.next_ps, PoolEvent::Admission(at)));
        let prefill = self.prefill.replicas.iter().enumerate();
        let steps = prefill.map(|(at, one)| (one.next_start(), PoolEvent::Prefill(at)));
        known.chain(admissions).chain(steps).min().filter(|(at_ps, _)| *at_ps < u64::MAX)
    }

    /// Sends the next request to a prefill replica.
    fn arrive(&mut self, course: &mut PoolCourse<'_>, blocks: &[Vec<u64>]) {
        let id = course.arrived;
        let request = course.requests[id];
        course.arrived += 1;
        // The prompt and the first token are all that a prefill replica makes.
        let prompt = LlmRequest { output: 1, ..request };
        let home = self.prefill.least();
        let fits = self.prefill.replicas[home].fits(&prompt);
        if !(fits && self.decode.iter().all(|decode| decode.replica.fits(&request))) {
            course.outcomes[id] = LlmOutcome::TooLong;
            return;
        }
        course.homes[id] = home as u32;
        // The answer of a request that fits comes later.
        self.prefill.send(home, id as u32, prompt, blocks.get(id));
    }

    /// Sends the request of which the first token is made to a decode replica.
    fn hand_over(&mut self, course: &mut PoolCourse<'_>, now_ps: u64) {
        let Some(Reverse((_, id))) = course.first_tokens.pop() else { return };
        self.decode.iter_mut().for_each(|decode| decode.advance(now_ps, course));
        let least = self.decode.iter_mut().min_by_key(|decode| decode.replica.outstanding_tokens());
        if let Some(decode) = least {
            decode.replica.push_prefilled(id, course.requests[id as usize], now_ps);
            decode.next_ps = decode.replica.next_admission();
        }
    }
}

impl DecodeReplica {
    /// Plays all steps that begin before `until_ps`.
    fn advance(&mut self, until_ps: u64, course: &mut PoolCourse<'_>) {
        let outcomes = &mut course.outcomes;
        self.replica.advance(until_ps, &mut |id, outcome| outcomes[id as usize] = outcome);
        for transfer in self.replica.take_begun() {
            course.releases.push(Reverse((transfer.end_ps, transfer.id)));
            course.handover_ps.push(transfer.handover_ps);
        }
        self.next_ps = self.replica.next_admission();
    }
}

/// A replay under way.
struct PoolCourse<'a> {
    requests: &'a [LlmRequest],
    /// Number of requests that have arrived.
    arrived: usize,
    /// Prefill replica of each request.
    homes: Vec<u32>,
    /// First tokens to come, by moment and request, of steps that have begun.
    first_tokens: BinaryHeap<Reverse<(u64, u32)>>,
    /// Ends to come of the memory of prompts on prefill replicas.
    releases: BinaryHeap<Reverse<(u64, u32)>>,
    outcomes: Vec<LlmOutcome>,
    handover_ps: Vec<u64>,
}

impl<'a> PoolCourse<'a> {
    fn new(requests: &'a [LlmRequest]) -> Self {
        Self {
            requests,
            arrived: 0,
            homes: vec![0; requests.len()],
            first_tokens: BinaryHeap::new(),
            releases: BinaryHeap::new(),
            outcomes: vec![LlmOutcome::TimedOut; requests.len()],
            handover_ps: Vec::with_capacity(requests.len()),
        }
    }

    /// Plays the step of a prefill replica that begins now.
    fn prefill(&mut self, replica: &mut LlmReplica, now_ps: u64) {
        let Self { requests, first_tokens, releases, outcomes, .. } = self;
        replica.advance(now_ps + 1, &mut |id, outcome| match outcome {
            LlmOutcome::Served(served) if requests[id as usize].output > 1 => {
                first_tokens.push(Reverse((served.first_ps, id)));
            }
            LlmOutcome::Served(served) => {
                // An answer of one token is complete, and nothing moves.
                releases.push(Reverse((served.first_ps, id)));
                outcomes[id as usize] = outcome;
            }
            LlmOutcome::TimedOut | LlmOutcome::TooLong => outcomes[id as usize] = outcome,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::serving::llm::StepCosts;

    #[test]
    fn all_memory_is_free_again_after_a_replay() {
        let costs = StepCosts { fixed_ms: 5.0, prompt_ms: 0.05, ..StepCosts::default() };
        let limits = ReplicaLimits { sequences: 16, tokens: 256, kv_tokens: 4000, block: 16, timeout_ps: u64::MAX };
        let pool = |count| ReplicaPool { count, limits, step: BatchTime::new(&costs, limits.tokens).unwrap() };
        let link = KvLink { bytes_per_token: 1000, bytes_per_sec: 10_000_000 };
        let mut pools = LlmPools::new(&pool(2), &pool(2), link).unwrap();
        let request = |at: u64| LlmRequest {
            arrival_ps: at * 20_000_000_000,
            input: 1 + (at * 977 % 1500) as u32,
            cached: 0,
            output: 1 + (at * 131 % 300) as u32,
        };
        let requests: Vec<LlmRequest> = (0..500).map(request).collect();
        let replay = pools.replay(&requests, &[]);
        assert!(replay.outcomes.iter().all(|outcome| matches!(outcome, LlmOutcome::Served(_))));
        for replica in pools.prefill.replicas.iter().chain(pools.decode.iter().map(|one| &one.replica)) {
            assert_eq!((replica.outstanding_tokens(), replica.free_blocks()), (0, 250));
        }
    }
}
