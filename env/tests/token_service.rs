//! Services of language models: the table of a replica against replays, and its place in a fleet.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader")]

use goodput_env::model::serving::llm::request::SECOND_PS;
use goodput_env::model::serving::llm::{
    BatchTime, LlmOutcome, LlmRequest, LlmService, MeasureError, ReadyFrom, ReplicaLimits, ServedTokens, StepCosts,
    TokenLoad, TokenObjectives, TokenServer, measure,
};
use goodput_env::model::serving::{Demand, Fleet};
use goodput_env::seed::{Stream, keyed};
use goodput_env::service::ServingProfile;

const OBJECTIVES: TokenObjectives = TokenObjectives { ttft_secs: 0.5, tpot_secs: 0.03, target: 0.95 };

/// Prompts of 200 to 1,200 tokens and answers of 20 to 220.
fn server() -> TokenServer {
    let costs = StepCosts {
        fixed_ms: 10.0,
        sequence_ms: 0.05,
        context_ms: 1e-4,
        prompt_ms: 0.05,
        pair_ms: 1e-6,
        ..StepCosts::default()
    };
    let limits = ReplicaLimits { sequences: 128, tokens: 2048, kv_tokens: 200_000, block: 16, timeout_ps: u64::MAX };
    let lengths = (0..101).map(|at| (200 + 10 * at, 20 + 2 * (37 * at % 101))).collect();
    TokenServer { load: TokenLoad { lengths, arrival_cv2: 1.0 }, limits, step: BatchTime::new(&costs, 2048).unwrap() }
}

fn requests(server: &TokenServer, pieces: &[(f64, f64)], seed: u64) -> Vec<LlmRequest> {
    let mut random = keyed(seed, Stream::Requests, 0);
    let (mut requests, mut from) = (Vec::new(), 0.0);
    for (per_sec, secs) in pieces {
        let span = [from, from + secs].map(|at| (at * SECOND_PS as f64) as u64);
        server.load.extend(&mut requests, *per_sec, span.into(), &mut random);
        from += secs;
    }
    requests
}

/// Shares with a late first token, late further tokens, and either.
fn late(outcomes: &[LlmOutcome]) -> [f64; 3] {
    let served: Vec<&ServedTokens> = outcomes
        .iter()
        .filter_map(|outcome| if let LlmOutcome::Served(served) = outcome { Some(served) } else { None })
        .collect();
    assert_eq!(served.len(), outcomes.len());
    let ttft = |one: &ServedTokens| one.ttft_secs() > OBJECTIVES.ttft_secs;
    let tpot = |one: &ServedTokens| one.tpot_secs().is_some_and(|secs| secs > OBJECTIVES.tpot_secs);
    let share =
        |is: &dyn Fn(&ServedTokens) -> bool| served.iter().filter(|one| is(one)).count() as f64 / served.len() as f64;
    [share(&ttft), share(&tpot), share(&|one| ttft(one) || tpot(one))]
}

/// Distance between two loads. Late tokens rise from few to most within a tenth of the load, so a share is compared
/// with those of the table a little below and above its load.
const NEAR: f64 = 0.05;

/// Numbers of replicas and loads between those that were measured, and other draws.
#[test]
fn shares_of_the_table_are_those_of_a_replay() {
    let server = server();
    let profile = ServingProfile::Tokens(Box::new(measure(&server, &OBJECTIVES).unwrap()));
    for count in [1, 2, 8, 16] {
        for load in [0.25, 0.525, 0.725, 0.825] {
            let rate = load * profile.throughput() * f64::from(count);
            let secs = 20_000.0 / rate;
            let played = requests(&server, &[(rate, secs)], 5);
            let outcomes = LlmService::new(count, server.limits, &server.step).unwrap().replay(&played, &[]);
            let replayed = late(&outcomes);
            let all = (rate * secs * 1e6) as u64;
            let table = |load: f64| {
                let rate = load * profile.throughput() * f64::from(count);
                let demand = Demand { rate, arrival_cv2: 1.0, work_cv2: 0.0, slo_secs: OBJECTIVES.ttft_secs };
                let found = Fleet::of(&profile, count).interval(&demand, 0, all, secs);
                assert_eq!(found.latencies.iter().sum::<u64>(), all);
                [found.late.ttft, found.late.tpot, found.violated].map(|late| late as f64 / all as f64)
            };
            let (less, more) = (table(load - NEAR), table(load + NEAR));
            println!("{count:2} replicas at {load}: table {:.4?}, replay {replayed:.4?}", table(load));
            for ((less, more), replayed) in less.into_iter().zip(more).zip(replayed) {
                assert!((less - 0.05..=more + 0.05).contains(&replayed), "{less:.4} to {more:.4}: {replayed:.4}");
            }
        }
    }
}

