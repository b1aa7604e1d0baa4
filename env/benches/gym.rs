//! Decisions per second of the environment on one core, observation encoding included.
//! Run with `cargo xtask bench gym`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Instant;

use goodput_env::cluster::Cluster;
use goodput_env::gym::{ClusterEnv, EnvOptions, Environment, Observation, ResetOptions, ScenarioSource};
use goodput_env::job::Workload;
use goodput_env::sim::{Scenario, SimOptions};
use support::{application, elastic};

fn source(jobs: usize, gap: i64) -> ScenarioSource {
    let cluster = Arc::new(Cluster::parse("16x4").expect("a cluster"));
    let template =
        Scenario::new(cluster, Arc::new(Workload::new(vec![application()], vec![])), SimOptions::standard(), 0);
    Arc::new(move |seed| {
        let jobs = (0..jobs as i64).map(|job| elastic(&format!("{job}"), job * gap + (seed as i64 % 7), 16)).collect();
        Arc::new(template.with_jobs(Arc::new(Workload::new(template.workload.applications.clone(), jobs)), seed))
    })
}

/// The allowed action a cheap hash points at; grows mostly, as a sensible policy does.
fn pick(mask: &[u8], hash: &mut u64) -> usize {
    *hash = hash.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let wait = mask.len() - 1;
    if mask[wait] == 1 && (*hash >> 33).is_multiple_of(3) {
        return wait;
    }
    let from = (*hash >> 20) as usize % mask.len();
    (from..mask.len()).chain(0..from).find(|&action| mask[action] == 1).unwrap_or(wait)
}

fn main() {
    println!("{:>8} {:>8} {:>12} {:>14} {:>12}", "jobs", "gap_s", "decisions", "decisions/s", "ns/decision");
    for (jobs, gap) in [(200, 60), (200, 25), (400, 12)] {
        let mut env = ClusterEnv::new(source(jobs, gap), EnvOptions::default());
        let mut observation = Observation::zeros(&env.layout());
        let (mut decisions, mut hash, mut sum, mut active) = (0u64, 1u64, 0.0f64, 0usize);
        let start = Instant::now();
        for episode in 0.. {
            env.reset(Some(episode), &ResetOptions::default(), observation.as_mut()).expect("a workload that runs");
            loop {
                let step =
                    env.step(pick(&observation.mask, &mut hash), observation.as_mut()).expect("an allowed action");
                decisions += 1;
                sum += f64::from(observation.features[8]);
                active += env.round().slots().len();
                if step.terminated || step.truncated {
                    break;
                }
            }
            if start.elapsed().as_secs_f64() > 2.0 {
                break;
            }
        }
        let secs = start.elapsed().as_secs_f64();
        let (rate, nanos) = (decisions as f64 / secs, secs * 1e9 / decisions as f64);
        println!(
            "{jobs:>8} {gap:>8} {decisions:>12} {rate:>14.0} {nanos:>12.0}   mean slots in use {:.1} ({})",
            active as f64 / decisions as f64,
            sum as u64 % 2
        );
    }
}
