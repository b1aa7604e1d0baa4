//! Scenarios that ship, run as `goodput eval` runs them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use goodput_configs::experiment::Experiment;
use goodput_configs::reader;
use goodput_eval::entries::{held_out, heuristic};
use goodput_eval::run::{Comparison, Evaluation};

/// Scenario of the folder `configs/scenario`, with settings as `--set` gives them.
pub(crate) fn shipped(name: &str, sets: &[&str]) -> Experiment {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/scenario").join(name);
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    reader::read(&path, &sets).unwrap().0
}

/// Comparison of the policies of a file under one seed.
pub(crate) fn evaluated(experiment: &Experiment) -> Evaluation {
    let setup = experiment.setup().unwrap();
    let entries = experiment.evaluate.policies.iter().map(|name| heuristic(experiment, name, &setup).unwrap());
    let mut comparison = Comparison::new(entries.collect(), held_out(experiment, 1).unwrap());
    comparison.wrappers = experiment.wrappers();
    comparison.run(&|_, _| ()).unwrap()
}

/// A metric of each policy of a file.
pub(crate) fn figures(experiment: &Experiment, metric: &str) -> Vec<(String, f64)> {
    let Evaluation { layout, runs, .. } = evaluated(experiment);
    layout.policies.into_iter().zip(runs.iter().map(|run| run.measures.get(metric).unwrap())).collect()
}
