//! Logged decisions: what is written is what is read, damage is an error, and learning from them is
//! as repeatable as the rest.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use goodput_configs::experiment::{Algorithm, Experiment};
use goodput_datasets::DataError;
use goodput_datasets::store::decisions::{Behaviour, EpisodeEnd, LoggedDecision};
use goodput_datasets::store::{DataProvenance, DecisionLog};
use goodput_env::gym::Layout;
use goodput_train::offline::{Dataset, Minibatch};
use goodput_train::run_dir::RunDir;
use goodput_train::{Hooks, TrainError, Trained, log, train};

const EXPERIMENT: &str = r#"
name = "small"
seed = 3

[[cluster.groups]]
accelerator = "t4"
nodes = 8
gpus_per_node = 4

[workload.synthetic.diurnal]
jobs = 10
jobs_per_hour = 20.0

[environment]
information = { estimate = { sigma = 0.5 } }
slots = 8

[agent.offline]
minibatch = 32
minibatches_per_update = 2
critic_warmup = 128

[agent.offline.net.set]
width = 8

[train]
decisions = 512
evaluate_every = 4
checkpoint_every = 100
validation_seeds = 1

[evaluate]
policies = ["srtf"]
seeds = 1
"#;

fn experiment() -> Experiment {
    toml::from_str(EXPERIMENT).unwrap()
}

fn behaviours() -> Vec<Behaviour> {
    [("srtf", 0.0), ("srtf", 0.3), ("fifo", 0.1)].map(|(name, noise)| Behaviour { name: name.into(), noise }).to_vec()
}

fn logged() -> DecisionLog {
    log::log(&experiment(), &behaviours(), 100, &|_| ()).unwrap()
}

const TINY: Layout = Layout { slots: 3, slot_features: 2, globals: 1, verbs: 3, services: 0, pools: false, types: 0 };

/// Three episodes on two workloads: one of them cut off.
fn by_hand() -> DecisionLog {
    let mut log = DecisionLog::new(TINY, "meaning");
    let mask = [1, 0, 0, 0, 0, 1, 0, 0, 0, 1];
    let decide = |log: &mut DecisionLog, features: &[f32], action, reward, dt_secs| {
        log.push(&LoggedDecision { features, mask: &mask, action, propensity: 0.5, reward, dt_secs });
    };
    let behaviour = |noise| Behaviour { name: "by hand".into(), noise };
    let last = [1.0, 9.0, 0.0, 0.0, 0.0, 0.0, 4.0];
    decide(&mut log, &[1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 7.0], 0, -1.0, 0.0);
    decide(&mut log, &[1.0, 2.0, 1.0, 3.0, 0.0, 0.0, 8.0], 5, -2.0, 10.0);
    log.finish(behaviour(0.0), 1 << 63, EpisodeEnd::Truncated, (&last, &mask));
    decide(&mut log, &[0.0, 0.0, 1.0, 5.0, 0.0, 0.0, 6.0], 9, -4.0, 10.0);
    log.finish(behaviour(0.5), 1 << 63, EpisodeEnd::Terminated, (&last, &mask));
    decide(&mut log, &[0.0; 7], 9, -100.0, 20.0);
    log.finish(behaviour(0.0), 7, EpisodeEnd::Terminated, (&last, &mask));
    log
}

#[test]
fn what_is_written_is_what_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let typed = by_hand().with_types(vec!["t4".into(), "a100".into()]);
    let logs = [("by-hand", by_hand()), ("logged", logged()), ("typed", typed), ("empty", DecisionLog::new(TINY, ""))];
    for (name, log) in logs {
        let (path, again) = (dir.path().join(name), dir.path().join("again"));
        log.write(&path, &DataProvenance::generated("a test", name, 0)).unwrap();
        assert!(DecisionLog::read(&path).unwrap() == log, "{name}");
        log.write(&again, &DataProvenance::generated("a test", name, 0)).unwrap();
        assert!(std::fs::read(&path).unwrap() == std::fs::read(&again).unwrap(), "{name}");
    }
}

