//! Language models: the formats of traces, the fit to measured times, and the shipped replicas.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::PathBuf;

use goodput_datasets::fit::llm::TwoStages;
use goodput_datasets::fit::llm::check::{Errors, Unseen, median, unseen};
use goodput_datasets::import::{llm_requests, silicon};
use goodput_datasets::llm::{LlmFacts, ReplicaCatalog};
use goodput_env::model::serving::llm::{BatchTime, LlmOutcome, LlmService, ReplicaLimits};

use crate::shared::shared;

fn written(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, text).unwrap();
    (dir, path)
}

#[test]
fn each_format_of_requests_gives_arrivals_and_lengths() {
    let mooncake = "{\"timestamp\": 3000, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [0, 7]}\n\
                    {\"timestamp\": 1000, \"input_length\": 10, \"output_length\": 2, \"hash_ids\": [0]}\n";
    let vllm = "{\"request_id\": \"a\", \"input_toks\": 10, \"output_toks\": 2, \"queued_ts\": 5.0, \
                \"first_token_ts\": 5.25, \"last_token_ts\": 6.0}\n{\"input_toks\": 600, \"output_toks\": 5, \
                \"queued_ts\": 7.0, \"first_token_ts\": 7.5, \"last_token_ts\": 9.0}\n";
    let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,10,2\n\
                 2023-11-16 18:17:05.9799600,600,5\n";
    let own = "arrival_secs,input,output\n1.5,10,2\n3.5,600,5\n";
    for (name, text) in [("a.jsonl", mooncake), ("b.jsonl", vllm), ("c.csv", azure), ("d.csv", own)] {
        let (_dir, path) = written(name, text);
        let (trace, report) = llm_requests::read(&path).unwrap();
        let rows: Vec<_> = trace.requests.iter().map(|one| (one.arrival_ps, one.input, one.output)).collect();
        assert_eq!((report.kept, report.refused.count), (2, 0), "{name}");
        assert_eq!(rows, [(0, 10, 2), (2_000_000_000_000, 600, 5)], "{name}");
        let blocks: &[Vec<u64>] = if name == "a.jsonl" { &[vec![0], vec![0, 7]] } else { &[] };
        assert_eq!(trace.blocks, blocks, "{name}");
        assert_eq!(trace.measured.len(), if name == "b.jsonl" { 2 } else { 0 });
    }
}

#[test]
fn requests_that_cannot_be_are_refused_with_their_lines() {
    let (_dir, path) = written("x.csv", "arrival_secs,input,output\n0,10,2\n1,0,5\n-1,4,4\n");
    let (_, report) = llm_requests::read(&path).unwrap();
    let lines: Vec<u64> = report.refused.examples.iter().map(|(line, _)| *line).collect();
    assert_eq!((report.kept, lines), (1, vec![3, 4]));
    let (_dir, path) = written("y.csv", "a,b\n1,2\n");
    assert!(llm_requests::read(&path).unwrap_err().to_string().contains("of no known format"));
}

#[test]
fn a_fit_predicts_configurations_that_it_has_not_seen() {
    let path = shared("data/llm/silicon_sample.csv.gz");
    let (rows, report) = silicon::read(&path).unwrap();
    assert_eq!((report.kept, report.refused.count), (2854, 927), "rows of divided prefill and decode are refused");
    let fit = TwoStages::fit(&rows.iter().collect::<Vec<_>>());
    let seen = Errors::of(&fit, &rows);
    let [ttft, tpot] = [&seen.ttft, &seen.tpot].map(|errors| median(errors).unwrap());
    assert!(ttft < 0.08 && tpot < 0.03, "seen rows: TTFT {ttft}, TPOT {tpot}");
    let all = unseen(&rows, Unseen::Configuration);
    let gather =
        |of: fn(&Errors) -> &Vec<f64>| all.iter().flat_map(|(_, errors)| of(errors).clone()).collect::<Vec<_>>();
    let [ttft, tpot] = [gather(|errors| &errors.ttft), gather(|errors| &errors.tpot)];
    assert_eq!(tpot.len(), rows.len());
    let [ttft, tpot] = [ttft, tpot].map(|errors| median(&errors).unwrap());
    assert!(ttft < 0.20 && tpot < 0.09, "unseen configurations: TTFT {ttft}, TPOT {tpot}");
    // The shipped replicas are those of this fit, up to the last digits that a processor may round differently.
    let made = fit.replicas(&rows);
    let shipped = ReplicaCatalog::shipped();
    assert_eq!(made.replicas.len(), shipped.replicas.len());
    for (made, shipped) in made.replicas.iter().zip(&shipped.replicas) {
        assert_eq!((&made.name, made.rows), (&shipped.name, shipped.rows));
        let off = (made.step.fixed_ms / shipped.step.fixed_ms - 1.0).abs();
        assert!(off < 0.01, "{}: fixed {} shipped {}", made.name, made.step.fixed_ms, shipped.step.fixed_ms);
    }
}

#[test]
fn the_mooncake_hour_is_served_by_a_shipped_replica() {
    let path = shared("data/llm/mooncake_conversation.jsonl.gz");
    let (trace, _) = llm_requests::read(&path).unwrap();
    assert_eq!((trace.requests.len(), trace.blocks.len()), (12_031, 12_031));
    let replica = ReplicaCatalog::shipped().replica("Llama-3.1-70B-fp8/vllm/h100_sxm/tp4").unwrap();
    let limits = ReplicaLimits { sequences: 256, tokens: 8192, kv_tokens: 1_000_000, block: 16, timeout_ps: u64::MAX };
    let step = BatchTime::new(&replica.step, limits.tokens).unwrap();
    let play = |kept: usize| {
        let mut service = LlmService::new(8, limits, &step).unwrap().with_prefixes(512, kept);
        let outcomes = service.replay(&trace.requests, &trace.blocks);
        let mean = outcomes.iter().map(|outcome| match outcome {
            LlmOutcome::Served(served) => served.ttft_secs(),
            other => panic!("{other:?}"),
        });
        (mean.sum::<f64>() / trace.requests.len() as f64, service.reused_tokens())
    };
    let ((without, nothing), (with, reused)) = (play(0), play(20_000));
    assert!(nothing == 0 && reused > 10_000_000 && with < without, "{without} s, {with} s with {reused} tokens reused");
}

#[test]
fn every_shipped_replica_is_of_a_known_model_and_system() {
    let facts = LlmFacts::shipped();
    for replica in &ReplicaCatalog::shipped().replicas {
        let of = &replica.configuration;
        assert!(facts.model(&of.model).is_some() && facts.system(&of.system).is_some(), "{}", replica.name);
    }
}
