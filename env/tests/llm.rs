//! Replicas of language models against a replica that is played step by step, and against sums by hand.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_env::model::serving::llm::{
    BatchTime, ColdStart, LlmOutcome, LlmRequest, LlmService, ReplicaLimits, ScaleRule, StepCosts, replay_scaled,
};

use crate::support::llm::{MILLI, ROOMY, requests, step};
use crate::support::llm_steps;

fn replay(limits: ReplicaLimits, requests: &[LlmRequest]) -> Vec<LlmOutcome> {
    LlmService::new(1, limits, &step()).unwrap().replay(requests, &[])
}

#[test]
fn steps_in_closed_form_end_when_single_steps_end() {
    let tight = ReplicaLimits { kv_tokens: 6000, ..ROOMY };
    let hasty = ReplicaLimits { timeout_ps: 900 * MILLI, kv_tokens: 20_000, ..ROOMY };
    let narrow = ReplicaLimits { sequences: 4, tokens: 4, block: 7, kv_tokens: 10_000, ..ROOMY };
    let (mut preempted, mut late) = (0, 0);
    for (seed, limits) in (1..).zip([ROOMY, tight, hasty, narrow]) {
        for gap_ms in [5, 60, 400] {
            let requests = requests(300, gap_ms, seed);
            let found = replay(limits, &requests);
            for (at, (found, expected)) in found.iter().zip(llm_steps::replay(limits, &step(), &requests)).enumerate() {
                assert_eq!(*found, expected, "request {at} of {limits:?} at {gap_ms} ms");
                match found {
                    LlmOutcome::Served(served) => preempted += served.preemptions,
                    LlmOutcome::TimedOut => late += 1,
                    LlmOutcome::TooLong => {}
                }
            }
        }
    }
    assert!(preempted > 100 && late > 100, "{preempted} preemptions and {late} timeouts are too few to compare");
}

#[test]
fn a_request_alone_takes_the_sum_of_its_steps() {
    let costs = StepCosts { fixed_ms: 10.0, context_ms: 0.001, prompt_ms: 0.1, ..StepCosts::default() };
    let step = BatchTime::new(&costs, 2048).unwrap();
    let request = LlmRequest { arrival_ps: 5 * MILLI, input: 700, cached: 0, output: 3 };
    let outcome = LlmService::new(1, ROOMY, &step).unwrap().replay(&[request], &[]);
    let [LlmOutcome::Served(served)] = outcome[..] else { panic!("{outcome:?}") };
    // Chunks of 512 and 188 tokens: 2 x 10 ms + 700 x 0.1 ms. Then two steps over 701 and 702 tokens of context.
    assert_eq!(served.first_ps - served.arrival_ps, 90 * MILLI);
    assert_eq!(served.last_ps - served.first_ps, 20 * MILLI + 1403 * MILLI / 1000);
    assert_eq!(served.tpot_secs(), Some(0.010_701_5));
}

#[test]
fn a_router_sends_to_the_fewest_outstanding_tokens() {
    let at = |arrival_ms: u64, input| LlmRequest { arrival_ps: arrival_ms * MILLI, input, cached: 0, output: 50 };
    let requests = [at(0, 400), at(1, 400), at(2, 400)];
    let mut alone = LlmService::new(3, ROOMY, &step()).unwrap();
    let outcomes = alone.replay(&requests, &[]);
    let firsts = outcomes.iter().map(|outcome| match outcome {
        LlmOutcome::Served(served) => served.first_ps - served.arrival_ps,
        other => panic!("{other:?}"),
    });
    let firsts: Vec<u64> = firsts.collect();
    assert!(firsts.windows(2).all(|pair| pair[0] == pair[1]), "each request has a replica of its own: {firsts:?}");
}

