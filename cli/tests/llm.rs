//! Language models on the command line: replays of traces, and costs of a step from a run of vLLM.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{plain, run};

const REPLICA: &str = "Llama-3.1-70B-fp8/vllm/h100_sxm/tp4";
const START: &str = "fixed_ms = 10.0\nsequence_ms = 0.02\ncontext_ms = 1e-4\nprompt_ms = 0.05\npair_ms = 1e-7\n";
/// Costs to begin with where each token uses 8 of 128 experts.
const MIXTURE: &str = "fixed_ms = 10.0\nexperts_ms = 18.2\nexpert_share = 0.0625\nsequence_ms = 0.0199\n\
                       context_ms = 1e-4\nprompt_ms = 0.05\npair_ms = 4.3e-7\n";

/// Figures of a replay, and their relative difference from the measured ones.
fn replay(dir: &Path, args: &[&str]) -> BTreeMap<String, (f64, Option<f64>)> {
    let (code, out, said) = run(dir, &[&["data", "replay-llm"], args, &["-o", "json"]].concat());
    assert_eq!(code, 0, "{said}");
    let rows: Vec<serde_json::Value> = serde_json::from_str(&out).unwrap();
    let row = |row: &serde_json::Value| {
        let figure = row["figure"].as_str().unwrap().to_owned();
        (figure, (row["replayed"].as_f64().unwrap(), row["difference"].as_f64()))
    };
    rows.iter().map(row).collect()
}

#[test]
fn a_table_of_requests_is_replayed_on_a_replica_of_the_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..200).map(|at| format!("{at},{},{}\n", 500 + at, 50 + at % 90)).collect();
    fs::write(dir.path().join("own.csv"), format!("arrival_secs,input,output\n{rows}")).unwrap();
    let one = replay(dir.path(), &["own.csv", "--replica", REPLICA]);
    assert_eq!((one["requests"].0, one["served"].0, one["timed_out"].0), (200.0, 200.0, 0.0));
    assert!(one["ttft_secs_p50"].0 <= one["ttft_secs_p99"].0 && one["tpot_secs_mean"].0 > 0.0);
    let two = replay(dir.path(), &["own.csv", "--replica", REPLICA, "--replicas", "4"]);
    assert!(two["latency_secs_mean"].0 < one["latency_secs_mean"].0);
    let scaled = replay(dir.path(), &["own.csv", "--replica", REPLICA, "--most", "4", "--target", "500"]);
    assert!(scaled["cold_starts"].0 >= 1.0 && scaled["replica_hours"].0 > 0.0);
}

#[test]
fn replicas_that_divide_prefill_and_decode_are_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..200).map(|at| format!("{},{},{}\n", at as f64 / 2.0, 500 + at, 50 + at % 90)).collect();
    fs::write(dir.path().join("own.csv"), format!("arrival_secs,input,output\n{rows}")).unwrap();
    let both = replay(dir.path(), &["own.csv", "--replica", REPLICA, "--replicas", "4"]);
    assert!(!both.contains_key("handover_secs_mean"));
    let pools = ["own.csv", "--replica", REPLICA, "--prefill-replicas", "2", "--replicas", "2"];
    let divided = replay(dir.path(), &pools);
    assert_eq!((divided["served"].0, divided["preemptions"].0), (200.0, 0.0));
    // A prompt of 600 tokens of 327,680 bytes takes 4 ms at 400 Gbit/s, and waits up to a step of 14 ms for its place.
    assert!((0.004..0.02).contains(&divided["handover_secs_mean"].0), "{}", divided["handover_secs_mean"].0);
    let at_once = replay(dir.path(), &[&pools[..], &["--kv-bytes-per-token", "0"]].concat());
    assert!(at_once["handover_secs_mean"].0 < divided["handover_secs_mean"].0);
    assert!(at_once["tpot_secs_mean"].0 < divided["tpot_secs_mean"].0);
    assert_eq!(at_once["ttft_secs_mean"], divided["ttft_secs_mean"], "the transfer comes after the first token");
    let large = ["--prefill-replica", "Llama-3.1-70B-fp8/vllm/h100_sxm/tp8", "--prefill-budget", "4096"];
    let large = replay(dir.path(), &[&pools[..], &large].concat());
    assert!(large["ttft_secs_mean"].0 < divided["ttft_secs_mean"].0);
}

