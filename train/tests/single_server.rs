//! A queue before one accelerator, lengths known, preemption free: there the shortest remaining
//! time first is optimal (Schrage 1968), so a learner can be held against a known optimum.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader of a failure")]

use std::sync::Arc;

use goodput_agents::bundle::{Card, Model, PolicyBundle};
use goodput_agents::compose;
use goodput_agents::learning::adam::AdamConfig;
use goodput_agents::learning::gae::{GaeConfig, TraceDecay};
use goodput_agents::learning::learner::Learner;
use goodput_agents::learning::ppo::{PpoConfig, PpoRates};
use goodput_agents::nets::weights::NetConfig;
use goodput_agents::policies::rounds::Decoder;
use goodput_env::cluster::Cluster;
use goodput_env::gym::{ClusterEnv, EnvOptions, Environment};
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::model::SwitchCost;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, keyed, rng};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use goodput_train::rollout::{Collect, Rollout};
use goodput_train::scaling::ReturnScale;
use goodput_train::validate::jct_mean_secs;
use rand::RngExt;

const JOBS: usize = 60;
const MEAN_SECS: f64 = 100.0;
const LOAD: f64 = 0.8;

/// Poisson arrivals, exponential lengths.
fn scenario(seed: u64) -> Arc<Scenario> {
    let mut random = rng(seed, Stream::Workload);
    let mut exponential = |mean: f64| -mean * (1.0 - random.random::<f64>()).ln();
    let mut now = 0.0;
    let jobs = (0..JOBS).map(|index| {
        now += exponential(MEAN_SECS / LOAD);
        let request = JobRequest {
            name: index.to_string(),
            tenant: 0,
            submit: SimTime::from_secs_f64(now),
            gpus: 1,
            batch_size: None,
            elasticity: Elasticity::Rigid,
            ..JobRequest::default()
        };
        JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs_f64(exponential(MEAN_SECS).max(1.0)) } }
    });
    let workload = Workload::new(Vec::new(), jobs.collect());
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        information: Information::Oracle,
        ..SimOptions::standard()
    };
    Arc::new(Scenario::new(Arc::new(Cluster::homogeneous(1, 1)), Arc::new(workload), options, seed))
}

/// Mean completion time over held-out seeds, seconds.
fn score(mut policy: impl FnMut() -> Box<dyn Policy>) -> f64 {
    let seeds = 1_000_000..1_000_200;
    let one = |seed| jct_mean_secs(&Simulator::new(scenario(seed)).run(&mut *policy()).unwrap());
    seeds.map(one).sum::<f64>() / 200.0
}

#[test]
fn a_learned_policy_comes_close_to_the_optimum() {
    let env = ClusterEnv::new(Arc::new(scenario), EnvOptions { slots: 16, ..EnvOptions::default() });
    let (envs, steps, updates) = (16, 128, 60);
    let mut rollout = Rollout::new(&env, envs, steps, 5).unwrap();
    let mut learner = Learner::new(&NetConfig::Set(Default::default()), env.layout(), AdamConfig::default(), 5);
    let (mut scale, mut e) = (ReturnScale::new(envs), rollout.experience());
    let gae = GaeConfig { beta: std::f64::consts::LN_2 / 1000.0, lambda: 0.95, trace: TraceDecay::Decision };
    let config = PpoConfig { minibatch: 256, target_kl: 0.05, ..PpoConfig::default() };
    for update in 0..updates {
        let how = Collect { iteration: update, seed: 5, gae, teacher_share: 0.0 };
        rollout.collect(learner.weights(), how, None, &mut scale, &mut e).unwrap();
        let batch = e.batch();
        let left = 1.0 - update as f32 / updates as f32;
        let rates = PpoRates { learning_rate: 2e-3 * left, entropy: 0.01 * left, reference_kl: 0.0 };
        learner.ppo(&config, rates, &batch, None, &mut keyed(5, Stream::Exploration, 1 << 40 | update)).unwrap();
    }
    let decoder = Decoder::new(Batching::Catalog, Information::Oracle);
    let card = Card { decoder: serde_json::to_value(decoder).unwrap(), ..Card::default() };
    let bundle = PolicyBundle { model: Model::Net(learner.weights().clone()), normaliser: None, card };
    let learned = score(|| Box::new(bundle.playing().unwrap()));
    let optimum = score(|| compose::by_name("srtf", 0).unwrap());
    let fifo = score(|| compose::by_name("fifo", 0).unwrap());
    println!("mean JCT: learned {learned:.1} s, SRPT {optimum:.1} s, FIFO {fifo:.1} s");
    assert!(learned <= 1.02 * optimum, "learned {learned:.1} s, SRPT {optimum:.1} s");
    assert!(learned <= 0.8 * fifo, "learned {learned:.1} s, FIFO {fifo:.1} s");
}
