//! Language models as services of a cluster, from the command line.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use crate::support::run;

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/scenario/llm-services.toml");
const QUICKSTART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/experiment/quickstart.toml");

fn rows<'a>(shown: &'a str, head: &str) -> Vec<Vec<&'a str>> {
    let start = shown.find(head).unwrap_or_else(|| panic!("{head} in {shown}"));
    shown[start..].trim().lines().skip(1).map(|row| row.split(',').collect()).collect()
}

#[test]
fn a_run_counts_what_a_replay_of_its_requests_finds() {
    let command = ["data", "replay-services", SCENARIO, "--policy", "fifo+reactive", "-o", "csv"];
    let (code, shown, said) = run(Path::new("."), &command);
    assert_eq!(code, 0, "{said}");
    let rows = rows(&shown, "service,objective");
    assert_eq!(rows.len(), 6, "{shown}");
    for row in rows {
        let (counted, replayed): (f64, f64) = (row[3].parse().unwrap(), row[4].parse().unwrap());
        assert!((counted - replayed).abs() < 0.005 && replayed > 0.9 && replayed < 1.0, "{shown}");
    }
}

#[test]
fn first_tokens_have_a_price_where_language_models_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let policies = ["--policies", "fifo+reactive,fifo+oracle", "--reference", "fifo+reactive"];
    let of = |file| [&["eval", file, "--seeds", "1", "-o", "csv", "--token-price"][..], &policies].concat();
    let (code, shown, said) = run(dir.path(), &of(SCENARIO));
    assert_eq!(code, 0, "{said}");
    let rows = rows(&shown, "workload,policy,training_gpus");
    assert_eq!(rows.iter().map(|row| row[1]).collect::<Vec<_>>(), ["fifo+reactive", "fifo+oracle"], "{shown}");
    assert!(rows.iter().all(|row| row[3].parse::<f64>().unwrap() > 90.0), "{shown}");
    assert!(rows[0][7].is_empty() && dir.path().join("runs/eval/services.parquet").exists(), "{shown}");
    let (code, _, said) = run(dir.path(), &[&of(QUICKSTART)[..7], &["--policies", "fifo"]].concat());
    assert!(code == 2 && said.contains("no workload has a language model"), "{said}");
}
