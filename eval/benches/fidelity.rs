//! Mean completion times of Pollux against the published ones: all workloads, three seeds of the
//! genetic search. Needs the public data in ../shared. Run with `cargo xtask bench fidelity`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use goodput_agents::compose;
use goodput_datasets::{Catalog, import, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::scenario::{Preset, Scenario, SimOptions};
use goodput_env::sim::Simulator;
use rayon::prelude::*;

/// Published configuration, policy, interference, folder, workloads.
const RUNS: [(&str, &str, f64, &str, &[u32]); 4] = [
    ("pollux-1.0", "pollux", 0.0, "workloads", &[1, 2, 4, 6, 7]),
    ("pollux-0.5", "pollux", 0.0, "workloads-0.5", &[1, 2]),
    ("inter25", "pollux-noavoid", 0.25, "workloads", &[1, 6]),
    ("noavoid", "pollux-noavoid", 0.0, "workloads", &[1, 6]),
];

fn shared(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")).join(path)
}

fn main() {
    let step_times = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pollux_step_times.parquet"));
    let measured =
        import::pollux_profiles::catalog(&shared("data/pollux/traces"), Some(&step_times)).expect("the profiles");
    let published = published();
    println!(
        "| configuration | workload | published | measured profiles, seeds 1 2 3 | shipped catalog, seed 1 |\n|---|---|---|---|---|"
    );
    for (config, policy, interference, folder, workloads) in RUNS {
        for &workload in workloads {
            let run = |seed, catalog: &Catalog| mean_jct(policy, seed, folder, workload, interference, catalog);
            let ours: Vec<f64> = (1..=3u64).into_par_iter().map(|seed| run(seed, &measured)).collect();
            let expected = published[&(config.to_string(), format!("workload-{workload}"))];
            let texts: Vec<String> =
                ours.iter().map(|jct| format!("{jct:.0} ({:+.1} %)", (jct / expected - 1.0) * 100.0)).collect();
            let shipped = run(1, Catalog::shipped());
            println!("| {config} | {workload} | {expected:.0} | {} | {shipped:.0} |", texts.join(", "));
        }
    }
}

/// Mean published completion time by configuration and workload, seconds.
fn published() -> BTreeMap<(String, String), f64> {
    let text = std::fs::read_to_string(shared("reference/pollux/published_jct.csv")).expect("the published results");
    let mut sums: BTreeMap<_, (f64, f64)> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let sum = sums.entry((fields[1].to_string(), fields[2].to_string())).or_default();
        sum.0 += fields[4].parse::<f64>().expect("a number");
        sum.1 += 1.0;
    }
    sums.into_iter().map(|(key, (sum, count))| (key, sum / count)).collect()
}

fn mean_jct(policy: &str, seed: u64, folder: &str, workload: u32, interference: f64, catalog: &Catalog) -> f64 {
    let path = shared(&format!("data/pollux/{folder}/workload-{workload}.csv"));
    let jobs = read_workload(&path, catalog).expect("the workload").workload;
    let mut made = compose::by_name(policy, seed).expect("a policy");
    let options = SimOptions { interference, ..Preset::PolluxOsdi21.options_for(&*made) };
    let cluster = Arc::new(Cluster::parse("16x4").expect("a cluster"));
    let scenario = Arc::new(Scenario::new(cluster, Arc::new(jobs), options, seed));
    let outcome = Simulator::new(scenario).run(&mut *made).expect("a run");
    let jct: f64 = outcome.jobs.iter().filter_map(|job| job.jct()).map(|jct| jct.as_secs_f64()).sum();
    jct / outcome.jobs.len() as f64
}