#[test]
fn impossible_requests_to_replay_are_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("own.csv"), "arrival_secs,input,output\n0,10,5\n").unwrap();
    let refused = |args: &[&str]| {
        let (code, _, said) = run(dir.path(), &[&["data", "replay-llm", "own.csv"], args].concat());
        assert_eq!(code, 2, "{said}");
        plain(&said)
    };
    assert!(refused(&["--replica", "none"]).contains("goodput list llm-replicas"));
    assert!(refused(&["--replica", REPLICA, "--check"]).contains("has no measured times"));
    assert!(refused(&["--replica", REPLICA, "--budget", "10"]).contains("token budget of a step is 10"));
    fs::write(dir.path().join("start.toml"), START).unwrap();
    let pools = |args: &[&str]| refused(&[&["--prefill-replicas", "2"], args].concat());
    let scaled = pools(&["--replica", REPLICA, "--most", "4"]);
    assert!(scaled.contains("--most") && scaled.contains("--prefill-replicas"), "{scaled}");
    assert!(pools(&["--replica", REPLICA, "--fit", "costs.toml"]).contains("--fit"));
    assert!(pools(&["--replica", REPLICA, "--prefill-replica", "none"]).contains("--prefill-replica none"));
    let other = pools(&["--replica", REPLICA, "--prefill-replica", "DeepSeek-R1-fp8/sglang/b200_sxm/tp4"]);
    assert!(other.contains("give two configurations of one model"), "{other}");
    assert!(pools(&["--replica", REPLICA, "--kv-transfer-gbps", "0"]).contains("--kv-transfer-gbps is 0"));
    assert!(pools(&["--costs", "start.toml", "--kv-tokens", "9000"]).contains("give --kv-bytes-per-token"));
    assert!(pools(&["--replica", REPLICA, "--prefill-budget", "10"]).contains("token budget of a step is 10"));
    let slow = ["--replica", REPLICA, "--kv-transfer-gbps", "0.001", "--kv-bytes-per-token", "4000000000"];
    assert!(pools(&slow).contains("the keys and values of all prompts move in 320000 s"));
    assert!(refused(&["--replica", REPLICA, "--kv-bytes-per-token", "5"]).contains("--prefill-replicas"));
}

#[test]
fn costs_fitted_to_a_run_of_vllm_replay_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("start.toml"), START).unwrap();
    let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/llm/llmservingsim");
    assert!(Path::new(runs).exists(), "{runs} is absent: this test compares with the public data in it");
    let fitted = format!("{runs}/RTXPRO6000-Llama-3.1-8B/requests.jsonl");
    let settings = ["--kv-tokens", "500000", "--sequences", "128", "--budget", "2048", "--check"];
    let args = [&[fitted.as_str(), "--costs", "start.toml", "--fit", "costs.toml"][..], &settings].concat();
    let own = replay(dir.path(), &args);
    let within = |figures: &BTreeMap<String, (f64, Option<f64>)>, bounds: [(&str, f64); 4]| {
        for (figure, bound) in bounds {
            let off = figures[figure].1.unwrap();
            assert!(off.abs() <= bound, "{figure} is {off} off");
        }
    };
    let bounds = [("tpot_secs_mean", 0.01), ("ttft_secs_mean", 0.02), ("tpot_secs_p99", 0.02), ("ttft_secs_p99", 0.03)];
    within(&own, bounds);
    // The other device has 1008 in place of 1597 GB/s, and 41,408 tokens of memory, so that requests are preempted.
    let other = format!("{runs}/RTX4090-Llama-3.1-8B/requests.jsonl");
    let settings = ["--kv-tokens", "41408", "--budget", "2048", "--memory", "1.5843", "--check"];
    let moved = replay(dir.path(), &[&[other.as_str(), "--costs", "costs.toml"][..], &settings].concat());
    assert!(moved["preemptions"].0 > 100.0);
    let bounds = [("tpot_secs_mean", 0.02), ("ttft_secs_mean", 0.05), ("tpot_secs_p99", 0.1), ("ttft_secs_p99", 0.1)];
    within(&moved, bounds);
    // The mixture of experts ran as two copies that share the requests.
    fs::write(dir.path().join("mixture.toml"), MIXTURE).unwrap();
    let copies = format!("{runs}/RTXPRO6000-Qwen3-30B-A3B-Instruct-2507/requests.jsonl");
    let settings = ["--kv-tokens", "500000", "--sequences", "128", "--budget", "2048", "--replicas", "2", "--check"];
    let args = [&[copies.as_str(), "--costs", "mixture.toml", "--fit", "mixture-costs.toml"][..], &settings].concat();
    within(&replay(dir.path(), &args), bounds);
}
