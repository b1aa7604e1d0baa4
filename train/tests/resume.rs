//! Training is a function of its configuration: stopping, resuming and the number of threads change
//! nothing.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use goodput_configs::experiment::{
    AgentConfig, EvaluateConfig, Experiment, InputBaseline, PpoAgent, TrainConfig, WarmStart,
};
use goodput_configs::scenario::{ClusterConfig, EnvironmentConfig, NodeGroup, WorkloadConfig};
use goodput_env::cluster::Pool;
use goodput_train::Trained;

use crate::support::train_until;

fn experiment(input_baseline: Option<InputBaseline>) -> Experiment {
    let synthetic = goodput_datasets::synth::DiurnalSynth {
        jobs: 12,
        jobs_per_hour: 20.0,
        sizes: goodput_datasets::synth::Sizes::Realistic,
        ..Default::default()
    };
    Experiment {
        name: "small".into(),
        seed: 3,
        cluster: ClusterConfig {
            groups: vec![NodeGroup {
                accelerator: "t4".into(),
                nodes: 4,
                gpus_per_node: 4,
                memory_mib: None,
                pool: Pool::Shared,
            }],
        },
        workload: WorkloadConfig::Synthetic(goodput_datasets::synth::SynthConfig::Diurnal(synthetic)),
        tenants: Vec::new(),
        cohorts: Vec::new(),
        services: Vec::new(),
        resilience: Default::default(),
        sweep: None,
        adaptation: Default::default(),
        environment: EnvironmentConfig { slots: 16, ..Default::default() },
        loaning: Default::default(),
        forecaster: None,
        agent: Some(AgentConfig::Ppo(PpoAgent {
            envs: 6,
            steps_per_env: 24,
            minibatch: 48,
            epochs: 2,
            input_baseline,
            warm_start: Some(WarmStart {
                teacher: "srtf".into(),
                decisions: 288,
                learning_rate: 1e-3,
                epochs: 1,
                minibatch: 64,
                kl_penalty: 0.1,
            }),
            ..Default::default()
        })),
        train: TrainConfig {
            decisions: 4 * 144,
            checkpoint_every: 100,
            evaluate_every: 2,
            validation_seeds: 2,
            ..Default::default()
        },
        evaluate: EvaluateConfig { policies: vec!["srtf".into()], seeds: 1, ..Default::default() },
    }
}

/// The critic, and runs on equal arrivals.
const BASELINES: [Option<InputBaseline>; 2] = [None, Some(InputBaseline { runs: 3, reference: true })];

/// Trains in `path`, asking to stop after `stop_after` updates where given.
fn run(baseline: Option<InputBaseline>, path: &Path, stop_after: Option<u64>) -> Trained {
    let mut experiment = experiment(baseline);
    if baseline.is_some() {
        // An update plays whole episodes, so it has more decisions.
        experiment.train.decisions *= 16;
    }
    train_until(&experiment, path, "train", stop_after)
}

/// Every file of the final checkpoint, the policy and the progress.
fn fingerprint(path: &Path, trained: &Trained) -> Vec<Vec<u8>> {
    let Trained::Complete(bundle) = trained else { panic!("not complete") };
    let latest = std::fs::read_to_string(path.join("checkpoints/latest")).unwrap();
    let files = ["learner.bin", "best.bin", "reference.bin", "state.json"].map(|name| path.join(&latest).join(name));
    let mut bytes: Vec<_> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    bytes.push(std::fs::read(path.join("progress.csv")).unwrap());
    bytes.push(bundle.to_bytes());
    bytes
}

#[test]
fn stopping_and_resuming_changes_nothing() {
    for baseline in BASELINES {
        let dir = tempfile::tempdir().unwrap();
        let whole = dir.path().join("whole");
        let expected = fingerprint(&whole, &run(baseline, &whole, None));
        let halves = dir.path().join("halves");
        assert!(matches!(run(baseline, &halves, Some(2)), Trained::Stopped), "{baseline:?}");
        let found = fingerprint(&halves, &run(baseline, &halves, None));
        let differ: Vec<usize> = (0..expected.len()).filter(|part| found[*part] != expected[*part]).collect();
        assert!(differ.is_empty(), "{baseline:?}: parts {differ:?} of the fingerprint differ");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for baseline in BASELINES {
        let dir = tempfile::tempdir().unwrap();
        let with_threads = |threads: usize| {
            let path = dir.path().join(threads.to_string());
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| fingerprint(&path, &run(baseline, &path, None)))
        };
        assert!(with_threads(1) == with_threads(3), "{baseline:?}");
    }
}
