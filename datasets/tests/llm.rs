//! Language models: the formats of traces, the fit to measured times, and the shipped replicas.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::PathBuf;

use goodput_datasets::fit::llm::check::{Errors, Unseen, median, unseen};
use goodput_datasets::fit::llm::{SILICON_SOURCE, TwoStages};
use goodput_datasets::import::llm_requests;
use goodput_datasets::import::silicon::{self, DividedRow, SiliconTable};
use goodput_datasets::llm::{LlmFacts, ReplicaCatalog, ReplicaEntry};
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
    let burst_gpt = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                     5,ChatGPT,10,2,12,Conversation log\n7,GPT-4,600,5,605,API log\n";
    let own = "arrival_secs,input,output\n1.5,10,2\n3.5,600,5\n";
    let tables = [("c.csv", azure), ("d.csv", burst_gpt), ("e.csv", own)];
    for (name, text) in [("a.jsonl", mooncake), ("b.jsonl", vllm)].into_iter().chain(tables) {
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
    let (_dir, path) = written("x.csv", "arrival_secs,input,output\n0,10,2\n1,0,5\n-1,4,4\n20000000,10,2\n");
    let (_, report) = llm_requests::read(&path).unwrap();
    let lines: Vec<u64> = report.refused.examples.iter().map(|(line, _)| *line).collect();
    assert_eq!((report.kept, lines), (1, vec![3, 4, 5]));
    assert!(report.to_string().contains("at most 1e7 seconds after the first row"), "{report}");
    let failed = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,10,0,10,API log\n\
                  7,GPT-4,600,5,605,API log\n";
    let (_dir, path) = written("failed.csv", failed);
    let (_, report) = llm_requests::read(&path).unwrap();
    assert!(report.kept == 1 && report.to_string().contains("Response tokens"), "{report}");
    let (_dir, path) = written("y.csv", "a,b\n1,2\n");
    assert!(llm_requests::read(&path).unwrap_err().to_string().contains("of no known format"));
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_object() {
    let text = "\u{feff}{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 2}\n";
    let (_dir, path) = written("a.jsonl", text);
    let (_, report) = llm_requests::read(&path).unwrap();
    assert_eq!((report.kept, report.refused.count), (1, 0));
}

#[test]
fn parallel_sizes_are_one_where_they_are_empty_and_refused_where_they_are_no_numbers() {
    let header = "backend,model_path,system,isl,osl,batch_size,tp_size,silicon_ttft_ms,silicon_tpot_ms,\
                  attention_dp_size";
    let row = |data: &str| format!("vllm,meta-llama/Llama-3.1-8B,h100_sxm,100,10,1,1,5,5,{data}\n");
    let text = format!("{header}\n{}{}{}{}", row(""), row("0"), row("4"), row("x"));
    let (_dir, path) = written("times.csv", &text);
    let (SiliconTable { rows, .. }, report) = silicon::read(&path).unwrap();
    assert_eq!(rows.iter().map(|row| row.configuration.data).collect::<Vec<_>>(), [1, 1, 4]);
    assert_eq!(report.refused.examples.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [5]);
}

#[test]
fn divided_rows_have_replicas_and_sizes_of_both_pools() {
    let header = "backend,model_path,system,isl,osl,batch_size,tp_size,silicon_ttft_ms,silicon_tpot_ms,mode,\
                  prefill_num_workers,prefill_tp_size,prefill_attention_dp_size,decode_num_workers,decode_tp_size,\
                  decode_batch_size";
    let row = |pools: &str| format!("vllm,meta-llama/Llama-3.1-8B,h100_sxm,100,10,,,5,6,disagg,{pools}\n");
    let text = format!("{header}\n{}{}{}", row("2,1,4,3,8,16"), row(",1,4,,8,"), row("2,1,4,3,8,"));
    let (_dir, path) = written("times.csv", &text);
    let (SiliconTable { rows, divided }, report) = silicon::read(&path).unwrap();
    assert_eq!((rows.len(), divided.len(), report.kept, report.refused.count), (0, 1, 1, 2));
    assert!(report.to_string().contains("a number of replicas, as prefill and decode are divided"), "{report}");
    let DividedRow { prefill, prefill_replicas, decode_replicas, decode } = &divided[0];
    assert_eq!((*prefill_replicas, prefill.tensor, prefill.data, prefill.expert), (2, 1, 4, 1));
    assert_eq!((*decode_replicas, decode.configuration.tensor, decode.configuration.data), (3, 8, 1));
    assert_eq!((decode.shape.concurrency, decode.ttft_ms, decode.tpot_ms), (16, 5.0, 6.0));
}

#[test]
fn a_fit_predicts_configurations_that_it_has_not_seen() {
    let path = shared("data/llm/silicon_sample.csv.gz");
    let (SiliconTable { rows, divided }, report) = silicon::read(&path).unwrap();
    assert_eq!((rows.len(), divided.len()), (2854, 212));
    assert_eq!((report.kept, report.refused.count), (3066, 715), "rows without numbers of replicas are refused");
    let fit = TwoStages::fit(&rows.iter().collect::<Vec<_>>());
    let seen = Errors::of(&fit, &rows);
    let [ttft, tpot] = [&seen.ttft, &seen.tpot].map(|errors| median(errors).unwrap());
    assert!(ttft < 0.08 && tpot < 0.03, "seen rows: TTFT {ttft}, TPOT {tpot}");
    // Divided rows are of configurations that the fit has not seen, and their waits are not modelled.
    let far = Errors::of_divided(&fit, &divided);
    assert_eq!((far.ttft.len(), far.tpot.len()), (212, 212));
    let tpot = median(&far.tpot).unwrap();
    assert!(tpot < 0.25, "divided rows: TPOT {tpot}");
    let all = unseen(&rows, Unseen::Configuration);
    let gather =
        |of: fn(&Errors) -> &Vec<f64>| all.iter().flat_map(|(_, errors)| of(errors).clone()).collect::<Vec<_>>();
    let [ttft, tpot] = [gather(|errors| &errors.ttft), gather(|errors| &errors.tpot)];
    assert_eq!(tpot.len(), rows.len());
    let [ttft, tpot] = [ttft, tpot].map(|errors| median(&errors).unwrap());
    assert!(ttft < 0.20 && tpot < 0.09, "unseen configurations: TTFT {ttft}, TPOT {tpot}");
    // The shipped replicas are those of this fit, up to the last digits that a processor may round differently.
    let made = fit.replicas(&rows, SILICON_SOURCE.to_owned());
    let figures = |of: &ReplicaEntry| {
        [
            ("fixed_ms", of.step.fixed_ms),
            ("sequence_ms", of.step.sequence_ms),
            ("context_ms", of.step.context_ms),
            ("prompt_ms", of.step.prompt_ms),
            ("pair_ms", of.step.pair_ms),
            ("kv_tokens", of.kv_tokens as f64),
        ]
    };
    let shipped = ReplicaCatalog::shipped();
    assert_eq!(made.replicas.len(), shipped.replicas.len());
    for (made, shipped) in made.replicas.iter().zip(&shipped.replicas) {
        assert_eq!((&made.name, made.rows), (&shipped.name, shipped.rows));
        for ((figure, found), (_, known)) in figures(made).into_iter().zip(figures(shipped)) {
            let same = found.max(known) < 1e-12 || (found / known - 1.0).abs() < 0.01;
            assert!(same, "{}: {figure} {found}, shipped {known}", made.name);
        }
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
