//! Published policies as entries, with the conventions of the experiment.

use std::sync::Arc;

use goodput_agents::compose::NamedPolicy;
use goodput_agents::compose::loaning::Sharing;
use goodput_configs::experiment::Experiment;
use goodput_configs::scenario::{EnvironmentConfig, Setup};
use goodput_env::scenario::{Batching, Information};

use super::error::EntryError;
use crate::run::PolicyEntry;

/// A published policy by name, with its parameters.
///
/// # Errors
/// [`EntryError::Policy`] for a name that names none; [`EntryError::Replica`] for the replica of an artifact, which
/// nothing may learn from.
pub fn named(name: &str) -> Result<NamedPolicy, EntryError> {
    let named: NamedPolicy = name.parse()?;
    if named.is_replica() {
        return Err(EntryError::Replica { name: name.into(), plain: named.entry().name.into() });
    }
    Ok(named)
}

/// A heuristic under the scenario's own information level and batching, with parameters and variant as its name
/// says. The name of the entry leaves out parameters at their defaults.
///
/// # Errors
/// [`EntryError::Policy`], [`EntryError::Replica`].
pub fn heuristic_entry(name: &str, sharing: &Arc<Sharing>) -> Result<PolicyEntry, EntryError> {
    let (named, sharing) = (named(name)?, sharing.clone());
    Ok(PolicyEntry::new(named.to_string(), move |seed| named.build(seed, &sharing)))
}

/// A heuristic of the comparison, with estimates where it needs them and the experiment grants them.
///
/// # Errors
/// [`EntryError`] where there is none of this name.
pub fn heuristic(experiment: &Experiment, name: &str, setup: &Setup) -> Result<PolicyEntry, EntryError> {
    let mut entry = by_preset(&experiment.environment, heuristic_entry(name, setup.sharing())?);
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