#[test]
fn damage_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    by_hand().write(&path, &DataProvenance::default()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&path, &damaged).unwrap();
        let _ = DecisionLog::read(&path);
        std::fs::write(&path, &bytes[..at]).unwrap();
        assert!(DecisionLog::read(&path).is_err(), "cut at {at}");
    }
    goodput_datasets::store::Table::default().write_parquet(&path).unwrap();
    let error = DecisionLog::read(&path).unwrap_err();
    assert!(matches!(error, DataError::ColumnType { .. }), "{error}");
}

#[test]
fn forbidden_actions_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    for (action, mask) in [(1, [1u8, 0, 0, 0, 0, 0, 0, 0, 0, 1]), (12, [1; 10]), (0, [0; 10])] {
        let mut log = DecisionLog::new(TINY, "");
        log.push(&LoggedDecision {
            features: &[0.0; 7],
            mask: &mask,
            action,
            propensity: 1.0,
            reward: 0.0,
            dt_secs: 0.0,
        });
        log.finish(Behaviour { name: "x".into(), noise: 0.0 }, 1, EpisodeEnd::Terminated, (&[], &[]));
        log.write(&path, &DataProvenance::default()).unwrap();
        let error = DecisionLog::read(&path).unwrap_err();
        assert!(matches!(error, DataError::Row { line: 1, .. }), "{error}");
    }
}

#[test]
fn a_log_of_other_accelerator_types_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let [logs, experiments] = [["t4", "a100"], ["a100", "t4"]].map(|names| names.map(str::to_owned).to_vec());
    let log = logged().with_types(logs.clone());
    log.write(&path, &DataProvenance::default()).unwrap();
    assert!(Dataset::read(&path, (log.layout(), &logs), 1e-3, 1.0).is_ok());
    let error = Dataset::read(&path, (log.layout(), &experiments), 1e-3, 1.0).err().unwrap().to_string();
    assert!(error.contains("it tells t4, a100 apart, the experiment a100, t4"), "{error}");
}