#[test]
fn a_prompt_computes_what_the_prefixes_of_its_replica_lack() {
    let at = |arrival_ms: u64| LlmRequest { arrival_ps: arrival_ms * MILLI, input: 1200, cached: 0, output: 2 };
    let mut service = LlmService::new(1, ROOMY, &step()).unwrap().with_prefixes(512, 4);
    let blocks = [vec![1, 2, 3], vec![1, 2, 4], vec![5, 6, 7], vec![1, 2, 4]];
    service.replay(&[at(0), at(1000), at(2000), at(3000)], &blocks);
    // The second shares two blocks with the first. The third leaves one block of the others: the start, used last.
    assert_eq!(service.reused_tokens(), 1024 + 512);
}

#[test]
fn a_request_that_is_refused_leaves_no_prefix() {
    let limits = ReplicaLimits { kv_tokens: 2000, ..ROOMY };
    let at = |arrival_ms: u64, output| LlmRequest { arrival_ps: arrival_ms * MILLI, input: 1200, cached: 0, output };
    let mut service = LlmService::new(1, limits, &step()).unwrap().with_prefixes(512, 4);
    let blocks = [vec![1, 2, 3], vec![1, 2, 3], vec![1, 2, 3], vec![1, 2, 3]];
    service.replay(&[at(0, 1000), at(1000, 2), at(2000, 1000), at(3000, 2)], &blocks);
    // The first and the third are too long: the second finds nothing, and the third counts for nothing.
    assert_eq!(service.reused_tokens(), 1199);
}

#[test]
fn a_request_that_can_never_fit_is_refused() {
    let limits = ReplicaLimits { kv_tokens: 1000, ..ROOMY };
    let request = |input| LlmRequest { arrival_ps: 0, input, cached: 0, output: 100 };
    let outcomes = replay(limits, &[request(901), request(800)]);
    assert!(matches!(outcomes[..], [LlmOutcome::TooLong, LlmOutcome::Served(_)]), "{outcomes:?}");
    let none = ReplicaLimits { sequences: 600, ..limits };
    assert!(LlmService::new(1, none, &step()).unwrap_err().to_string().contains("token budget of a step is 512"));
}

#[test]
fn a_fixed_number_of_replicas_is_a_rule_that_never_changes() {
    let requests = requests(400, 20, 9);
    let rule = ScaleRule { least: 3, most: 3, tokens: 1, period_ps: 1000 * MILLI, window: 1, cold_ps: 0 };
    let scaled = replay_scaled(&requests, ROOMY, &step(), rule).unwrap();
    assert_eq!(scaled.outcomes, LlmService::new(3, ROOMY, &step()).unwrap().replay(&requests, &[]));
    assert_eq!(scaled.starts, 0);
    let last = scaled.outcomes.iter().map(|outcome| match outcome {
        LlmOutcome::Served(served) => served.last_ps,
        other => panic!("{other:?}"),
    });
    let periods = last.max().unwrap().div_ceil(1000 * MILLI);
    assert!((scaled.replica_hours * 3600.0 / 3.0 - periods as f64).abs() <= 1.0, "{}", scaled.replica_hours);
}

#[test]
fn a_burst_starts_replicas_that_serve_after_their_cold_start() {
    let burst: Vec<LlmRequest> = requests(600, 15, 4);
    let rule = |cold_secs: u64| ScaleRule {
        least: 1,
        most: 8,
        tokens: 20_000,
        period_ps: 1000 * MILLI,
        window: 20,
        cold_ps: cold_secs * 1000 * MILLI,
    };
    let mean = |cold_secs| {
        let scaled = replay_scaled(&burst, ROOMY, &step(), rule(cold_secs)).unwrap();
        let times = scaled.outcomes.iter().map(|outcome| match outcome {
            LlmOutcome::Served(served) => served.ttft_secs(),
            other => panic!("{other:?}"),
        });
        assert!(scaled.starts >= 1, "{} cold starts", scaled.starts);
        times.sum::<f64>() / burst.len() as f64
    };
    let [warm, cold, frozen] = [0, 4, 600].map(mean);
    assert!(warm < cold && cold < frozen, "{warm} {cold} {frozen}");
    let cold =
        ColdStart { schedule_secs: 5.0, pull_secs: 60.0, weights_gb: 70.0, load_gb_per_sec: 2.0, warm_secs: 30.0 };
    assert_eq!(cold.secs(), 130.0);
}
