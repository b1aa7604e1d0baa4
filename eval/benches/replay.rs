//! Time to replay public traces, of the thread's own clock. Needs the public data in ../shared. Run with `cargo
//! xtask bench replay`. Philly runs on clusters so small that jobs wait; a run in which few of them do is an error,
//! because it would measure a policy that has nothing to decide. `cluster_size` has the axis of larger clusters.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "../../env/benches/clock/mod.rs"]
mod clock;

use std::path::PathBuf;
use std::sync::Arc;

use goodput_agents::compose;
use goodput_datasets::{Catalog, import, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::job::Workload;
use goodput_env::model::SwitchCost;
use goodput_env::scenario::{Preset, Rounds, Scenario, SimOptions};
use goodput_env::sim::Simulator;

fn shared(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")).join(path)
}

/// Seconds of the Python artifact for the same run (workload-6; measured once, one thread).
const ARTIFACT: [(&str, f64); 3] = [("tiresias", 18.0), ("optimus", 74.0), ("pollux", 1700.0)];

fn main() {
    let step_times = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pollux_step_times.parquet"));
    let start = clock::cpu_secs();
    let measured =
        import::pollux_profiles::catalog(&shared("data/pollux/traces"), Some(&step_times)).expect("the profiles");
    println!("profiles loaded in {:.1} ms", (clock::cpu_secs() - start) * 1e3);
    println!("{:>10} {:>14} {:>12} {:>14}", "policy", "secs", "artifact_s", "times faster");
    for (policy, artifact) in ARTIFACT {
        let secs = workload_6(policy, &measured);
        println!("{policy:>10} {secs:>14.4} {artifact:>12.0} {:>14.0}", artifact / secs);
    }
    let trace = read_workload(&shared("data/philly/philly.csv"), Catalog::shipped()).expect("the trace").workload;
    let jobs = Arc::new(Workload::new(Vec::new(), trace.jobs));
    let heads = ["policy", "cluster", "jobs", "secs", "us per job", "waited, %", "restarts"];
    let [policy, cluster, count, secs, each, waited, restarts] = heads;
    println!("\n{policy:>10} {cluster:>8} {count:>8} {secs:>8} {each:>10} {waited:>10} {restarts:>9}");
    for policy in ["fifo", "fifo-backfill", "tiresias", "srtf"] {
        for cluster in ["40x8", "64x8"] {
            philly(policy, cluster, &jobs);
        }
    }
}

fn workload_6(policy: &str, catalog: &Catalog) -> f64 {
    let jobs = read_workload(&shared("data/pollux/workloads/workload-6.csv"), catalog).expect("the workload").workload;
    let mut made = compose::by_name(policy, 1).expect("a policy");
    let options = Preset::PolluxOsdi21.options_for(&*made);
    let cluster = Arc::new(Cluster::parse("16x4").expect("a cluster"));
    let start = clock::cpu_secs();
    let scenario = Arc::new(Scenario::new(cluster, Arc::new(jobs), options, 1));
    Simulator::new(scenario).run(&mut *made).expect("a run");
    clock::cpu_secs() - start
}

/// Least share of the jobs that has to wait, percent.
const LEAST_WAITING: f64 = 5.0;

/// Replays Philly and prints a row. A job waits if it does not start, or does not go on, at once.
fn philly(name: &str, cluster: &str, jobs: &Arc<Workload>) {
    let mut policy = compose::by_name(name, 1).expect("a policy");
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        information: policy.information(),
        ..SimOptions::standard()
    };
    let machines = Arc::new(Cluster::parse(cluster).expect("a cluster"));
    let start = clock::cpu_secs();
    let scenario = Arc::new(Scenario::new(machines, jobs.clone(), options, 1));
    let outcome = Simulator::new(scenario).run(&mut *policy).expect("a run");
    let (secs, count) = (clock::cpu_secs() - start, outcome.jobs.len());
    let waited = outcome.jobs.iter().filter(|job| job.start != Some(job.submit) || job.restarts > 0).count();
    let (share, each) = (100.0 * waited as f64 / count as f64, secs * 1e6 / count as f64);
    assert!(share >= LEAST_WAITING, "{name} on {cluster}: {share:.1} % of the jobs wait, so nothing is scheduled");
    let restarts: u64 = outcome.jobs.iter().map(|job| u64::from(job.restarts)).sum();
    println!("{name:>10} {cluster:>8} {count:>8} {secs:>8.3} {each:>10.2} {share:>10.1} {restarts:>9}");
}
