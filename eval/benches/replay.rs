//! Time to replay public traces, one core. Needs the public data in ../shared. Run with `cargo
//! xtask bench replay`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use goodput_agents::compose;
use goodput_datasets::{Catalog, import, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::job::{JobSpec, Workload};
use goodput_env::model::SwitchCost;
use goodput_env::scenario::{Preset, Rounds, Scenario, SimOptions};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;

fn shared(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")).join(path)
}

/// Seconds of the Python artifact for the same run (workload-6; measured once, one thread).
const ARTIFACT: [(&str, f64); 3] = [("tiresias", 18.0), ("optimus", 74.0), ("pollux", 1700.0)];

fn main() {
    let step_times = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pollux_step_times.parquet"));
    let start = Instant::now();
    let measured =
        import::pollux_profiles::catalog(&shared("data/pollux/traces"), Some(&step_times)).expect("the profiles");
    println!("profiles loaded in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    println!("{:>10} {:>14} {:>12} {:>14}", "policy", "secs", "artifact_s", "times faster");
    for (policy, artifact) in ARTIFACT {
        let secs = workload_6(policy, &measured);
        println!("{policy:>10} {secs:>14.4} {artifact:>12.0} {:>14.0}", artifact / secs);
    }
    let trace = read_workload(&shared("data/philly/philly.csv"), Catalog::shipped()).expect("the trace").workload;
    println!("\n{:>10} {:>10} {:>10} {:>14}", "policy", "jobs", "secs", "us per job");
    for policy in ["fifo", "srtf", "tiresias"] {
        for copies in [0.125, 1.0, 12.2] {
            let jobs = repeated(&trace.jobs, copies);
            let count = jobs.len();
            let secs = philly(policy, jobs);
            println!("{policy:>10} {count:>10} {secs:>10.3} {:>14.2}", secs * 1e6 / count as f64);
        }
    }
}

fn workload_6(policy: &str, catalog: &Catalog) -> f64 {
    let jobs = read_workload(&shared("data/pollux/workloads/workload-6.csv"), catalog).expect("the workload").workload;
    let mut made = compose::by_name(policy, 1).expect("a policy");
    let options = Preset::PolluxOsdi21.options_for(&*made);
    let cluster = Arc::new(Cluster::parse("16x4").expect("a cluster"));
    let start = Instant::now();
    let scenario = Arc::new(Scenario::new(cluster, Arc::new(jobs), options, 1));
    Simulator::new(scenario).run(&mut *made).expect("a run");
    start.elapsed().as_secs_f64()
}

/// The trace several times in a row, or the first part of it.
fn repeated(jobs: &[JobSpec], copies: f64) -> Vec<JobSpec> {
    let span = jobs.last().map_or(SimTime::ZERO, |job| job.request.submit) + SimTime::from_secs(1);
    let count = (jobs.len() as f64 * copies) as usize;
    (0..count)
        .map(|at| {
            let mut job = jobs[at % jobs.len()].clone();
            job.request.submit += SimTime::from_millis(span.as_millis() * (at / jobs.len()) as i64);
            job
        })
        .collect()
}

fn philly(policy: &str, jobs: Vec<JobSpec>) -> f64 {
    let mut policy = compose::by_name(policy, 1).expect("a policy");
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        information: policy.information(),
        ..SimOptions::standard()
    };
    let cluster = Arc::new(Cluster::parse("313x8").expect("a cluster"));
    let start = Instant::now();
    let scenario = Arc::new(Scenario::new(cluster, Arc::new(Workload::new(Vec::new(), jobs)), options, 1));
    Simulator::new(scenario).run(&mut *policy).expect("a run");
    start.elapsed().as_secs_f64()
}
