//! Scenarios of a comparison: the workloads of an experiment under seeds.

use goodput_configs::experiment::Experiment;
use goodput_configs::scenario::{Setup, SetupError};
use goodput_configs::seeds::HELD_OUT;

use crate::run::NamedScenario;

/// Scenarios of `count` seeds from `first` on.
pub fn seeds(setup: &Setup, first: u64, count: u64) -> Vec<NamedScenario> {
    let named = |seed| NamedScenario { name: "workload".into(), seed, scenario: setup.scenario(seed) };
    (first..first + count).map(named).collect()
}

/// Scenarios of `count` seeds from `first` on under each of `loads`, as workloads named by it.
///
/// # Errors
/// [`SetupError`] naming the key.
pub fn scenarios(
    experiment: &Experiment,
    loads: &[f64],
    first: u64,
    count: u64,
) -> Result<Vec<NamedScenario>, SetupError> {
    let setup = experiment.setup()?;
    if loads.is_empty() {
        return Ok(seeds(&setup, first, count));
    }
    let mut all = Vec::new();
    for load in loads {
        let name = format!("load {load}");
        let at_load = seeds(&experiment.at_load(*load).setup()?, first, count);
        all.extend(at_load.into_iter().map(|scenario| NamedScenario { name: name.clone(), ..scenario }));
    }
    Ok(all)
}

/// The held-out scenarios.
///
/// # Errors
/// [`SetupError`] naming the key.
pub fn held_out(experiment: &Experiment, seeds: u64) -> Result<Vec<NamedScenario>, SetupError> {
    scenarios(experiment, &experiment.evaluate.loads, HELD_OUT, seeds)
}
