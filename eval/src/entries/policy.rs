//! Policies of every kind as entries: by name, from a bundle, or in another process.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::compose::loaning::Sharing;
use goodput_agents::compose::{NamedPolicy, lookahead_around, lookahead_base};
use goodput_agents::policies::external::{ExternalPolicy, ExternalProgram};
use goodput_agents::zoo;
use goodput_configs::experiment::Experiment;
use goodput_configs::scenario::Setup;
use goodput_env::gym::ExpectedPeak;

use super::error::EntryError;
use super::heuristic::{by_preset, heuristic};
use crate::run::PolicyEntry;

/// A trained policy by the name that a user gives.
#[derive(Clone, Debug)]
pub struct LearnedPolicy {
    /// Name in tables: that of the directory of the bundle, or of the shipped policy.
    pub label: String,
    /// Policy with its card.
    pub bundle: PolicyBundle,
}

impl LearnedPolicy {
    /// The shipped policy `zoo:NAME`, or the bundle in a file of this name; `None` where there is neither.
    ///
    /// # Errors
    /// [`EntryError::Bundle`] where the bundle cannot be read.
    pub fn by_name(name: &str) -> Result<Option<Self>, EntryError> {
        let shipped = name.starts_with(zoo::PREFIX);
        if !shipped && !Path::new(name).is_file() {
            return Ok(None);
        }
        let folder = Path::new(name).parent().and_then(Path::file_name).map(|folder| folder.to_string_lossy());
        let label = folder
            .filter(|folder| !folder.is_empty() && !shipped)
            .map_or_else(|| name.to_owned(), |folder| format!("learned ({folder})"));
        Ok(Some(Self { label, bundle: zoo::open(Path::new(name))? }))
    }
}

/// The policy that a user calls `name`: a shipped or trained one, or a heuristic with its parameters. `program` is the
/// external program of that name, where it names one.
///
/// # Errors
/// [`EntryError`] where there is none, or it cannot decide about this experiment.
pub fn policy(
    name: &str,
    program: Option<&ExternalProgram>,
    experiment: &Experiment,
    setup: &Setup,
) -> Result<PolicyEntry, EntryError> {
    experiment.check_policy("--policies", name, setup).map_err(EntryError::Unsuitable)?;
    if let Some(program) = program {
        return external(program, experiment, setup);
    }
    if let Some(learned) = LearnedPolicy::by_name(name)? {
        suits(&learned, name, setup)?;
        return learned_entry(&learned.label, &learned.bundle, experiment.expected_peak(setup), setup.sharing());
    }
    if let Some((base, parameters)) = lookahead_base(name)
        && let Some(learned) = LearnedPolicy::by_name(base)?
    {
        suits(&learned, base, setup)?;
        return ahead_of_learned(&learned, parameters, experiment.expected_peak(setup), setup.sharing());
    }
    let named: NamedPolicy = name.parse()?;
    if !named.is_replica() {
        return heuristic(experiment, name, setup);
    }
    let entry = PolicyEntry::new(named.to_string(), move |seed| named.build(seed, &Sharing::default()));
    Ok(by_preset(&experiment.environment, entry))
}

/// Refuses a trained policy called `name` that tells other accelerator types apart than the cluster has.
fn suits(learned: &LearnedPolicy, name: &str, setup: &Setup) -> Result<(), EntryError> {
    let types = learned.bundle.check_types(setup.cluster());
    types.map_err(|source| EntryError::Types { name: name.to_owned(), source })
}

/// A lookahead with `parameters` around a trained policy.
///
/// # Errors
/// [`EntryError::Decoder`] where the bundle does not say how it is to be run, and [`EntryError::Policy`] for parameters
/// that there are not.
pub fn ahead_of_learned(
    LearnedPolicy { label, bundle }: &LearnedPolicy,
    parameters: &str,
    expected: ExpectedPeak,
    sharing: &Arc<Sharing>,
) -> Result<PolicyEntry, EntryError> {
    let entry = learned_entry(label, bundle, expected, sharing)?;
    let (name, make) = lookahead_around(Arc::from(entry.make), label, parameters)?;
    Ok(PolicyEntry { name, make: Box::new(move |seed| make(seed)), ..entry })
}

/// An external program as a policy, once it has shown that it starts.
///
/// # Errors
/// [`EntryError::External`] where it does not start or does not speak the protocol.
pub fn external(program: &ExternalProgram, experiment: &Experiment, setup: &Setup) -> Result<PolicyEntry, EntryError> {
    let (layout, expected) = (experiment.gym().layout(), experiment.expected_peak(setup));
    let types = setup.type_names(layout.types);
    program.check(&layout, &types).map_err(|source| EntryError::External {
        name: program.name().to_owned(),
        command: program.command().join(" "),
        source,
    })?;
    let program = program.clone();
    Ok(PolicyEntry::new(program.name().to_owned(), move |seed| {
        Box::new(ExternalPolicy::new(program.clone(), &layout, &types, seed).with_expected_peak(expected.clone()))
    }))
}

/// A trained policy, which is told of the load of services what `expected` says, and shares the
/// cluster with them by `sharing`.
///
/// # Errors
/// [`EntryError::Decoder`] where the bundle does not say how it is to be run.
pub fn learned_entry(
    name: &str,
    bundle: &PolicyBundle,
    expected: ExpectedPeak,
    sharing: &Arc<Sharing>,
) -> Result<PolicyEntry, EntryError> {
    bundle.policy_sharing(expected.clone(), sharing).map_err(EntryError::Decoder)?;
    let (bundle, watched, sharing) = (bundle.clone(), bundle.clone(), sharing.clone());
    let make = move |_| bundle.policy_sharing(expected.clone(), &sharing).expect("it was made once already");
    Ok(PolicyEntry { fault: Box::new(move || watched.fault()), ..PolicyEntry::new(name, make) })
}
