//! Time of Gavel's medium_test trace under each policy, one thread, beside the CPU seconds of its
//! own simulator (measured once, in `../shared/reference/gavel/summary_medium_test.json`). Run with
//! `cargo xtask bench gavel`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use goodput_eval::reproduce::gavel::MEDIUM_TEST;

fn main() {
    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    let summary = data.join("reference/gavel/summary_medium_test.json");
    let text = std::fs::read_to_string(&summary).expect("the reference");
    let rows: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
    let jobs = Arc::new(MEDIUM_TEST.workload(&data).expect("the trace"));
    let reading = best(|| drop(black_box(MEDIUM_TEST.workload(&data).expect("the trace"))));
    println!("files read in {:.1} ms, counted below as well", reading * 1e3);
    println!("{:>36} {:>10} {:>12} {:>14}", "policy", "ms", "artifact_s", "times faster");
    for (theirs, ours) in MEDIUM_TEST.policies {
        let row = rows.iter().find(|row| row["policy"] == *theirs).expect("a row a policy");
        let artifact = row["user_s"].as_f64().expect("seconds");
        let secs = reading + best(|| drop(black_box(MEDIUM_TEST.simulate(ours, &jobs, 0).expect("a run"))));
        println!("{theirs:>36} {:>10.2} {artifact:>12.2} {:>14.0}", secs * 1e3, artifact / secs);
    }
}

/// Shortest of several times, seconds: what the work costs when nothing else runs.
fn best(work: impl Fn()) -> f64 {
    let once = || {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..10).map(|_| once()).fold(f64::INFINITY, f64::min)
}
