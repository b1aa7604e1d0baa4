//! Runs in the files of MLflow.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{plain, run};

/// The only folder in a folder.
fn only(folder: &Path) -> PathBuf {
    let folders: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders[0].clone()
}

#[test]
fn a_training_becomes_a_run_of_mlflow_and_a_second_export_replaces_it() {
    let dir = tempfile::tempdir().unwrap();
    let sets = [
        "workload.synthetic.diurnal.jobs=8",
        "agent.evolution.population=4",
        "agent.evolution.generations=2",
        "agent.evolution.episodes=1",
        "train.validation_seeds=1",
        "train.gate_percent=500",
        "evaluate.seeds=2",
        "evaluate.policies=[\"fifo\"]",
    ];
    assert_eq!(run(dir.path(), &["init", "quickstart"]).0, 0);
    let mut train = vec!["train", "quickstart.toml"];
    train.extend(sets.iter().flat_map(|set| ["--set", *set]));
    let (code, _, said) = run(dir.path(), &train);
    assert_eq!(code, 0, "{said}");

    let export = || {
        let (code, _, said) = run(dir.path(), &["export", "runs/quickstart/1", "--mlflow", "mlruns"]);
        assert!(code == 0 && said.contains("quickstart/1 in the experiment quickstart"), "{said}");
        only(&dir.path().join("mlruns"))
    };
    let stale = only(&export()).join("params/stale");
    fs::write(&stale, "1").unwrap();
    let experiment = export();
    assert!(!stale.exists(), "{}", stale.display());
    let text = |path: PathBuf| fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(text(experiment.join("meta.yaml")).contains("name: 'quickstart'"));
    let exported = only(&experiment);
    assert_eq!(text(exported.join("params/agent.evolution.population")), "4");
    assert_eq!(text(exported.join("params/cluster.groups.0.nodes")), "16");
    let curve = text(exported.join("metrics/eval/jct_mean_secs"));
    assert_eq!(curve.lines().filter_map(|line| line.split(' ').nth(2)).collect::<Vec<_>>(), ["8"], "{curve}");
    let jct: f64 = text(exported.join("metrics/fifo/jct_mean_secs")).split(' ').nth(1).unwrap().parse().unwrap();
    assert!(jct > 0.0);
    assert!(text(exported.join("tags/mlflow.source.name")).starts_with("goodput train quickstart.toml"));
    assert!(exported.join("artifacts/report.html").exists() && exported.join("artifacts/policy.bundle").exists());
}

#[test]
fn what_is_no_run_is_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let (code, _, said) = run(dir.path(), &["export", "nowhere", "--mlflow", "mlruns"]);
    let said = plain(&said);
    assert!(code == 2 && said.contains("nowhere/summary.json") && said.contains("goodput eval"), "{said}");
    let (code, _, said) = run(dir.path(), &["export", "nowhere"]);
    assert!(code == 2 && said.contains("--to"), "{said}");
}
