//! Time of a scheduling round of Sia, simulation included, one core, beside the public artifact's.
//! Needs the public data in ../shared. Run with `cargo xtask bench sia`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::PathBuf;
use std::time::Instant;

use goodput_datasets::import::sia_profiles;
use goodput_eval::reproduce::sia;
use serde::Deserialize;

/// Time that the artifact took for an equal run.
#[derive(Deserialize)]
struct Artifact {
    workload: String,
    policy: String,
    solver: String,
    user_s: f64,
    rounds: f64,
    policy_ms_mean: f64,
}

fn shared(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")).join(path)
}

fn main() {
    let start = Instant::now();
    let catalog = sia_profiles::catalog(&shared("data/sia")).expect("the profiles");
    println!("profiles of 6 types loaded in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    let text = std::fs::read_to_string(shared("reference/sia/summary.json")).expect("the reference");
    let artifact: Vec<Artifact> = serde_json::from_str(&text).expect("the reference");
    println!("{:>14} {:>12} {:>8} {:>12} {:>12}", "policy", "workload", "rounds", "secs", "ms a round");
    let mut small = f64::NAN;
    for policy in ["sia@replica", "sia"] {
        for (name, path) in
            [("19 jobs", "reference/sia/philly1-19noimg.csv"), ("160 jobs", "data/sia/workloads-philly/workload-1.csv")]
        {
            let start = Instant::now();
            let outcome = sia::run(policy, &shared(path), &catalog).expect("a run");
            let secs = start.elapsed().as_secs_f64();
            let each = secs * 1e3 / outcome.decisions as f64;
            println!("{policy:>14} {name:>12} {:>8} {secs:>12.3} {each:>12.2}", outcome.decisions);
            if (policy, name) == ("sia@replica", "19 jobs") {
                small = each;
            }
        }
    }
    println!("\n19 jobs, ours against the artifact with each solver: CPU ms a round, its policy alone, times faster");
    for run in artifact.iter().filter(|run| run.workload == "philly1-19noimg" && run.policy == "sia") {
        let theirs = run.user_s * 1e3 / run.rounds;
        println!("{:>14} {theirs:>10.0} {:>10.0} {:>10.0}", run.solver, run.policy_ms_mean, theirs / small);
    }
}
