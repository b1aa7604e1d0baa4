//! Matching of jobs with hardware by a learned policy, on small clusters of three accelerator types: beside Gavel's
//! max-min program, a random type for each job, and turns over all types.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader")]

use std::sync::Arc;

use goodput_agents::compose::by_name;
use goodput_agents::zoo;
use goodput_datasets::Catalog;
use goodput_env::cluster::{AcceleratorType, Cluster, Node, TypeId};
use goodput_env::job::{JobRequest, JobSpec, Work, Workload};
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use rand::RngExt;

const INSTANCES: u64 = 40;
const JOBS: usize = 10;

/// One node of four accelerators of each type that the shipped policy was trained on.
fn cluster() -> Cluster {
    let types = ["t4", "a100", "rtx-2080-ti"].map(AcceleratorType::named);
    let nodes = TypeId::first(types.len()).map(|kind| Node::new(kind, 4)).collect();
    Cluster { types: types.into(), nodes }
}

/// Rigid jobs of one, two or four accelerators that all come within ten minutes.
fn workload(seed: u64) -> Workload {
    let mut rng = rng(seed, Stream::Workload);
    let applications = Catalog::shipped().applications.clone();
    let names = ["bert", "cifar10", "deepspeech2", "yolov3"];
    let jobs = (0..JOBS).map(|at| {
        let index = Catalog::shipped().index(names[rng.random_range(0..names.len())]).unwrap();
        JobSpec {
            request: JobRequest {
                name: format!("job{at}"),
                gpus: [1, 1, 2, 4][rng.random_range(0..4)],
                submit: SimTime::from_secs(rng.random_range(0..600)),
                ..JobRequest::default()
            },
            work: Work::Application { index, work_milli: rng.random_range(100..1000) },
        }
    });
    let mut jobs: Vec<JobSpec> = jobs.collect();
    jobs.sort_by_key(|job| job.request.submit);
    Workload::new(applications, jobs)
}

fn jct_mean_secs(policy: &mut dyn Policy, information: Information, seed: u64) -> f64 {
    let options = SimOptions { batching: Batching::Agent, information, ..SimOptions::standard() };
    let scenario = Scenario::new(Arc::new(cluster()), Arc::new(workload(seed)), options, seed);
    let outcome = Simulator::new(Arc::new(scenario)).run(policy).unwrap();
    outcome.jobs.iter().map(|job| job.jct().unwrap().as_secs_f64()).sum::<f64>() / JOBS as f64
}

/// The learned policy knows what agents have measured, and the others the true speeds.
#[test]
fn a_learned_policy_matches_jobs_with_hardware() {
    let bundle = zoo::load("heterogeneous").unwrap();
    let heuristics = ["gavel-max-min", "gavel-fifo", "gavel-isolated", "gavel-sjf"];
    let mut sums = [0.0; 5];
    for seed in 0..INSTANCES {
        let mut learned = bundle.policy(Default::default()).unwrap();
        let found = jct_mean_secs(&mut *learned, Information::Profiled, seed);
        let others = heuristics
            .map(|name| jct_mean_secs(&mut *by_name(name, seed).unwrap(), Information::Estimate { sigma: 0.0 }, seed));
        sums[0] += found.ln();
        sums.iter_mut().skip(1).zip(others).for_each(|(sum, other)| *sum += (found / other).ln());
    }
    let [found, ratios @ ..] = sums.map(|sum| (sum / INSTANCES as f64).exp());
    println!("learned: {found:.0} s, over {heuristics:?}: {ratios:.3?}");
    let [max_min, random, turns, _] = ratios;
    assert!(max_min < 1.05, "{max_min} times Gavel's max-min program");
    assert!(random < 1.0 && turns < 1.0, "{random} times a random type, {turns} times turns over all types");
}
