//! Entries of a comparison: policies by name, trained policies, and scenarios by seed.

use std::sync::Arc;

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::compose::NamedPolicy;
use goodput_agents::compose::loaning::Sharing;
use goodput_configs::scenario::Setup;
use goodput_env::gym::ExpectedPeak;
use goodput_eval::run::{NamedScenario, PolicyEntry};

use crate::error::TrainError;

/// Scenarios of `count` seeds from `first` on.
pub fn scenarios(setup: &Setup, first: u64, count: u64) -> Vec<NamedScenario> {
    let named = |seed| NamedScenario { name: "workload".into(), seed, scenario: setup.scenario(seed) };
    (first..first + count).map(named).collect()
}

/// A published policy by name, with its parameters.
///
/// # Errors
/// [`TrainError::Policy`] for a name that names none; [`TrainError::Replica`] for the replica of an artifact, which
/// nothing may learn from.
fn named(name: &str) -> Result<NamedPolicy, TrainError> {
    let named: NamedPolicy = name.parse()?;
    if named.is_replica() {
        return Err(TrainError::Replica { name: name.into(), plain: named.entry().name.into() });
    }
    Ok(named)
}

/// A published training policy by name, with its parameters, and without services and requests beside it.
///
/// # Errors
/// [`TrainError::Policy`] and [`TrainError::Replica`]; [`TrainError::Composed`] where the name says how a cluster is
/// shared.
pub fn published(name: &str) -> Result<NamedPolicy, TrainError> {
    let named = named(name)?;
    if named.variant().is_some() || named.is_beside_requests() {
        return Err(TrainError::Composed { name: name.into() });
    }
    Ok(named)
}

/// A heuristic under the scenario's own information level and batching, with parameters and variant as its name
/// says. The name of the entry leaves out parameters at their defaults.
///
/// # Errors
/// [`TrainError::Policy`], [`TrainError::Replica`].
pub fn heuristic_entry(name: &str, sharing: &Arc<Sharing>) -> Result<PolicyEntry, TrainError> {
    let (named, sharing) = (named(name)?, sharing.clone());
    Ok(PolicyEntry::new(named.to_string(), move |seed| named.build(seed, &sharing)))
}

/// A trained policy, which is told of the load of services what `expected` says, and shares the
/// cluster with them by `sharing`.
///
/// # Errors
/// [`TrainError::Decoder`] where the bundle does not say how it is to be run.
pub fn learned_entry(
    name: &str,
    bundle: &PolicyBundle,
    expected: ExpectedPeak,
    sharing: &Arc<Sharing>,
) -> Result<PolicyEntry, TrainError> {
    bundle.policy_sharing(expected.clone(), sharing).map_err(TrainError::Decoder)?;
    let (bundle, watched, sharing) = (bundle.clone(), bundle.clone(), sharing.clone());
    let make = move |_| bundle.policy_sharing(expected.clone(), &sharing).expect("it was made once already");
    Ok(PolicyEntry { fault: Box::new(move || watched.fault()), ..PolicyEntry::new(name, make) })
}