/// A burst above capacity, and a replica that is added in the middle of it.
#[test]
fn a_backlog_of_the_table_is_that_of_a_replay() {
    let server = server();
    let profile = ServingProfile::Tokens(Box::new(measure(&server, &OBJECTIVES).unwrap()));
    let capacity = 2.0 * profile.throughput();
    let pieces = [(0.5 * capacity, 300.0), (1.4 * capacity, 120.0), (0.5 * capacity, 600.0)];
    let played = requests(&server, &pieces, 7);
    let course = [ReadyFrom { at_ps: 0, replicas: 2 }, ReadyFrom { at_ps: 420 * SECOND_PS, replicas: 3 }];
    let replayed = late(&server.replay(&played, &course).unwrap());
    let (mut waiting, mut violated, mut all) = (0, 0, 0);
    for ((rate, secs), count) in pieces.into_iter().zip([2, 2, 3]) {
        let demand = Demand { rate, arrival_cv2: 1.0, work_cv2: 0.0, slo_secs: OBJECTIVES.ttft_secs };
        let requests = (rate * secs * 1e6) as u64;
        let found = Fleet::of(&profile, count).interval(&demand, waiting, requests, secs);
        (waiting, violated, all) = (found.waiting, violated + found.violated, all + requests);
    }
    let table = violated as f64 / all as f64;
    println!("table {table:.4}, replay {replayed:.4?}");
    assert_eq!(waiting, 0);
    assert!((table - replayed[2]).abs() < 0.08, "{table} {replayed:?}");
}

#[test]
fn requests_without_a_replica_wait_for_the_first_one() {
    let server = server();
    let played = requests(&server, &[(5.0, 10.0)], 3);
    let course = [ReadyFrom { at_ps: 60 * SECOND_PS, replicas: 1 }];
    let outcomes = server.replay(&played, &course).unwrap();
    let first = |outcome: &LlmOutcome| matches!(outcome, LlmOutcome::Served(one) if one.first_ps > 60 * SECOND_PS);
    assert!(outcomes.iter().all(first));
    // Ten replicas, of which nine go at once: what they have is served.
    let course = [ReadyFrom { at_ps: 0, replicas: 10 }, ReadyFrom { at_ps: 2 * SECOND_PS, replicas: 1 }];
    let outcomes = server.replay(&played, &course).unwrap();
    assert!(outcomes.iter().all(|outcome| matches!(outcome, LlmOutcome::Served(_))));
}

#[test]
fn what_an_idle_replica_cannot_keep_is_refused() {
    let server = server();
    let short = TokenObjectives { ttft_secs: 0.01, ..OBJECTIVES };
    assert!(matches!(measure(&server, &short), Err(MeasureError::Objective { name: "ttft", .. })));
    let short = TokenObjectives { tpot_secs: 0.009, ..OBJECTIVES };
    assert!(matches!(measure(&server, &short), Err(MeasureError::Objective { name: "tpot", .. })));
    let tight = TokenServer { limits: ReplicaLimits { kv_tokens: 500, ..server.limits }, ..server };
    assert!(matches!(measure(&tight, &OBJECTIVES), Err(MeasureError::TooLong { .. })));
}
