//! One run: a policy on a scenario, measured.

use goodput_agents::compose::Wrappers;
use goodput_agents::compose::loaning::{Sharing, complete};
use goodput_env::policy::Scope;
use goodput_env::sim::Simulator;
use std::sync::Arc;

use super::entry::{AllocationLog, NamedScenario, PolicyEntry};
use super::error::RunError;
use super::policy_run::PolicyRun;
use crate::metrics::{RunFacts, measure};

/// Things around every policy of a comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSurroundings<'a> {
    /// Terms on which policies that decide about training only share the cluster with services.
    pub sharing: &'a Arc<Sharing>,
    /// Adaptation and guarantees.
    pub wrappers: &'a Wrappers,
}

/// Plays a run to its end. The indices of the run are 0.
///
/// # Errors
/// [`RunError`] where the policy is told less than it needs, cannot be wrapped, or the simulation fails.
pub(crate) fn play(
    entry: &PolicyEntry,
    named: &NamedScenario,
    log: AllocationLog,
    around: &RunSurroundings<'_>,
) -> Result<PolicyRun, RunError> {
    let inputs = entry.scenario(&named.scenario, log);
    let make = || (entry.make)(named.seed);
    if !around.wrappers.is_empty() && make().scope() == Scope::Everything {
        return Err(RunError::NotTraining { policy: entry.name.clone() });
    }
    let mut instance = complete(around.wrappers.around(make), &inputs, around.sharing);
    let (needs, given) = (instance.needs(), inputs.options.information);
    if !given.allows(needs) {
        let (policy, workload) = (entry.name.clone(), named.name.clone());
        return Err(RunError::Information { policy, workload, needs, given });
    }
    let outcome = Simulator::new(inputs.clone()).run(&mut *instance);
    // A fault of a policy is the reason why its run failed, where it did.
    if let Some(problem) = (entry.fault)() {
        return Err(RunError::Faulty { policy: entry.name.clone(), problem });
    }
    let outcome = outcome.map_err(|source| RunError::Run {
        policy: entry.name.clone(),
        workload: named.name.clone(),
        seed: named.seed,
        source: Box::new(source),
    })?;
    let measures = measure(&RunFacts::new(&inputs, &outcome));
    Ok(PolicyRun { policy: 0, workload: 0, seed: named.seed, scenario: inputs, outcome, measures })
}
