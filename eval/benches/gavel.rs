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
    for table in goodput_eval::reproduce::REPRODUCTIONS.iter().filter(|t| t.name.starts_with("gavel")) {
        println!("== {}", table.name);
        for f in table.run(&data).expect("t") {
            println!(
                "{:>36} {:>14} {:>10.0} {:>10.0} {:+.2}",
                f.case,
                f.metric,
                f.theirs.unwrap_or(0.0),
                f.ours,
                100.0 * f.difference().unwrap_or(0.0)
            );
        }
    }
    for p in ["allox", "gavel-min-jct", "gavel-cost", "gavel-hierarchical"] {
        let o = simulate(p, &jobs, 0).expect("r");
        let t: Vec<f64> = o.jobs.iter().map(|j| j.jct().expect("d").as_secs_f64()).collect();
        println!("{p} mean {:.0} makespan {:.0}", t.iter().sum::<f64>() / 20.0, t.iter().copied().fold(0.0, f64::max));
    }
}
