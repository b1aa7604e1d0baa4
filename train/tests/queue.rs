//! Learned orders of batch queues: a queue with a known optimum, repeatable and resumable training, and the file that
//! ships.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests; a test that is skipped says so")]

use std::fmt::Write;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goodput_agents::bundle::{Model, PolicyBundle};
use goodput_agents::heuristic::backfill::JobOrder;
use goodput_agents::nets::weights::SetConfig;
use goodput_agents::policies::queue::QueueRule;
use goodput_configs::experiment::{
    AgentConfig, Experiment, QueueAgent, QueueEvolution, QueueLearner, QueueObjective, QueuePpo,
};
use goodput_configs::scenario::{FileWorkload, WindowsConfig, WorkloadConfig};
use goodput_configs::seeds::HELD_OUT;
use goodput_env::policy::Policy;
use goodput_env::scenario::Scenario;
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::Simulator;
use goodput_env::time::SimTime;
use goodput_eval::metrics::bounded_slowdown;
use goodput_train::Trained;
use rand::RngExt;

use crate::support::train_until;

const BACKFILL: &str = include_str!("../../configs/experiment/backfill.toml");

/// Jobs that are submitted at one time before two accelerators: half of them take both for 120 s, the others one for
/// 200 s. Two of these side by side are one job of twice the weight, so the optimum is Smith's rule (Naval Research
/// Logistics Quarterly 1956): length over weight, and the weight of a slowdown is one over the length. So the wide jobs
/// come first, which is shortest job first. Smallest area first, where the search begins, is the reverse.
const SLOW_AND_WIDE: [(u32, i64); 2] = [(2, 120), (1, 200)];

/// Jobs of one accelerator that are submitted at one time before two accelerators: of 1,000 s and of 100 s. The last
/// job ends soonest where the long ones come first (Graham, SIAM Journal on Applied Mathematics 1969; the longer length
/// is a multiple of the shorter one, so the rule is optimal). Smallest area first, where the search begins, is the
/// reverse.
const LONG_AND_SHORT: [(u32, i64); 2] = [(1, 100), (1, 1000)];

/// Trace of 240 jobs of two kinds, width and seconds; `first` is the share of the first kind.
fn trace(folder: &Path, kinds: [(u32, i64); 2], first: f64) -> PathBuf {
    let mut text = String::from("; MaxProcs: 2\n");
    let mut random = rng(1, Stream::Workload);
    for job in 1..=240 {
        let (width, secs) = kinds[usize::from(!random.random_bool(first))];
        writeln!(text, "{job} 0 -1 {secs} {width} -1 -1 {width} {secs} -1 1 -1 -1 -1 -1 -1 -1 -1").unwrap();
    }
    let path = folder.join("trace.swf");
    fs::write(&path, text).unwrap();
    path
}

fn experiment(folder: &Path, learner: QueueLearner) -> Experiment {
    let mut experiment = on(trace(folder, SLOW_AND_WIDE, 0.5), 2, 24);
    let objective = QueueObjective::BoundedSlowdown;
    experiment.agent = Some(AgentConfig::Queue(QueueAgent { rule: QueueRule::StrictOrder, objective, learner }));
    experiment
}

/// The experiment that ships, on windows of the trace at `path` and one node of `gpus` accelerators.
fn on(path: PathBuf, gpus: u32, jobs: usize) -> Experiment {
    let mut experiment: Experiment = toml::from_str(BACKFILL).unwrap();
    let group = &mut experiment.cluster.groups[0];
    (group.nodes, group.gpus_per_node) = (1, gpus);
    let windows = Some(WindowsConfig { jobs, held_out: 1.0 / 3.0 });
    experiment.workload = WorkloadConfig::File(FileWorkload { path, speeds: None, windows });
    experiment
}

