//! The environment with everything on: pools, services, tenants with quotas, faults. Whatever the
//! mask allows, the guard lets pass.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{application, mixed_jobs};
use goodput_env::cluster::{Cluster, Pool};
use goodput_env::gym::{
    Action, ClusterEnv, Encoder, EnvOptions, Environment, ExpectedPeak, Layout, LoanVerb, Observation, ResetOptions,
    Reward, RewardTerm, Round, ScaleVerb, ScenarioSource, check,
};
use goodput_env::job::{Elasticity, JobRequest, Workload};
use goodput_env::model::{Checkpointing, FaultModel};
use goodput_env::placement::ShareRequest;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::service::Service;
use goodput_env::tenant::{Group, Quota, Tenants};
use goodput_env::time::SimTime;
use rand::RngExt;

fn cluster() -> Cluster {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Training, "gpu", 3, 4);
    cluster.add_to(Pool::Inference, "gpu", 4, 4);
    cluster.add_to(Pool::Shared, "gpu", 2, 4);
    cluster
}

fn loaded(name: &str, seed: u64, gpus: u32) -> Arc<Service> {
    let mut random = rng(seed, Stream::Workload);
    let rates: Vec<f64> = (0..24 * 12).map(|_| random.random_range(0.0..250.0)).collect();
    crate::support::service(name, SimTime::from_secs(300), &rates, gpus)
}

fn tenants() -> Arc<Tenants> {
    let tenant = |name: &str, nominal: u64| Group {
        cohort: Some("all".into()),
        quotas: BTreeMap::from([("gpu".to_string(), Quota { nominal, borrowing_limit: Some(6), lending_limit: None })]),
        ..Group::named(name)
    };
    let cohort = Group::named("all");
    Arc::new(Tenants::new(vec![tenant("a", 8), tenant("b", 6)], vec![cohort], Vec::new(), &["gpu"]).unwrap())
}

fn source(faults: bool) -> ScenarioSource {
    let options = SimOptions {
        horizon: Some(SimTime::from_secs(24 * 3600)),
        faults: faults.then(|| FaultModel { mtbf_hours: 20.0, ..FaultModel::default() }),
        checkpoint: faults.then(Checkpointing::default),
        ..SimOptions::standard()
    };
    let template = Scenario::new(Arc::new(cluster()), Arc::new(Workload::new(vec![application()], vec![])), options, 0);
    Arc::new(move |seed| {
        let mut jobs = mixed_jobs(seed, 40, 1200);
        jobs.iter_mut().enumerate().for_each(|(at, job)| job.request.tenant = at as u32 % 2);
        let workload = Workload {
            services: vec![loaded("one", seed, 1), loaded("two", seed + 100, 2)],
            tenants: tenants(),
            ..Workload::new(template.workload.applications.clone(), jobs)
        };
        Arc::new(Scenario::new(template.cluster.clone(), Arc::new(workload), template.options.clone(), seed))
    })
}

fn options() -> EnvOptions {
    EnvOptions { slots: 16, services: 2, pools: true, tenants: true, ..EnvOptions::default() }
}

/// Random episodes: every plan of an allowed round passes the guard, or `step` would fail.
#[test]
fn what_the_mask_allows_the_guard_lets_pass() {
    let (mut loans, mut scales, mut violated) = ([0_u32; 2], [0_u32; 2], 0);
    for seed in 0..12 {
        let mut env = ClusterEnv::new(source(seed % 2 == 1), options());
        let layout = env.layout();
        let mut random = rng(seed, Stream::Exploration);
        let mut observation = Observation::zeros(&layout);
        env.reset(Some(seed), &ResetOptions::default(), observation.as_mut()).unwrap();
        loop {
            let allowed: Vec<usize> = (0..layout.actions()).filter(|&action| observation.mask[action] == 1).collect();
            let action = allowed[random.random_range(0..allowed.len())];
            match Action::decode(action, &layout).unwrap() {
                Action::Loan(LoanVerb::Lend) => loans[0] += 1,
                Action::Loan(LoanVerb::Reclaim) => loans[1] += 1,
                Action::Scale { verb: ScaleVerb::Out, .. } => scales[0] += 1,
                Action::Scale { verb: ScaleVerb::In, .. } => scales[1] += 1,
                Action::Change { .. } | Action::Wait => {}
            }
            let step = env.step(action, observation.as_mut()).unwrap();
            if step.terminated || step.truncated {
                break;
            }
        }
        let outcome = env.simulator().unwrap().clone().outcome();
        violated += outcome.services.iter().filter(|service| service.violated > 0).count();
        assert!(outcome.services.iter().all(|service| service.violated <= service.requests));
        assert!(outcome.loans.returned <= outcome.loans.lent);
    }
    assert!(loans.iter().chain(&scales).all(|&count| count > 20), "loans {loans:?}, replicas {scales:?}");
    assert!(violated > 0, "random scaling breaks objectives");
}

