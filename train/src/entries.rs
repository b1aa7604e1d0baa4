//! Entries of a comparison: policies by name, trained policies, and scenarios by seed.

use std::sync::Arc;

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::compose;
use goodput_agents::compose::loaning::{Sharing, Variant};
use goodput_agents::heuristic;
use goodput_configs::names::did_you_mean;
use goodput_configs::scenario::Setup;
use goodput_env::gym::ExpectedPeak;
use goodput_eval::run::{NamedScenario, PolicyEntry};
use goodput_forecast::Model;

use crate::error::TrainError;

/// Scenarios of `count` seeds from `first` on.
pub fn scenarios(setup: &Setup, first: u64, count: u64) -> Vec<NamedScenario> {
    let named = |seed| NamedScenario { name: "workload".into(), seed, scenario: setup.scenario(seed) };
    (first..first + count).map(named).collect()
}

/// A published policy by name.
///
/// # Errors
/// [`TrainError::UnknownPolicy`]; [`TrainError::Replica`] for the replica of an artifact, which
/// nothing may learn from.
pub fn published(name: &str) -> Result<&'static heuristic::ListedPolicy, TrainError> {
    if let Some(plain) = name.strip_suffix(compose::REPLICA) {
        return Err(TrainError::Replica { name: name.into(), plain: plain.into() });
    }
    let known = || TrainError::UnknownPolicy { name: name.into(), near: did_you_mean(name, compose::names()) };
    compose::policies().find(|entry| entry.name == name).ok_or_else(known)
}

/// A heuristic under the scenario's own information level and batching; `NAME+VARIANT` shares the
/// cluster with services in that way, `NAME+ats-i` is it beside DeepBoot's scheduler of inference
/// requests. `forecast:MODEL` is a variant too.
///
/// # Errors
/// [`TrainError::UnknownPolicy`], [`TrainError::UnknownVariant`].
pub fn heuristic_entry(name: &str, sharing: &Arc<Sharing>) -> Result<PolicyEntry, TrainError> {
    if let Some(training) = name.strip_suffix(compose::BESIDE_REQUESTS) {
        published(training)?;
        let owned = name.to_owned();
        let build = move |seed| compose::by_name(&owned, seed).expect("the training policy is in the list");
        return Ok(PolicyEntry::new(name, build));
    }
    let (plain, shares) = name.split_once(compose::VARIANT).unwrap_or((name, ""));
    let entry = published(plain)?;
    if shares.is_empty() {
        return Ok(PolicyEntry::new(name, |seed| entry.build(seed)));
    }
    let unknown = || TrainError::UnknownVariant {
        name: name.into(),
        known: Variant::ALL.map(|(known, _)| format!("{plain}+{known}")).join(", ") + &models(plain),
    };
    let variant = Variant::by_name(shares).ok_or_else(unknown)?;
    let sharing = sharing.clone();
    Ok(PolicyEntry::new(name, move |seed| Box::new(variant.around(entry.build(seed), &sharing))))
}

/// Names of the variants that go by one model.
fn models(plain: &str) -> String {
    let known = Model::ALL.map(|model| format!(" or {}", model.name())).concat();
    format!(", {plain}+forecast:MODEL with MODEL{}", known.trim_start_matches(" or"))
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
    let (bundle, sharing) = (bundle.clone(), sharing.clone());
    let make = move |_| bundle.policy_sharing(expected.clone(), &sharing).expect("it was made once already");
    Ok(PolicyEntry::new(name, make))
}
