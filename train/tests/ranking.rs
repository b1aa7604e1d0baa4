//! Policy gradients over rankings: an order that is known to be optimal is found; repeatable,
//! resumable, whatever the number of threads.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader of a failure")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use goodput_agents::bundle::{Model, PolicyBundle};
use goodput_agents::compose;
use goodput_agents::nets::weights::SetConfig;
use goodput_agents::policies::ranking::learner::{RankingConfig, RankingLearner};
use goodput_agents::policies::ranking::{Decoding, Ranked, Ranking, RankingNet};
use goodput_agents::policies::rounds::Decoder;
use goodput_agents::policies::utility::{Experience, Theta, Utility, UtilityPolicy};
use goodput_configs::experiment::{AgentConfig, Experiment};
use goodput_env::cluster::Cluster;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::model::SwitchCost;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, keyed, rng};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use goodput_train::ranking::rollouts::Rollouts;
use goodput_train::run_dir::RunDir;
use goodput_train::validate::mean_jct_secs;
use goodput_train::{Hooks, Trained, train};
use rand::RngExt;

/// Two accelerators, and two kinds of jobs: short ones that need both, long ones that need one. An
/// accelerator is worth more to a long one by Sia's objective, and nobody is told lengths; the
/// optimum is to let every short one by.
fn two_kinds(seed: u64) -> Arc<Scenario> {
    let mut random = rng(seed, Stream::Workload);
    let mut now = 0.0;
    let jobs = (0..40).map(|at| {
        now += -150.0 * (1.0 - random.random::<f64>()).ln();
        let (gpus, secs) = if random.random::<f64>() < 0.8 { (2, 20.0) } else { (1, 1000.0) };
        let request = JobRequest {
            name: format!("{at}"),
            submit: SimTime::from_secs_f64(now),
            gpus,
            batch_size: None,
            elasticity: Elasticity::Rigid,
            ..JobRequest::default()
        };
        JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs_f64(secs) } }
    });
    let workload = Workload::new(Vec::new(), jobs.collect());
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        information: Information::Oracle,
        ..SimOptions::standard()
    };
    Arc::new(Scenario::new(Arc::new(Cluster::homogeneous(1, 2)), Arc::new(workload), options, seed))
}

/// Mean completion time over held-out seeds, seconds.
fn score(mut policy: impl FnMut() -> Box<dyn Policy>) -> f64 {
    let one = |seed| mean_jct_secs(&Simulator::new(two_kinds(seed)).run(&mut *policy()).unwrap());
    (1_000_000..1_000_040).map(one).sum::<f64>() / 40.0
}

#[test]
fn the_order_of_two_kinds_of_jobs_is_found() {
    let utility = Utility { theta: Theta::sia(), experience: Experience::default(), siblings: false, efficiency: true };
    let decoder = Decoder::new(Batching::Requested, Information::Profiled);
    let rollouts = Rollouts { utility: &utility, decoder, each: 8, temperature: 0.5, beta: 0.0, seed: 5 };
    let mut learner = RankingLearner::new(RankingNet::new(&SetConfig::default(), 5));
    let updates = 40;
    for update in 0..updates {
        let scenarios: Vec<_> = (0..4).map(|at| two_kinds(4 * update + at)).collect();
        let seen = rollouts.play(learner.net(), &scenarios, update).unwrap();
        let left = 1.0 - update as f32 / updates as f32;
        let config = RankingConfig {
            temperature: 0.5,
            epochs: 4,
            minibatch: 256,
            clip: 0.2,
            max_grad_norm: 0.5,
            target_kl: 0.0,
            learning_rate: 3e-3 * left,
            entropy: 0.0,
            reference_kl: 0.0,
        };
        let mut shuffle = keyed(5, Stream::Exploration, 1 << 40 | update);
        learner.update(&config, &seen.rounds, &seen.advantages, &mut shuffle).unwrap();
    }
    let of = |net: &RankingNet, decoding| {
        let ranking = Ranking { utility: utility.clone(), net: net.clone(), decoding };
        let Decoder { batching, information, .. } = decoder;
        score(|| Box::new(UtilityPolicy::dividing(&utility, batching, information, Ranked::new(&ranking))))
    };
    let [walked, packed] = Decoding::ALL.map(|decoding| of(learner.net(), decoding));
    let start = of(&RankingNet::new(&SetConfig::default(), 5), Decoding::PlackettLuce);
    let optimum = score(|| compose::by_name("srtf", 0).unwrap());
    println!("mean JCT: start {start:.1} s, walked {walked:.1} s, packed {packed:.1} s, SRPT {optimum:.1} s");
    assert!(start > 1.2 * optimum, "there is something to learn: {start:.1} s, SRPT {optimum:.1} s");
    assert!(walked <= 1.02 * optimum && packed <= 1.02 * optimum, "{walked:.1} s, {packed:.1} s, SRPT {optimum:.1} s");
}