fn learners() -> [(&'static str, QueueLearner); 2] {
    let evolution = QueueEvolution { population: 8, generations: 8, episodes: 4, step: 0.4 };
    let ppo = QueuePpo {
        net: SetConfig::new(NonZeroUsize::new(8).unwrap()),
        updates: 24,
        episodes: 4,
        slots: 32,
        learning_rate: 0.01,
        minibatch: 128,
        ..QueuePpo::default()
    };
    [("evolution", QueueLearner::Evolution(evolution)), ("ppo", QueueLearner::Ppo(ppo))]
}

fn bundle(trained: Trained) -> PolicyBundle {
    match trained {
        Trained::Complete(bundle) => *bundle,
        Trained::Stopped => panic!("stopped"),
    }
}

fn slowdown(scenarios: &[Arc<Scenario>], make: &dyn Fn() -> Box<dyn Policy>) -> f64 {
    let of = |scenario: &Arc<Scenario>| {
        let outcome = Simulator::new(scenario.clone()).run(&mut *make()).unwrap();
        let slowdowns: Vec<f64> = outcome.jobs.iter().filter_map(bounded_slowdown).collect();
        assert_eq!(slowdowns.len(), scenario.workload.jobs.len(), "all jobs end");
        slowdowns.iter().sum::<f64>() / slowdowns.len() as f64
    };
    scenarios.iter().map(of).sum::<f64>() / scenarios.len() as f64
}

fn trained(experiment: &Experiment, path: &Path, stop_after: Option<u64>) -> Trained {
    let by_ppo =
        matches!(&experiment.agent, Some(AgentConfig::Queue(agent)) if matches!(agent.learner, QueueLearner::Ppo(_)));
    train_until(experiment, path, if by_ppo { "train" } else { "evolve" }, stop_after)
}

#[test]
fn both_learners_find_the_known_optimum_of_a_small_queue() {
    let folder = tempfile::tempdir().unwrap();
    for (name, learner) in learners() {
        let experiment = experiment(folder.path(), learner);
        let setup = experiment.setup().unwrap();
        let held_out: Vec<Arc<Scenario>> = (HELD_OUT..HELD_OUT + 20).map(|seed| setup.scenario(seed)).collect();
        let of = |order| slowdown(&held_out, &|| QueueRule::StrictOrder.policy(order));
        let (optimum, start) = (of(JobOrder::Sjf), of(JobOrder::Saf));
        assert!(start > 1.05 * optimum, "the search begins with a worse rule: {start} {optimum}");
        let learned = bundle(trained(&experiment, &folder.path().join(name), None));
        let found = slowdown(&held_out, &|| learned.policy(Default::default()).unwrap());
        assert!((found - optimum).abs() < 1e-9, "{name}: {found}, the optimum is {optimum}");
    }
}

#[test]
fn both_learners_find_the_greatest_utilization_of_a_small_queue() {
    let folder = tempfile::tempdir().unwrap();
    let mut experiment = on(trace(folder.path(), LONG_AND_SHORT, 0.8), 2, 24);
    let setup = experiment.setup().unwrap();
    let held_out: Vec<Arc<Scenario>> = (HELD_OUT..HELD_OUT + 20).map(|seed| setup.scenario(seed)).collect();
    let optimum = |scenario: &Arc<Scenario>| {
        let jobs = &scenario.workload.jobs;
        let long = jobs.iter().filter(|job| job.request.limit == Some(SimTime::from_secs(1000))).count() as i64;
        let short = jobs.len() as i64 - long;
        let in_hundreds = (10 * long + short + 1) / 2;
        100 * in_hundreds.max(10 * ((long + 1) / 2))
    };
    let ends = |make: &dyn Fn() -> Box<dyn Policy>| -> Vec<i64> {
        let end = |scenario: &Arc<Scenario>| {
            let outcome = Simulator::new(scenario.clone()).run(&mut *make()).unwrap();
            let submit = scenario.workload.jobs[0].request.submit;
            (outcome.jobs.iter().filter_map(|job| job.finish).max().unwrap() - submit).as_millis() / 1000
        };
        held_out.iter().map(end).collect()
    };
    let best: Vec<i64> = held_out.iter().map(optimum).collect();
    let start = ends(&|| QueueRule::StrictOrder.policy(JobOrder::Saf));
    assert!(start.iter().sum::<i64>() as f64 > 1.05 * best.iter().sum::<i64>() as f64, "{start:?} {best:?}");
    for (name, learner) in learners() {
        let objective = QueueObjective::Utilization;
        experiment.agent = Some(AgentConfig::Queue(QueueAgent { rule: QueueRule::StrictOrder, objective, learner }));
        let learned = bundle(trained(&experiment, &folder.path().join(name), None));
        assert_eq!(ends(&|| learned.policy(Default::default()).unwrap()), best, "{name}");
    }
}

#[test]
fn stopping_and_resuming_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (name, learner) in learners() {
        let mut experiment = experiment(folder.path(), learner);
        match &mut experiment.agent {
            Some(AgentConfig::Queue(agent)) => match &mut agent.learner {
                QueueLearner::Evolution(evolution) => evolution.generations = 3,
                QueueLearner::Ppo(ppo) => ppo.updates = 3,
            },
            _ => panic!("not of a queue"),
        }
        let whole = bundle(trained(&experiment, &folder.path().join(format!("{name}-whole")), None));
        let parts = folder.path().join(format!("{name}-parts"));
        assert!(matches!(trained(&experiment, &parts, Some(1)), Trained::Stopped));
        let resumed = bundle(trained(&experiment, &parts, None));
        assert_eq!(whole.to_bytes(), resumed.to_bytes(), "{name}");
    }
}

#[test]
fn the_file_that_ships_trains_on_the_trace_of_the_publication() {
    let trace = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/rlscheduler/lublin_256.swf.gz"));
    if !trace.exists() {
        eprintln!("SKIPPED: {} is absent, and this test trains on it", trace.display());
        return;
    }
    let mut experiment = on(trace.into(), 256, 1024);
    experiment.train.validation_seeds = 2;
    match &mut experiment.agent {
        Some(AgentConfig::Queue(QueueAgent { learner: QueueLearner::Evolution(evolution), .. })) => {
            (evolution.population, evolution.generations, evolution.episodes) = (4, 2, 2);
        }
        _ => panic!("not of a queue"),
    }
    let folder = tempfile::tempdir().unwrap();
    let learned = bundle(trained(&experiment, &folder.path().join("run"), None));
    let Model::Queue(queue) = &learned.model else { panic!("{}", learned.kind()) };
    assert_eq!(queue.rule, QueueRule::Easy);
    let window = [experiment.setup().unwrap().scenario(HELD_OUT)];
    let found = slowdown(&window, &|| learned.policy(Default::default()).unwrap());
    let fcfs = slowdown(&window, &|| QueueRule::Easy.policy(JobOrder::Fcfs));
    assert!(found < fcfs, "it starts from smallest area first: {found} {fcfs}");
}
