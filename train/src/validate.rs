//! Quality of a policy on seeds it is not trained on, by the code that makes the final table.

use std::sync::Arc;

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::compose::NamedPolicy;
use goodput_agents::compose::loaning::Sharing;
use goodput_configs::experiment::Experiment;
use goodput_configs::scenario::Setup;
use goodput_configs::seeds::VALIDATION;
use goodput_env::gym::ExpectedPeak;
use goodput_env::sim::Outcome;
use goodput_eval::entries::{self, learned_entry};
use goodput_eval::run::{Comparison, NamedScenario, PolicyEntry};
use serde::{Deserialize, Serialize};

use crate::constraint::ServedRequests;
use crate::error::TrainError;

/// Validation seeds of an experiment and the heuristics' results on them.
pub struct Validation {
    scenarios: Vec<NamedScenario>,
    sharing: Arc<Sharing>,
    expected: ExpectedPeak,
    /// Mean completion time of the best heuristic, seconds.
    pub best_heuristic_jct_secs: f64,
}

/// Result of a policy on the validation seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// Mean completion time, seconds.
    pub jct_secs: f64,
    /// Requests of services, and how many met their objectives.
    pub served: ServedRequests,
}

impl Validation {
    /// Runs the heuristics of the experiment on its validation seeds.
    ///
    /// # Errors
    /// [`TrainError`] where one is unknown or fails.
    pub fn new(experiment: &Experiment, setup: &Setup) -> Result<Self, TrainError> {
        let mut validation = Self::without_heuristics(experiment, setup)?;
        let entries = quick_heuristics(experiment).map(|name| entries::heuristic(experiment, name, setup));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        if !entries.is_empty() {
            let means = validation.run(entries)?;
            validation.best_heuristic_jct_secs = means.iter().map(|score| score.jct_secs).fold(f64::INFINITY, f64::min);
        }
        Ok(validation)
    }

    /// The validation seeds alone, under each load and switching cost of the training.
    ///
    /// # Errors
    /// [`TrainError::Setup`].
    pub fn without_heuristics(experiment: &Experiment, setup: &Setup) -> Result<Self, TrainError> {
        let train = &experiment.train;
        let mut scenarios = Vec::new();
        for experiment in experiment.at_switch_costs() {
            let own = entries::scenarios(&experiment, &train.loads, VALIDATION, train.validation_seeds)?;
            let name = |name: String| match train.switch_costs.as_slice() {
                [] => name,
                _ => format!("{name}, switching cost {}", experiment.environment.switch_cost),
            };
            scenarios.extend(own.into_iter().map(|named| NamedScenario { name: name(named.name), ..named }));
        }
        Ok(Self {
            scenarios,
            sharing: setup.sharing().clone(),
            expected: experiment.expected_peak(setup),
            best_heuristic_jct_secs: f64::INFINITY,
        })
    }

    /// Mean completion time of a bundle's policy over the validation seeds, seconds.
    ///
    /// # Errors
    /// [`TrainError::Run`] where a run fails.
    pub fn score(&self, bundle: &PolicyBundle) -> Result<f64, TrainError> {
        Ok(self.score_whole(bundle)?.jct_secs)
    }

    /// Mean completion time of a bundle and the requests that its services answered.
    ///
    /// # Errors
    /// [`TrainError::Run`] where a run fails.
    pub fn score_whole(&self, bundle: &PolicyBundle) -> Result<Score, TrainError> {
        self.score_of(learned_entry("learned", bundle, self.expected.clone(), &self.sharing)?)
    }

    /// Mean completion time and requests of a policy given by its entry.
    ///
    /// # Errors
    /// [`TrainError::Run`] where a run fails.
    pub fn score_of(&self, policy: PolicyEntry) -> Result<Score, TrainError> {
        Ok(self.run(vec![policy])?.remove(0))
    }

    fn run(&self, policies: Vec<PolicyEntry>) -> Result<Vec<Score>, TrainError> {
        let mut comparison = Comparison::new(policies, self.scenarios.clone());
        comparison.sharing = self.sharing.clone();
        let evaluation = comparison.run(&|_, _| {})?;
        let score = |policy: usize| {
            let runs = evaluation.runs_of(policy);
            let jct = runs.iter().map(|run| jct_mean_secs(&run.outcome)).sum::<f64>();
            let each = runs.iter().zip(&self.scenarios);
            let served: Vec<ServedRequests> =
                each.map(|(run, named)| ServedRequests::of(&named.scenario, &run.outcome)).collect();
            Score { jct_secs: jct / runs.len() as f64, served: ServedRequests::sum(&served) }
        };
        Ok((0..evaluation.layout.policies.len()).map(score).collect())
    }
}

/// Heuristics of the comparison, but for the genetic search of Pollux: it costs more than the whole training, and is
/// compared in the end.
pub(crate) fn quick_heuristics(experiment: &Experiment) -> impl Iterator<Item = &String> {
    const GENETIC: [&str; 2] = ["pollux", "pollux-noavoid"];
    let genetic = |name: &str| name.parse::<NamedPolicy>().is_ok_and(|named| GENETIC.contains(&named.entry().name));
    experiment.evaluate.policies.iter().filter(move |name| !genetic(name))
}

/// Completion times of a run, seconds, in order of job; jobs cut off by the horizon count up to it,
/// those that failed for good do not.
pub fn jct_secs(outcome: &Outcome) -> impl Iterator<Item = f64> {
    let arrived = outcome.jobs.iter().filter(|job| job.submit <= outcome.end && job.faults.failed.is_none());
    arrived.map(|job| (job.finish.unwrap_or(outcome.end) - job.submit).as_secs_f64())
}

/// Mean completion time of the jobs of a run, seconds.
pub fn jct_mean_secs(outcome: &Outcome) -> f64 {
    let (sum, count) = jct_secs(outcome).fold((0.0, 0u32), |(sum, count), secs| (sum + secs, count + 1));
    sum / f64::from(count.max(1))
}
