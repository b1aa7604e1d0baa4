//! Scenarios and policies of a comparison: the held-out scenarios of an experiment, and its heuristics.

use goodput_agents::compose::NamedPolicy;
use goodput_configs::experiment::Experiment;
use goodput_configs::scenario::{EnvironmentConfig, Setup, SetupError};
use goodput_configs::seeds::HELD_OUT;
use goodput_env::scenario::{Batching, Information};
use goodput_eval::run::{NamedScenario, PolicyEntry};

use crate::entries;
use crate::error::TrainError;

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
        return Ok(entries::scenarios(&setup, first, count));
    }
    let mut all = Vec::new();
    for load in loads {
        let name = format!("load {load}");
        let at_load = entries::scenarios(&experiment.at_load(*load).setup()?, first, count);
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

/// A heuristic of the comparison, with estimates where it needs them and the experiment grants them.
///
/// # Errors
/// [`TrainError`] where there is none of this name.
pub fn heuristic(experiment: &Experiment, name: &str, setup: &Setup) -> Result<PolicyEntry, TrainError> {
    let mut entry = by_preset(&experiment.environment, entries::heuristic_entry(name, setup.sharing())?);
    let needs = (entry.make)(0).needs();
    let given = entry.information.unwrap_or(experiment.environment.information);
    if let Some(sigma) = experiment.evaluate.estimates_sigma
        && (!given.allows(needs) || leaves_types_unknown(&experiment.environment, name))
    {
        entry.information = Some(Information::Estimate { sigma });
    }
    Ok(entry)
}

/// A heuristic with the conventions that the environment leaves to its publication, and with the rounds that the
/// environment's preset gives to it.
pub fn by_preset(environment: &EnvironmentConfig, entry: PolicyEntry) -> PolicyEntry {
    let policy = (entry.make)(0);
    PolicyEntry {
        batching: environment.batching_of(policy.batching()).or(entry.batching),
        information: environment.information_of(policy.information()).or(entry.information),
        rounds: environment.rounds_of(&*policy).or(entry.rounds),
        ..entry
    }
}

/// Whether a heuristic chooses accelerator types by speeds that it expects to be known beforehand, where they are only
/// measured by jobs' own agents: it would never start a job.
fn leaves_types_unknown(environment: &EnvironmentConfig, name: &str) -> bool {
    let EnvironmentConfig { batching, information, .. } = *environment;
    let measured =
        batching == Batching::Throughput || (batching, information) == (Batching::Agent, Information::Profiled);
    let told = |known: NamedPolicy| {
        let alone = known.variant().is_none() && !known.is_beside_requests();
        alone && known.entry().traits.heterogeneous && known.training(0).batching() != Batching::Agent
    };
    measured && name.parse().is_ok_and(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_on_types_are_unknown_where_agents_measure_them() {
        let unknown = |batching, information, name| {
            leaves_types_unknown(&EnvironmentConfig { batching, information, ..EnvironmentConfig::default() }, name)
        };
        let estimate = Information::Estimate { sigma: 0.0 };
        for (batching, information, expected) in [
            (Batching::Agent, Information::Profiled, true),
            (Batching::Agent, estimate, false),
            (Batching::Throughput, Information::Profiled, true),
            (Batching::Throughput, estimate, true),
            (Batching::Requested, Information::Profiled, false),
        ] {
            assert_eq!(unknown(batching, information, "gavel-max-min"), expected, "{batching:?} {information:?}");
            assert!(!unknown(batching, information, "fifo"), "it takes no account of types");
        }
    }
}
