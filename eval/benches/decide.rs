//! Time of one decision against the number of jobs that wait, one core: everybody arrives at once. Run with `cargo xtask bench decide`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::Arc;
use std::time::Instant;

use goodput_agents::heuristic;
use goodput_datasets::Catalog;
use goodput_env::cluster::Cluster;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::sim::{Rounds, Scenario, SimOptions, Simulator};
use goodput_env::time::SimTime;
use goodput_env::view::{Batching, Information};

fn main() {
    println!("{:>14} {:>8} {:>8} {:>12}", "policy", "cluster", "jobs", "ms");
    for policy in ["afs-l", "afs-p", "afs-l@replica", "themis", "gandiva", "optimus", "srtf"] {
        for cluster in ["16x4", "512x4"] {
            for jobs in [64, 256, 1024, 4096, 16_384] {
                let millis = (0..3).map(|_| decision_millis(policy, cluster, jobs)).fold(f64::INFINITY, f64::min);
                println!("{policy:>14} {cluster:>8} {jobs:>8} {millis:>12.3}");
            }
        }
    }
}

fn decision_millis(policy: &str, cluster: &str, jobs: usize) -> f64 {
    let catalog = Catalog::shipped();
    let spec = |at: usize| {
        let index = (at % catalog.applications.len()) as u16;
        let app = &catalog.applications[usize::from(index)];
        let gpus = [1, 1, 2, 4][at % 4].min(app.max_replicas);
        JobSpec {
            request: JobRequest {
                name: at.to_string(),
                tenant: 0,
                submit: SimTime::ZERO,
                gpus,
                batch_size: Some(app.limits.max),
                elasticity: match app.max_replicas {
                    1 => Elasticity::Rigid,
                    max => Elasticity::Elastic { min: 1, max },
                },
            },
            work: Work::Application { index },
        }
    };
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        batching: Batching::Requested,
        information: Information::Oracle,
        ..SimOptions::standard()
    };
    let workload = Workload::new(catalog.applications.clone(), (0..jobs).map(spec).collect());
    let cluster = Arc::new(Cluster::parse(cluster).expect("a cluster"));
    let mut simulator = Simulator::new(Arc::new(Scenario::new(cluster, Arc::new(workload), options, 1)));
    simulator.run_until_decision().expect("a decision");
    let mut policy = heuristic::by_name(policy, 1).expect("a policy");
    let start = Instant::now();
    let plan = policy.decide(&simulator.view());
    let millis = start.elapsed().as_secs_f64() * 1e3;
    simulator.apply(&plan).expect("a legal plan");
    millis
}
