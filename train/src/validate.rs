//! How good a policy is on seeds it is not trained on, by the code that makes the final table.

use std::sync::Arc;

use goodput_agents::bundle::{Card, Model as Net, PolicyBundle, Provenance};
use goodput_agents::compose;
use goodput_agents::compose::loaning::{Sharing, Variant};
use goodput_agents::heuristic;
use goodput_agents::policies::rounds::Decoder;
use goodput_configs::scenario::Setup;
use goodput_env::gym::ExpectedPeak;
use goodput_env::sim::Outcome;
use goodput_eval::run::{Comparison, NamedScenario, PolicyEntry};
use goodput_forecast::Model;
use serde::{Deserialize, Serialize};

use crate::comparison;
use crate::constraint::ServedRequests;
use crate::error::TrainError;
use goodput_configs::experiment::Experiment;
use goodput_configs::seeds::VALIDATION;

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
        // The genetic search of Pollux costs more than the whole training; it is compared in the
        // end.
        let quick = experiment.evaluate.policies.iter().filter(|name| *name != "pollux");
        let entries =
            quick.map(|name| comparison::heuristic(experiment, name, setup)).collect::<Result<Vec<_>, _>>()?;
        if !entries.is_empty() {
            let means = validation.run(entries)?;
            validation.best_heuristic_jct_secs = means.iter().map(|score| score.jct_secs).fold(f64::INFINITY, f64::min);
        }
        Ok(validation)
    }

    /// The validation seeds alone, under each load of the training.
    ///
    /// # Errors
    /// [`TrainError::Setup`].
    pub fn without_heuristics(experiment: &Experiment, setup: &Setup) -> Result<Self, TrainError> {
        let train = &experiment.train;
        Ok(Self {
            scenarios: comparison::scenarios(experiment, &train.loads, VALIDATION, train.validation_seeds)?,
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
            let jct = runs.iter().map(|run| mean_jct_secs(&run.outcome)).sum::<f64>();
            let each = runs.iter().zip(&self.scenarios);
            let served: Vec<ServedRequests> =
                each.map(|(run, named)| ServedRequests::of(&named.scenario, &run.outcome)).collect();
            Score { jct_secs: jct / runs.len() as f64, served: ServedRequests::sum(&served) }
        };
        Ok((0..evaluation.policies.len()).map(score).collect())
    }
}

/// Completion times of a run, seconds, in order of job; jobs cut off by the horizon count up to it,
/// those that failed for good do not.
pub fn jct_secs(outcome: &Outcome) -> impl Iterator<Item = f64> {
    let arrived = outcome.jobs.iter().filter(|job| job.submit <= outcome.end && job.faults.failed.is_none());
    arrived.map(|job| (job.finish.unwrap_or(outcome.end) - job.submit).as_secs_f64())
}

/// Mean completion time of the jobs of a run, seconds.
pub fn mean_jct_secs(outcome: &Outcome) -> f64 {
    let (sum, count) = jct_secs(outcome).fold((0.0, 0u32), |(sum, count), secs| (sum + secs, count + 1));
    sum / f64::from(count.max(1))
}

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
    let known = || TrainError::UnknownPolicy { name: name.into(), known: compose::names().join(", ") };
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

/// How policies of this setup are run: the best action decides.
pub fn decoder(setup: &Setup) -> Decoder {
    let options = setup.options();
    Decoder::new(options.batching, options.information)
}

/// Names of the accelerator types that a policy tells apart.
fn types_told_apart(model: &Net, setup: &Setup) -> Vec<String> {
    setup.type_names(match model {
        Net::Net(weights) => weights.layout().types,
        Net::Linear(linear) => linear.layout().types,
        Net::Utility(_) => 0,
    })
}

/// A bundle of `model` as trained by `experiment`.
pub fn bundle(model: Net, setup: &Setup, provenance: Provenance) -> PolicyBundle {
    let options = setup.options();
    let decoder = decoder(setup);
    let types = types_told_apart(&model, setup);
    let card = Card {
        schema_hash: match &model {
            Net::Utility(utility) => utility.theta.schema_hash(),
            Net::Net(weights) => weights.layout().schema_hash(),
            Net::Linear(linear) => linear.layout().schema_hash(),
        },
        information: options.information.to_string(),
        decoder: serde_json::to_value(decoder).expect("a decoder is plain data"),
        provenance,
        types,
        bounds: [("cluster_gpus".to_string(), [f64::from(setup.cluster().total_gpus()); 2])].into(),
    };
    PolicyBundle { model, normaliser: None, card }
}
