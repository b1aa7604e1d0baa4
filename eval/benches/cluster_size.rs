//! Cost of a job over the size of the cluster: whole runs in which load grows with the cluster. Run with
//! `cargo xtask bench cluster_size`, or with policies, accelerators, jobs and load of your own:
//! `cargo bench --workspace --bench cluster_size -- fifo,srtf 64,64000 100000 0.8`.
//!
//! Jobs have known lengths (exponential, one hour on average) and ask for 1 to 16 accelerators. They arrive as a
//! Poisson process at the stated load, so the number of jobs a second for each accelerator is equal on all clusters.
//! Decisions fall on every arrival and completion. Times are of the thread's own clock. The hash covers start, end
//! and restarts of every job, so two builds that print one hash made one schedule.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "../../env/benches/clock/mod.rs"]
mod clock;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use goodput_agents::compose;
use goodput_env::cluster::Cluster;
use goodput_env::job::{JobRequest, JobSpec, Work, Workload};
use goodput_env::model::SwitchCost;
use goodput_env::scenario::{Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, keyed};
use goodput_env::sim::{Outcome, Simulator};
use goodput_env::time::SimTime;
use rand::RngExt;

const POLICIES: &str = "fifo,fifo-backfill,tiresias-l,las,srtf,kubernetes";
const ACCELERATORS: &str = "64,640,6400,64000";
const GPUS_PER_NODE: u32 = 8;
/// Accelerators that jobs ask for, and of 100 jobs how many ask for at most so many.
const SIZES: [(u32, u32); 5] = [(1, 55), (2, 70), (4, 85), (8, 97), (16, 100)];
const MEAN_SECS: f64 = 3600.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let argument = |at: usize, default: &'static str| arguments.get(at).cloned().unwrap_or_else(|| default.into());
    let jobs: u32 = argument(2, "100000").parse().expect("a number of jobs");
    let load: f64 = argument(3, "0.8").parse().expect("a load");
    let heads = ["policy", "accelerators", "jobs", "secs", "us per job", "waited, %", "restarts", "hash"];
    let [policy, gpus, count, secs, each, waited, restarts, hash] = heads;
    println!("{policy:>13} {gpus:>12} {count:>9} {secs:>9} {each:>10} {waited:>9} {restarts:>8} {hash:>16}");
    for policy in argument(0, POLICIES).split(',') {
        for gpus in argument(1, ACCELERATORS).split(',') {
            let gpus: u32 = gpus.parse().expect("a number of accelerators");
            row(policy, gpus, jobs, load);
        }
    }
}

fn row(name: &str, gpus: u32, jobs: u32, load: f64) {
    let mut policy = compose::by_name(name, 1).expect("a policy of the list");
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        information: policy.information(),
        ..SimOptions::standard()
    };
    let cluster = Arc::new(Cluster::homogeneous(gpus / GPUS_PER_NODE, GPUS_PER_NODE));
    let scenario = Arc::new(Scenario::new(cluster, Arc::new(workload(gpus, jobs, load)), options, 1));
    let start = clock::cpu_secs();
    let outcome = Simulator::new(scenario).run(&mut *policy).expect("a run");
    let secs = clock::cpu_secs() - start;
    let waited = outcome.jobs.iter().filter(|job| job.start != Some(job.submit)).count();
    let share = 100.0 * waited as f64 / f64::from(jobs);
    let restarts: u32 = outcome.jobs.iter().map(|job| job.restarts).sum();
    let each = secs * 1e6 / f64::from(jobs);
    let hash = hash(&outcome);
    println!("{name:>13} {gpus:>12} {jobs:>9} {secs:>9.3} {each:>10.2} {share:>9.2} {restarts:>8} {hash:>16x}");
}

fn workload(gpus: u32, jobs: u32, load: f64) -> Workload {
    let mut below = 0;
    let mean_gpus: f64 = SIZES
        .iter()
        .map(|&(size, upto)| f64::from(size) * f64::from(upto - std::mem::replace(&mut below, upto)) / 100.0)
        .sum();
    let jobs_per_sec = load * f64::from(gpus) / (mean_gpus * MEAN_SECS);
    let mut now = 0.0;
    let job = |id: u32| {
        let mut rng = keyed(1, Stream::Estimates, u64::from(id));
        let exponential = |uniform: f64| -(1.0 - uniform).ln();
        now += exponential(rng.random()) / jobs_per_sec;
        let percent: u32 = rng.random_range(0..100);
        let size = SIZES.iter().find(|(_, upto)| percent < *upto).map_or(1, |(size, _)| *size);
        let duration = SimTime::from_secs_f64((MEAN_SECS * exponential(rng.random())).max(1.0));
        let submit = SimTime::from_secs_f64(now);
        JobSpec { request: JobRequest { submit, gpus: size, ..JobRequest::default() }, work: Work::Fixed { duration } }
    };
    Workload::new(Vec::new(), (0..jobs).map(job).collect())
}

fn hash(outcome: &Outcome) -> u64 {
    let mut hasher = DefaultHasher::new();
    for job in &outcome.jobs {
        (job.start, job.finish, job.restarts, job.attained_gpu_millis).hash(&mut hasher);
    }
    for on in &outcome.training {
        (on.node.0, on.application, on.gpu_millis).hash(&mut hasher);
    }
    hasher.finish()
}