const ELASTIC: &str = include_str!("../../configs/experiment/elastic-ppo.toml");

/// The experiment, small.
fn experiment() -> Experiment {
    let text = ELASTIC.replace("work_spread = 1.0", "work_spread = 1.0\njobs = 20\nhours = 1");
    let mut experiment: Experiment = toml::from_str(&text).unwrap();
    experiment.cluster.groups[0].nodes = 2;
    experiment.train.loads = vec![0.5, 1.0];
    experiment.train.validation_seeds = 1;
    experiment.train.evaluate_every = 2;
    experiment.evaluate.loads = vec![0.5, 1.0];
    let Some(AgentConfig::Ranking(agent)) = &mut experiment.agent else { panic!("not a ranking") };
    (agent.updates, agent.episodes, agent.rollouts, agent.minibatch) = (4, 2, 3, 128);
    // Large steps, so that what is learnt in four updates shows.
    agent.learning_rate = 1e-2;
    experiment
}

fn run(path: &Path, stop_after: Option<u64>) -> Trained {
    let experiment = experiment();
    let dir = match path.join("config.toml").exists() {
        true => RunDir::open(path).unwrap(),
        false => {
            let dir = RunDir::create(path).unwrap();
            dir.write("config.toml", b"the same for all runs").unwrap();
            dir
        }
    };
    let (stop, reports) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |_| {
        // The first is that of the start.
        if stop_after == Some(reports.fetch_add(1, Ordering::Relaxed)) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    train(&experiment, &dir, &Hooks { stop: &stop, progress: &progress, argv: vec!["test".into()] }).unwrap()
}

/// The learner, the best policy, where training stands, its progress, and the policy under each
/// decoding.
fn fingerprint(path: &Path, trained: &Trained) -> Vec<Vec<u8>> {
    let Trained::Complete(bundle) = trained else { panic!("not complete") };
    let latest = std::fs::read_to_string(path.join("checkpoints/latest")).unwrap();
    let files = ["learner.bin", "best.bin", "state.json"].map(|name| path.join(&latest).join(name));
    let others = ["progress.csv", "plackett-luce/policy.bundle", "knapsack/policy.bundle"].map(|name| path.join(name));
    let mut bytes: Vec<_> = files.iter().chain(&others).map(|file| std::fs::read(file).unwrap()).collect();
    bytes.push(bundle.to_bytes());
    bytes
}

#[test]
fn stopping_and_resuming_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let expected = fingerprint(&whole, &run(&whole, None));
    let halves = dir.path().join("halves");
    assert!(matches!(run(&halves, Some(3)), Trained::Stopped));
    assert_eq!(fingerprint(&halves, &run(&halves, None)), expected);
    let best = PolicyBundle::load(&halves.join("knapsack/policy.bundle")).unwrap();
    let Model::Ranking(ranking) = &best.model else { panic!("{}", best.kind()) };
    assert_eq!(ranking.decoding, Decoding::Knapsack);
    assert!(ranking.utility.experience.models().any(|(model, _)| model == "cifar10"));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let with_threads = |threads: usize| {
        let path = dir.path().join(threads.to_string());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| fingerprint(&path, &run(&path, None)))
    };
    assert_eq!(with_threads(1), with_threads(3));
}

#[test]
fn what_it_cannot_learn_from_is_refused() {
    let refused = |change: &dyn Fn(&mut Experiment)| {
        let mut experiment = experiment();
        change(&mut experiment);
        experiment.setup().unwrap_err().to_string()
    };
    let agent = |change: &'static dyn Fn(&mut goodput_configs::experiment::RankingAgent)| {
        refused(&move |experiment| {
            let Some(AgentConfig::Ranking(agent)) = &mut experiment.agent else { panic!("not a ranking") };
            change(agent);
        })
    };
    assert!(agent(&|agent| agent.rollouts = 1).contains("agent.ranking.rollouts"));
    assert!(agent(&|agent| agent.temperature = 0.0).contains("agent.ranking.temperature"));
    assert!(agent(&|agent| _ = agent.start.insert("expnent".into(), 1.0)).contains("agent.ranking.start"));
    let two_types = refused(&|experiment| {
        let other =
            goodput_configs::scenario::NodeGroup { accelerator: "v100".into(), ..experiment.cluster.groups[0].clone() };
        experiment.cluster.groups.push(other);
    });
    assert!(two_types.contains("agent.evolution"), "{two_types}");
}
