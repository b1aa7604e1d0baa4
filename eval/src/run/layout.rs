//! Layout of a comparison: the names of its policies, its workloads and its scenarios.

use std::collections::BTreeMap;

use super::error::RunError;

/// Names of what a comparison consists of. A comparison has a run for each policy on each scenario, in the order
/// policy, then scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLayout {
    /// Names of the policies.
    pub policies: Vec<String>,
    /// Names of the workloads, in order of appearance.
    pub workloads: Vec<String>,
    /// Scenarios: every workload under the same number of seeds.
    pub scenarios: Vec<ScenarioName>,
    /// Index of the policy that others are measured against.
    pub reference: usize,
}

/// Name of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScenarioName {
    /// Index into [`RunLayout::workloads`].
    pub workload: usize,
    /// Seed of the repetition.
    pub seed: u64,
}

impl RunLayout {
    /// Layout of the given policies on scenarios of the given workloads and seeds, against `reference` or the first
    /// policy.
    ///
    /// # Errors
    /// [`RunError`] where there is nothing to compare, a name occurs twice, workloads have unequal numbers of seeds, or
    /// the reference is not compared.
    pub fn new<'a>(
        policies: Vec<String>,
        named: impl Iterator<Item = (&'a str, u64)>,
        reference: Option<&str>,
    ) -> Result<Self, RunError> {
        for (index, name) in policies.iter().enumerate() {
            if policies[..index].contains(name) {
                return Err(RunError::DuplicatePolicy { name: name.clone() });
            }
        }
        let reference = match reference {
            None => 0,
            Some(name) => policies
                .iter()
                .position(|policy| policy == name)
                .ok_or_else(|| RunError::UnknownReference { name: name.into(), known: policies.clone() })?,
        };
        let (mut workloads, mut scenarios) = (Vec::<String>::new(), Vec::new());
        let mut seeds: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for (name, seed) in named {
            let of_name = seeds.entry(name).or_default();
            if of_name.is_empty() {
                workloads.push(name.to_owned());
            }
            if of_name.contains(&seed) {
                return Err(RunError::DuplicateScenario { workload: name.to_owned(), seed });
            }
            of_name.push(seed);
            let workload = workloads.iter().position(|known| known == name).unwrap_or_default();
            scenarios.push(ScenarioName { workload, seed });
        }
        let Some(first) = workloads.first().filter(|_| !policies.is_empty()).cloned() else {
            return Err(RunError::Empty);
        };
        let expected = seeds[first.as_str()].len();
        if let Some(workload) = workloads.iter().find(|name| seeds[name.as_str()].len() != expected) {
            let seeds = seeds[workload.as_str()].len();
            return Err(RunError::UnequalSeeds { workload: workload.clone(), seeds, first, expected });
        }
        Ok(Self { policies, workloads, scenarios, reference })
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.policies.len() * self.scenarios.len()
    }

    /// Index of the policy, and name of the scenario, of the run at `index`.
    pub fn run(&self, index: usize) -> (usize, ScenarioName) {
        (index / self.scenarios.len(), self.scenarios[index % self.scenarios.len()])
    }

    /// Whether the run at `index` has the first scenario, which figures show: its allocations are logged.
    pub fn is_shown(&self, index: usize) -> bool {
        index.is_multiple_of(self.scenarios.len())
    }

    /// Indices of the runs of one policy.
    pub fn runs_of(&self, policy: usize) -> std::ops::Range<usize> {
        policy * self.scenarios.len()..(policy + 1) * self.scenarios.len()
    }
}
