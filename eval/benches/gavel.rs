//! Time of Gavel's medium_test trace under each policy, one thread, beside the CPU seconds of its own simulator (measured once, in
//! `../shared/reference/gavel/summary_medium_test.json`). Run with `cargo xtask bench gavel`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use goodput_eval::reproduce::gavel_medium::{POLICIES, simulate, workload};

fn main() {
    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    let summary = data.join("reference/gavel/summary_medium_test.json");
    let text = std::fs::read_to_string(&summary).expect("the reference");
    let rows: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
    let start = Instant::now();
    let jobs = Arc::new(workload(&data).expect("the trace"));
    let reading = start.elapsed().as_secs_f64();
    println!("files read in {:.1} ms, counted below as well", reading * 1e3);
    println!("{:>36} {:>10} {:>12} {:>14}", "policy", "ms", "artifact_s", "times faster");
    for (theirs, ours) in POLICIES {
        let row = rows.iter().find(|row| row["policy"] == theirs).expect("a row a policy");
        let artifact = row["user_s"].as_f64().expect("seconds");
        let start = Instant::now();
        simulate(ours, &jobs, 0).expect("a run");
        let secs = reading + start.elapsed().as_secs_f64();
        println!("{theirs:>36} {:>10.2} {artifact:>12.2} {:>14.0}", secs * 1e3, artifact / secs);
    }
}