/// The term of late requests adds up to what the run counts, step by step and not only where a
/// service changes.
#[test]
fn late_requests_are_rewarded_when_they_are_late() {
    let terms = vec![RewardTerm::SloViolations { weight: 1.0 }];
    let options = EnvOptions { reward: Reward { terms, ..Reward::default() }, ..options() };
    let mut env = ClusterEnv::new(source(true), options);
    let mut observation = Observation::zeros(&env.layout());
    env.reset(Some(3), &ResetOptions::default(), observation.as_mut()).unwrap();
    let mut random = rng(3, Stream::Exploration);
    let late = |env: &ClusterEnv| -> u64 {
        let outcome = env.simulator().unwrap().clone().outcome();
        outcome.services.iter().map(|service| service.violated).sum()
    };
    // Before the first decision no policy could act.
    let (before, mut total) = (late(&env), 0.0);
    loop {
        let actions = env.layout().actions();
        let allowed: Vec<usize> = (0..actions).filter(|&action| observation.mask[action] == 1).collect();
        let step = env.step(allowed[random.random_range(0..allowed.len())], observation.as_mut()).unwrap();
        total += step.reward;
        let since = late(&env) - before;
        assert!((total + since as f64 / 1e9).abs() < 1e-6, "{total} and {since} at {}", env.simulator().unwrap().now());
        if step.terminated || step.truncated {
            break;
        }
    }
    assert!(total < -1.0, "random scaling is late often: {total}");
}

#[test]
fn the_checker_finds_nothing_wrong() {
    for faults in [false, true] {
        for finding in check(&ClusterEnv::new(source(faults), options()), 7, 3, 3000).unwrap() {
            assert_eq!(finding.problem, None, "{}", finding.check);
        }
    }
}

/// A learned policy gives a whole accelerator to a job that asks for a part, and the guard lets it pass.
#[test]
fn jobs_that_ask_for_parts_are_jobs_like_others() {
    let whole = source(true);
    let parts: ScenarioSource = Arc::new(move |seed| {
        let mut scenario = Scenario::clone(&whole(seed));
        for (index, job) in
            Arc::make_mut(&mut scenario.workload).jobs.iter_mut().enumerate().filter(|(at, _)| at % 2 == 0)
        {
            let share = ShareRequest { compute_percent: 10 + index as u32, memory_mib: 0 };
            job.request =
                JobRequest { gpus: 1, elasticity: Elasticity::Rigid, share: Some(share), ..job.request.clone() };
        }
        Arc::new(scenario)
    });
    for finding in check(&ClusterEnv::new(parts, options()), 7, 3, 3000).unwrap() {
        assert_eq!(finding.problem, None, "{}", finding.check);
    }
}

#[test]
fn actions_have_numbers() {
    let layout = options().layout();
    for number in 0..layout.actions() {
        assert_eq!(Action::decode(number, &layout).unwrap().encode(&layout), number);
    }
    assert_eq!(Action::decode(layout.actions(), &layout), None);
    let plain = EnvOptions::default().layout();
    assert_eq!((plain.others(), plain.wait()), (1, 192));
}

/// Features that the options leave out are absent, and those of jobs are equal either way.
#[test]
fn jobs_look_the_same_without_the_rest() {
    let mut env = ClusterEnv::new(source(false), EnvOptions { slots: 16, ..EnvOptions::default() });
    let mut observation = Observation::zeros(&env.layout());
    env.reset(Some(3), &ResetOptions::default(), observation.as_mut()).unwrap();
    let observe = |layout: Layout| {
        let (mut round, mut encoder) = (Round::default(), Encoder::new(layout));
        let view = env.view().unwrap();
        round.begin(&view, &layout);
        encoder.begin(&view, &round);
        encoder.observation().to_vec()
    };
    let (all, few) = (options().layout(), env.layout());
    let (rich, plain) = (observe(all), observe(few));
    assert_eq!(plain, observation.features);
    for slot in 0..16 {
        let (of_rich, of_plain) = (&rich[slot * all.slot_features..], &plain[slot * few.slot_features..]);
        assert_eq!(of_rich[..few.slot_features], of_plain[..few.slot_features], "slot {slot}");
    }
}

#[test]
fn a_forecaster_plugs_in() {
    let expected = |peak: ExpectedPeak| {
        let mut env = ClusterEnv::new(source(false), options()).with_expected_peak(peak);
        let mut observation = Observation::zeros(&env.layout());
        env.reset(Some(3), &ResetOptions::default(), observation.as_mut()).unwrap();
        let layout = env.layout();
        observation.features[layout.slots * layout.slot_features + 16 + 3]
    };
    assert!(
        expected(ExpectedPeak::new(|_, _| 0.0)) < expected(ExpectedPeak::new(|service, _| service.rate() + 1000.0))
    );
}
