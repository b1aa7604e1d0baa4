//! Pools of replicas that divide prefill and decode, against pools that are played step by step.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_env::model::serving::llm::{
    KvLink, LlmOutcome, LlmPools, LlmRequest, LlmService, PoolReplay, ReplicaLimits, ReplicaPool, ServedTokens,
};

use crate::support::llm::{MILLI, ROOMY, requests, step};
use crate::support::llm_pools;

/// A prompt of 1000 tokens moves in 20 ms.
const SLOW: KvLink = KvLink { bytes_per_token: 20_000, bytes_per_sec: 1_000_000_000 };

fn pool(count: u32, limits: ReplicaLimits) -> ReplicaPool {
    ReplicaPool { count, limits, step: step() }
}

fn served(outcome: &LlmOutcome) -> ServedTokens {
    match outcome {
        LlmOutcome::Served(served) => *served,
        other => panic!("{other:?}"),
    }
}

fn replay(prefill: &ReplicaPool, decode: &ReplicaPool, link: KvLink, requests: &[LlmRequest]) -> PoolReplay {
    LlmPools::new(prefill, decode, link).unwrap().replay(requests, &[])
}

#[test]
fn pools_end_when_pools_of_single_steps_end() {
    let tight = ReplicaLimits { kv_tokens: 6000, ..ROOMY };
    let hasty = ReplicaLimits { timeout_ps: 900 * MILLI, kv_tokens: 8000, ..ROOMY };
    let narrow = ReplicaLimits { sequences: 4, tokens: 4, block: 7, kv_tokens: 3000, ..ROOMY };
    let (mut preempted, mut late) = (0, 0);
    let cases = [(ROOMY, ROOMY), (ROOMY, tight), (tight, tight), (hasty, tight), (narrow, narrow), (tight, ROOMY)];
    for (seed, (first, further)) in (1..).zip(cases) {
        for (counts, gap_ms) in [((1, 1), 5), ((2, 3), 5), ((1, 2), 60), ((2, 1), 60), ((1, 1), 400)] {
            for link in [KvLink::FREE, SLOW] {
                let (prefill, decode) = (pool(counts.0, first), pool(counts.1, further));
                let requests = requests(200, gap_ms, seed);
                let found = replay(&prefill, &decode, link, &requests).outcomes;
                let expected = llm_pools::replay(&prefill, &decode, link, &requests);
                for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
                    assert_eq!(*found, expected, "request {at} of case {seed}, {counts:?} at {gap_ms} ms, {link:?}");
                    match found {
                        LlmOutcome::Served(served) => preempted += served.preemptions,
                        LlmOutcome::TimedOut => late += 1,
                        LlmOutcome::TooLong => {}
                    }
                }
            }
        }
    }
    assert!(preempted > 100 && late > 100, "{preempted} preemptions and {late} timeouts are too few to compare");
}

#[test]
fn a_request_alone_takes_what_one_replica_takes_where_nothing_moves() {
    for (input, output) in [(1, 2), (700, 1), (700, 3), (512, 40), (1499, 399), (16, 17)] {
        let request = LlmRequest { arrival_ps: 5 * MILLI, input, cached: 0, output };
        let one = LlmService::new(1, ROOMY, &step()).unwrap().replay(&[request], &[]);
        let divided = replay(&pool(3, ROOMY), &pool(2, ROOMY), KvLink::FREE, &[request]);
        assert_eq!(divided.outcomes, one, "{input} and {output} tokens");
        let moved = served(&replay(&pool(1, ROOMY), &pool(1, ROOMY), SLOW, &[request]).outcomes[0]);
        let one = served(&one[0]);
        let transfer = if output > 1 { SLOW.transfer_ps(input) } else { 0 };
        assert_eq!((moved.first_ps, moved.last_ps), (one.first_ps, one.last_ps + transfer));
    }
}

#[test]
fn no_request_is_lost_or_moved_twice() {
    let tight = ReplicaLimits { kv_tokens: 5000, timeout_ps: 3000 * MILLI, ..ROOMY };
    for seed in 1..20 {
        let requests = requests(300, 20, seed);
        let found = replay(&pool(2, tight), &pool(2, tight), SLOW, &requests);
        let mut moved = 0;
        for (outcome, request) in found.outcomes.iter().zip(&requests) {
            match outcome {
                LlmOutcome::Served(served) => {
                    assert_eq!((served.arrival_ps, served.output), (request.arrival_ps, request.output));
                    assert!(request.arrival_ps < served.first_ps && served.first_ps <= served.last_ps);
                    moved += usize::from(request.output > 1);
                }
                LlmOutcome::TimedOut => {}
                LlmOutcome::TooLong => panic!("each request fits"),
            }
        }
        assert_eq!(found.handover_ps.len(), moved);
        assert_eq!(found, replay(&pool(2, tight), &pool(2, tight), SLOW, &requests), "equal inputs give equal bits");
    }
}

#[test]
fn a_decode_pool_without_memory_stops_the_prefill_pool() {
    let small = ReplicaLimits { kv_tokens: 2048, ..ROOMY };
    let request = |at: u64| LlmRequest { arrival_ps: at * MILLI, input: 1000, cached: 0, output: 500 };
    let requests: Vec<LlmRequest> = (0..8).map(request).collect();
    let times = |further| {
        let found = replay(&pool(1, small), &pool(1, further), KvLink::FREE, &requests);
        let ttft = found.outcomes.iter().map(|outcome| served(outcome).ttft_secs()).fold(0.0, f64::max);
        (ttft, found.handover_ps.into_iter().max().unwrap() as f64 / 1e12)
    };
    let ((open, moved), (stopped, waited)) = (times(ROOMY), times(small));
    assert!(open < 1.0 && moved < 0.1, "{open} {moved}");
    assert!(stopped > 5.0 && waited > 1.0, "{stopped} {waited}");
}

#[test]
fn a_prefill_replica_computes_what_its_prefixes_lack() {
    let at = |arrival_ms: u64| LlmRequest { arrival_ps: arrival_ms * MILLI, input: 1200, cached: 0, output: 2 };
    let mut pools = LlmPools::new(&pool(1, ROOMY), &pool(2, ROOMY), SLOW).unwrap().with_prefixes(512, 4);
    let found = pools.replay(&[at(0), at(1000)], &[vec![1, 2, 3], vec![1, 2, 4]]);
    assert_eq!(pools.reused_tokens(), 1024);
    // The decode replica keeps nothing, so that the whole prompt moves.
    assert_eq!(found.handover_ps, [SLOW.transfer_ps(1200); 2]);
}

#[test]
fn pools_without_replicas_are_named() {
    let none = LlmPools::new(&pool(0, ROOMY), &pool(1, ROOMY), SLOW).unwrap_err();
    assert!(none.to_string().contains("replicas that prefill is 0"), "{none}");
    let none = LlmPools::new(&pool(1, ROOMY), &pool(0, ROOMY), SLOW).unwrap_err();
    assert!(none.to_string().contains("replicas that decode is 0"), "{none}");
}
