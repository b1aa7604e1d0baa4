//! Settings of `[agent.evolution]`: a search over the parameters of a utility.

use std::collections::BTreeMap;

use crate::policies::{self, PolicyText};
use crate::scenario::SetupError;
use goodput_agents::policies::utility::Theta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CMA-ES over utilities (`goodput_agents::policies::utility`), which starts from Sia's objective.
/// The cost of a candidate is its logarithm of mean completion time, less that of the teacher on
/// the same episode, so that the difficulty of an episode cancels out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EvolutionAgent {
    /// The heuristic that episodes are measured against.
    #[serde(deserialize_with = "policies::name")]
    #[schemars(with = "PolicyText")]
    pub teacher: String,
    /// Candidates of a generation, at least 4.
    pub population: usize,
    /// Number of generations of the search.
    pub generations: u64,
    /// Episodes that score a candidate; the same for all candidates of a generation, new ones each
    /// generation.
    pub episodes: u64,
    /// First step, in units of each parameter's own scale.
    pub step: f64,
    /// Weight of the 99th percentile of completion times beside their mean.
    pub tail: f64,
    /// Generations between evaluations of the centre on validation seeds.
    pub validate_every: u64,
    /// Whether the policy brings along what jobs of training episodes did, by model.
    pub experience: bool,
    /// Whether a job is believed to be as fast as other jobs of its model that were measured on
    /// more accelerators, so that the job need not reach its size by doubling.
    pub siblings: bool,
    /// Whether sizes are judged by goodput. If not, sizes are judged by throughput alone, without
    /// the gradient statistics that limit large batches: for ablations.
    pub efficiency: bool,
    /// Starting values of the search, by name of parameter; a parameter that is absent starts from
    /// its value in Sia's objective.
    pub start: BTreeMap<String, f64>,
    /// Parameters that stay where they start, by name: for ablations.
    pub freeze: Vec<String>,
}

impl Default for EvolutionAgent {
    fn default() -> Self {
        Self {
            teacher: "pollux-fast".into(),
            population: 16,
            generations: 40,
            episodes: 8,
            step: 0.6,
            tail: 0.1,
            validate_every: 5,
            experience: true,
            siblings: true,
            efficiency: true,
            start: BTreeMap::new(),
            freeze: Vec::new(),
        }
    }
}

impl EvolutionAgent {
    /// `theta` has the parameters that the experiment gives a meaning.
    pub(super) fn check(&self, theta: &Theta) -> Result<(), SetupError> {
        let checks: [(&'static str, f64, bool, &str); 5] = [
            ("agent.evolution.population", self.population as f64, (4..=4096).contains(&self.population), "4 to 4096"),
            ("agent.evolution.generations", self.generations as f64, self.generations > 0, "at least 1"),
            ("agent.evolution.episodes", self.episodes as f64, self.episodes > 0, "at least 1"),
            ("agent.evolution.step", self.step, self.step > 0.0 && self.step <= 100.0, "above 0 and at most 100"),
            ("agent.evolution.tail", self.tail, (0.0..=100.0).contains(&self.tail), "0 to 100"),
        ];
        check_start("agent.evolution.start", &self.start, theta)?;
        if let Some(name) = self.freeze.iter().find(|name| theta.names().all(|known| known != **name)) {
            let expected = format!("names of {}", theta.names().collect::<Vec<_>>().join(", "));
            return Err(SetupError::Value { key: "agent.evolution.freeze", value: name.clone(), expected });
        }
        if theta.names().all(|name| self.freeze.iter().any(|frozen| frozen == name)) {
            let value = "all parameters".into();
            let expected = "at least one parameter that is searched".into();
            return Err(SetupError::Value { key: "agent.evolution.freeze", value, expected });
        }
        match checks.into_iter().find(|(_, _, ok, _)| !ok) {
            Some((key, value, _, expected)) => {
                Err(SetupError::Value { key, value: value.to_string(), expected: expected.into() })
            }
            None if self.validate_every == 0 => Err(SetupError::Value {
                key: "agent.evolution.validate_every",
                value: "0".into(),
                expected: "at least 1".into(),
            }),
            None => Ok(()),
        }
    }
}

/// Whether `start` names parameters of `theta`.
pub(super) fn check_start(key: &'static str, start: &BTreeMap<String, f64>, theta: &Theta) -> Result<(), SetupError> {
    let unknown = |name: &str| theta.names().all(|known| known != name);
    match start.iter().find(|(name, value)| unknown(name) || !value.is_finite()) {
        Some((name, value)) => {
            let expected = format!("finite numbers for {}", theta.names().collect::<Vec<_>>().join(", "));
            Err(SetupError::Value { key, value: format!("{name} = {value}"), expected })
        }
        None => Ok(()),
    }
}

/// `theta` with the numbers of `start`.
pub fn started(theta: &Theta, start: &BTreeMap<String, f64>) -> Theta {
    let named = theta.names().zip(theta.values());
    let values: Vec<f64> = named.map(|(name, value)| start.get(name).copied().unwrap_or(value)).collect();
    theta.clone().of_values(&values).unwrap_or_else(|| theta.clone())
}
