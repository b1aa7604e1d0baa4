//! Reward terms add up to the metrics that they are named after.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::{application, fixed, mixed_jobs, scenario};
use goodput_env::cluster::Cluster;
use goodput_env::gym::{
    Action, ClusterEnv, Discount, EnvOptions, Environment, Observation, ResetOptions, Reward, RewardTerm,
    ScenarioSource, Verb,
};
use goodput_env::job::Workload;
use goodput_env::model::{Checkpointing, FaultModel, SwitchCost};
use goodput_env::scenario::{Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use rand::RngExt;

fn options(term: RewardTerm) -> EnvOptions {
    EnvOptions { slots: 8, reward: Reward { terms: vec![term], scale_secs: 1.0 }, ..EnvOptions::default() }
}

/// Two jobs that both take the two accelerators, submitted at one time: one of 100 s and one of 5 s. Rewards and
/// elapsed seconds of the steps in which time passes, with the job in slot `first` before the other.
fn two_jobs(first: usize, term: RewardTerm) -> Vec<(f64, f64)> {
    let run = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        ..SimOptions::standard()
    };
    let scenario = scenario("1x2", vec![fixed("long", 0, 2, 100), fixed("short", 0, 2, 5)], run);
    let mut env = ClusterEnv::new(Arc::new(move |_| scenario.clone()), options(term));
    let (layout, mut observation) = (env.layout(), Observation::zeros(&env.layout()));
    env.reset(Some(0), &ResetOptions::default(), observation.as_mut()).unwrap();
    let grow = |slot| Action::Change { slot, verb: Verb::Grow }.encode(&layout);
    let mut steps = Vec::new();
    // The second job is the only one, in the first slot, once the other has ended.
    for action in [grow(first), layout.wait(), grow(0), layout.wait()] {
        let step = env.step(action, observation.as_mut()).unwrap();
        match step.elapsed_secs > 0.0 {
            true => steps.push((step.reward, step.elapsed_secs)),
            false => assert!(step.reward.abs() < 1e-9, "no time has passed"),
        }
    }
    assert_eq!(env.simulator().unwrap().now(), SimTime::from_secs(105));
    steps
}

#[test]
fn bounded_slowdowns_of_two_jobs_are_known() {
    let slowdown = RewardTerm::BoundedSlowdown { weight: 1.0 };
    let close = |found: Vec<(f64, f64)>, expected: [(f64, f64); 2]| {
        assert_eq!(found.len(), 2);
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found.0 - expected.0).abs() < 1e-9 && found.1 == expected.1, "{found:?}, not {expected:?}");
        }
    };
    // Long first: it ends with 1, and the short one has waited ten times the bound of 10 s. It ends with 105 / 10.
    close(two_jobs(0, slowdown), [(-11.0, 100.0), (-0.5, 5.0)]);
    // Short first: it ends with 1, though 5 s are half the bound, and the long one is 5 s old. It ends with 105 / 100.
    close(two_jobs(1, slowdown), [(-1.05, 5.0), (-1.0, 100.0)]);
    // Whatever comes first, all accelerators are held all the time.
    let utilization = RewardTerm::Utilization { weight: 2.0 };
    close(two_jobs(0, utilization), [(200.0, 100.0), (10.0, 5.0)]);
    close(two_jobs(1, utilization), [(10.0, 5.0), (200.0, 100.0)]);
}

fn crowded(faults: bool) -> ScenarioSource {
    let options = SimOptions {
        faults: faults.then(|| FaultModel { mtbf_hours: 20.0, ..FaultModel::default() }),
        checkpoint: faults.then(Checkpointing::default),
        ..SimOptions::standard()
    };
    let cluster = Arc::new(Cluster::parse("4x4").unwrap());
    let template = Scenario::new(cluster, Arc::new(Workload::new(vec![application()], vec![])), options, 0);
    Arc::new(move |seed| {
        let workload = Workload::new(template.workload.applications.clone(), mixed_jobs(seed, 24, 300));
        Arc::new(template.with_jobs(Arc::new(workload), seed))
    })
}

/// Elastic jobs change their sizes at random, and hardware fails, so run times are not those at the requested size.
#[test]
fn bounded_slowdowns_add_up_to_those_of_the_jobs() {
    let seed = 5;
    for (faults, discount) in [(false, None), (true, None), (true, Discount::with_half_life_secs(1e12))] {
        let options = options(RewardTerm::BoundedSlowdown { weight: 1.0 });
        let mut env = ClusterEnv::new(crowded(faults), options).with_discount(discount);
        let mut observation = Observation::zeros(&env.layout());
        env.reset(Some(seed), &ResetOptions::default(), observation.as_mut()).unwrap();
        let mut random = rng(seed, Stream::Exploration);
        // Before the first decision no policy could act.
        let (mut total, mut steps) = (-env.simulator().unwrap().bounded_slowdowns(), 0);
        loop {
            let allowed: Vec<usize> =
                (0..env.layout().actions()).filter(|&action| observation.mask[action] == 1).collect();
            let step = env.step(allowed[random.random_range(0..allowed.len())], observation.as_mut()).unwrap();
            total += step.reward;
            steps += usize::from(step.reward < 0.0);
            assert!(!step.truncated, "the sum is that of all jobs");
            if step.terminated {
                break;
            }
        }
        let outcome = env.simulator().unwrap().clone().outcome();
        let slowdowns: Vec<f64> = outcome.jobs.iter().filter_map(|job| job.bounded_slowdown()).collect();
        assert_eq!(slowdowns.len(), outcome.jobs.len());
        let sum: f64 = slowdowns.iter().sum();
        assert!((total + sum).abs() < 1e-6 * sum, "{total} and {sum}");
        assert!(sum > 1.5 * slowdowns.len() as f64, "jobs wait: {sum}");
        assert!(steps > slowdowns.len(), "costs fall due before jobs end: {steps} steps");
    }
}
