//! Policies that keep a queue, on a cluster that cannot keep up: seconds of a run by the number of
//! jobs, and a digest of everything that happened, which a faster form must not change. Run with
//! `cargo xtask bench queues`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::Arc;
use std::time::Instant;

use goodput_agents::compose;
use goodput_env::cluster::Cluster;
use goodput_env::job::{JobRequest, JobSpec, Work, Workload};
use goodput_env::model::SwitchCost;
use goodput_env::scenario::{Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Outcome, Simulator};
use goodput_env::time::SimTime;
use rand::RngExt;

const POLICIES: [&str; 4] = ["fifo", "kubernetes", "kueue", "kai"];
const JOBS: [u32; 3] = [1_000, 4_000, 16_000];
/// A policy that needs longer than this for one size is not asked for the next.
const PATIENCE_SECS: f64 = 20.0;

fn main() {
    println!("32 nodes of 8 accelerators, 4 tenants, 3 priorities, twice the work that fits");
    println!("{:<14}{:>8}{:>10}{:>12}{:>20}", "policy", "jobs", "secs", "us/decision", "digest");
    for policy in POLICIES {
        for jobs in JOBS {
            let start = Instant::now();
            let outcome = run(policy, jobs);
            let secs = start.elapsed().as_secs_f64();
            let decision = secs * 1e6 / outcome.decisions as f64;
            println!("{policy:<14}{jobs:>8}{secs:>10.3}{decision:>12.1}{:>20x}", digest(&outcome));
            if secs > PATIENCE_SECS {
                break;
            }
        }
    }
}

fn run(policy: &str, jobs: u32) -> Outcome {
    let mut policy = compose::by_name(policy, 1).expect("it is in the list");
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        batching: policy.batching(),
        information: policy.information(),
        log_allocations: true,
        ..SimOptions::standard()
    };
    let workload = Workload::new(Vec::new(), overload(jobs));
    let scenario = Scenario::new(Arc::new(Cluster::homogeneous(32, 8)), Arc::new(workload), options, 1);
    Simulator::new(Arc::new(scenario)).run(&mut *policy).expect("a run")
}

/// A job a minute, in the mean of 3.5 accelerators for 2.5 hours: 525 accelerators' worth of work
/// for 256.
fn overload(count: u32) -> Vec<JobSpec> {
    let mut random = rng(1, Stream::Workload);
    let mut now = 0;
    let job = |index: u32| {
        now += random.random_range(0..120);
        let request = JobRequest {
            name: format!("job-{index}"),
            tenant: random.random_range(0..4),
            submit: SimTime::from_secs(now),
            gpus: [1, 1, 2, 2, 4, 4, 4, 8, 1, 8][random.random_range(0..10)],
            priority: random.random_range(0..3),
            ..JobRequest::default()
        };
        let duration = SimTime::from_secs(random.random_range(600..17_400));
        JobSpec { request, work: Work::Fixed { duration } }
    };
    (0..count).map(job).collect()
}

/// FNV-1a over the records and the log of allocations.
fn digest(outcome: &Outcome) -> u64 {
    let text = format!("{:?}{:?}", outcome.jobs, outcome.allocations);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