#[test]
fn minibatches_are_the_transitions_of_the_log() {
    let mut minibatch = Minibatch::default();
    let all = Dataset::new(by_hand(), std::f64::consts::LN_2 / 10.0, 1.0);
    assert_eq!(all.len(), 4);
    // In order of return over the mean of the workload: the only one of its workload, then the
    // others.
    let order: Vec<usize> = (0..4).collect();
    all.gather(&order, &mut minibatch);
    let batch = minibatch.batch_with_returns();
    let first = batch.actions.iter().position(|&action| action == 0).unwrap();
    let next = &batch.next_observations[first * 7..first * 7 + 7];
    assert_eq!(next, [1.0, 2.0, 1.0, 3.0, 0.0, 0.0, 8.0]);
    assert_eq!(batch.discounts[first], 1.0, "no time passed");
    let second = batch.actions.iter().position(|&action| action == 5).unwrap();
    assert_eq!(
        &batch.next_observations[second * 7..second * 7 + 7],
        [1.0, 9.0, 0.0, 0.0, 0.0, 0.0, 4.0],
        "the closing row"
    );
    assert_eq!(batch.discounts[second], 0.5);
    assert_eq!(batch.masks[second * 10..second * 10 + 10], [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    let ended = batch.rewards.iter().zip(batch.discounts).filter(|(_, discount)| **discount == 0.0).count();
    assert_eq!(ended, 2);
    let returns = batch.returns.unwrap();
    assert!((returns[first] / batch.rewards[first] - 3.0).abs() < 1e-5, "-1 and -2 with no time between them");

    // Half of three episodes is two: -3 beats the -3.5 of its workload's mean, and the lonely one
    // is its own mean.
    let best = Dataset::new(by_hand(), 1.0, 0.5);
    assert_eq!(best.len(), 3);
}

#[test]
fn relative_rewards_are_what_was_won_of_the_others() {
    let log = logged();
    let totals = |seed: u64| log.episodes().iter().filter(move |other| other.seed == seed).map(|other| other.total);
    // Without discounting, what an episode wins is its return less the mean of the others'.
    let relative = Dataset::new(log.clone(), 0.0, 1.0).relative(1.0);
    let mut minibatch = Minibatch::default();
    relative.gather(&(0..relative.len()).collect::<Vec<_>>(), &mut minibatch);
    let mut rewards = minibatch.batch().rewards.iter();
    let mut won = Vec::new();
    let mut ranked: Vec<_> = log.episodes().iter().collect();
    let mean = |seed: u64| totals(seed).sum::<f64>() / totals(seed).count() as f64;
    ranked.sort_by(|a, b| {
        (b.total - mean(b.seed)).total_cmp(&(a.total - mean(a.seed))).then(a.rows.start.cmp(&b.rows.start))
    });
    for episode in &ranked {
        let own: f64 = rewards.by_ref().take(episode.rows.len()).map(|reward| f64::from(*reward)).sum();
        let others = totals(episode.seed).count() as f64 - 1.0;
        let expected = episode.total - (totals(episode.seed).sum::<f64>() - episode.total) / others;
        won.push((own, expected));
    }
    let scale =
        won.iter().map(|(own, _)| own.abs()).sum::<f64>() / won.iter().map(|(_, expected)| expected.abs()).sum::<f64>();
    let largest = won.iter().map(|(_, expected)| expected.abs()).fold(0.0, f64::max);
    for (own, expected) in won {
        assert!((own / scale - expected).abs() < 1e-3 * largest, "{} {expected}", own / scale);
    }
}

#[test]
fn threads_change_nothing_and_noise_is_what_was_asked_for() {
    let with = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(logged);
    let log = with(1);
    assert!(log == with(3));
    assert!(log.decisions() >= 100 && log.episodes().len() % 3 == 0);
    for episode in log.episodes() {
        for row in episode.rows.clone() {
            let certain = episode.behaviour.noise == 0.0;
            assert!(if certain { log.propensity(row) == 1.0 } else { log.propensity(row) > 0.0 });
        }
    }
    let unknown = [Behaviour { name: "nobody".into(), noise: 0.0 }];
    assert!(matches!(log::log(&experiment(), &unknown, 1, &|_| ()), Err(TrainError::Entry(_))));
}

/// Trains in `path`, asking to stop after so many updates where given.
fn run(experiment: &Experiment, path: &Path, stop_after: Option<u64>) -> Trained {
    let dir = if path.join("config.toml").exists() { RunDir::open(path) } else { RunDir::create(path) }.unwrap();
    dir.write("config.toml", b"the same for all runs").unwrap();
    let (stop, updates) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |_| {
        if stop_after == Some(updates.fetch_add(1, Ordering::Relaxed) + 1) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    train(experiment, &dir, &Hooks { stop: &stop, progress: &progress, argv: vec!["test".into()] }).unwrap()
}

#[test]
fn every_algorithm_learns_and_resumes_to_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("decisions.parquet");
    logged().write(&data, &DataProvenance::default()).unwrap();
    for algorithm in [Algorithm::Bc, Algorithm::FilteredBc, Algorithm::Iql] {
        let mut experiment = experiment();
        let Some(goodput_configs::experiment::AgentConfig::Offline(agent)) = &mut experiment.agent else {
            unreachable!()
        };
        (agent.algorithm, agent.data) = (algorithm, data.clone());
        let [whole, halves] = ["whole", "halves"].map(|name| dir.path().join(format!("{algorithm:?}-{name}")));
        let Trained::Complete(expected) = run(&experiment, &whole, None) else { panic!("not complete") };
        assert!(matches!(run(&experiment, &halves, Some(3)), Trained::Stopped));
        let Trained::Complete(resumed) = run(&experiment, &halves, None) else { panic!("not complete") };
        assert!(expected.to_bytes() == resumed.to_bytes(), "{algorithm:?}");
        let progress = [whole, halves].map(|path| std::fs::read(path.join("progress.csv")).unwrap());
        assert!(progress[0] == progress[1], "{algorithm:?}");
    }
}

#[test]
fn a_log_of_another_environment_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("decisions.parquet");
    by_hand().write(&data, &DataProvenance::default()).unwrap();
    let layout = experiment().gym().layout();
    let refused = Dataset::read(&data, (&layout, &[]), 1.0, 1.0);
    assert!(matches!(refused, Err(TrainError::Log { .. })));
}
