//! Cost of a decision of DeepBoot's knapsack and of Pollux's genetic search, by the number of jobs
//! (DeepBoot, figure 11). Run with `cargo xtask bench request_decisions`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::Arc;
use std::time::Instant;

use goodput_agents::compose;
use goodput_datasets::Catalog;
use goodput_datasets::synth::{PolluxSynth, SynthConfig};
use goodput_env::cluster::Cluster;
use goodput_env::job::Workload;
use goodput_env::scenario::{Rounds, Scenario, SimOptions};
use goodput_env::sim::{Simulator, Status};
use goodput_env::time::SimTime;
use goodput_eval::stats::quantiles;

const JOBS: [u32; 5] = [16, 32, 64, 128, 256];
const DECISIONS: usize = 30;

fn main() {
    println!("milliseconds a decision, 16 nodes of 4 accelerators, {DECISIONS} decisions: median and 99th percentile");
    println!("{:<12}{:>8}{:>12}{:>12}", "policy", "jobs", "p50", "p99");
    for policy in ["deepboot", "pollux"] {
        for jobs in JOBS {
            let [p50, p99] = quantiles(&millis(policy, jobs), [0.5, 0.99]).unwrap_or([f64::NAN; 2]);
            println!("{policy:<12}{jobs:>8}{p50:>12.3}{p99:>12.3}");
        }
    }
}

fn millis(name: &str, jobs: u32) -> Vec<f64> {
    let synth = PolluxSynth { jobs, ..PolluxSynth::default() };
    let generator = SynthConfig::Pollux(synth).build(Catalog::shipped()).expect("settings in range");
    let drawn = generator.generate(1);
    let at_once = drawn.jobs.into_iter().map(|mut job| {
        job.request.submit = SimTime::ZERO;
        job
    });
    let workload = Workload::new(drawn.applications, at_once.collect());
    let mut policy = compose::by_name(name, 1).expect("it is in the list");
    let options = SimOptions {
        rounds: Rounds { period: Some(SimTime::from_secs(60)), on_churn: false },
        batching: policy.batching(),
        information: policy.information(),
        ..SimOptions::standard()
    };
    let cluster = Arc::new(Cluster::homogeneous(16, 4));
    let mut simulator = Simulator::new(Arc::new(Scenario::new(cluster, Arc::new(workload), options, 1)));
    let mut costs = Vec::new();
    while costs.len() < DECISIONS && matches!(simulator.run_until_decision(), Ok(Status::Decision)) {
        let start = Instant::now();
        let plan = policy.decide(&simulator.view());
        costs.push(start.elapsed().as_secs_f64() * 1e3);
        simulator.apply(&plan).expect("policies keep the rules");
    }
    costs
}
