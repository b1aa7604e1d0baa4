//! Objective of an evolution: what a candidate costs on an episode.

use std::sync::Arc;

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::compose::loaning::complete;
use goodput_agents::policies::utility::{Experience, Utility};
use goodput_configs::experiment::{EvolutionAgent, Experiment};
use goodput_configs::scenario::Setup;
use goodput_env::gym::{EnvError, ExpectedPeak};
use goodput_env::job::{JobId, WHOLE, Work};
use goodput_env::policy::Policy;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::sim::Simulator;
use goodput_eval::entries::{self, EntryError};
use goodput_eval::run::PolicyEntry;
use serde::{Deserialize, Serialize};

use super::space::Space;
use crate::constraint::ServedRequests;
use crate::cost;
use crate::episodes::Episodes;
use crate::error::TrainError;
use crate::export::bundle;

/// Number of training episodes that provide the jobs in the experience that a policy starts with.
pub(crate) const EXPERIENCE: u64 = 32;

/// Objective of a search. Machines with equal configurations and programs have equal objectives.
pub struct Objective<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) agent: &'a EvolutionAgent,
    training: Episodes,
    teacher: PolicyEntry,
    space: Space,
    experience: Experience,
}

/// Generation of a search: candidates that meet the episodes of this generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generation {
    /// Number of the generation, from 0; it says which episodes these are.
    pub number: u64,
    /// Values of the parameters that are searched, candidate by candidate.
    pub candidates: Vec<Vec<f64>>,
}

/// Cost of one policy on one episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpisodeCost {
    /// Logarithm of the mean completion time, and of the tail as far as it counts.
    pub cost: f64,
    /// Requests of services, and how many met their objectives.
    pub served: ServedRequests,
}

impl<'a> Objective<'a> {
    /// Objective of the evolution that `experiment` describes by `agent`.
    ///
    /// # Errors
    /// [`TrainError`] where the workload or the teacher cannot be used.
    pub fn new(experiment: &'a Experiment, agent: &'a EvolutionAgent) -> Result<Self, TrainError> {
        let training = Episodes::new(experiment)?;
        let teacher = entries::heuristic(experiment, &agent.teacher, training.setup())?;
        let experience = match agent.experience {
            true => past(&training.range(experiment.seed, 0, EXPERIENCE)),
            false => Experience::default(),
        };
        Ok(Self { experiment, agent, training, teacher, space: Space::of(experiment, agent), experience })
    }

    /// The experiment of the policy that is searched.
    pub fn experiment(&self) -> &Experiment {
        self.experiment
    }

    /// The experiment under the first of its loads, sizes and switching costs.
    pub fn setup(&self) -> &Setup {
        self.training.setup()
    }

    /// Starting point of the search and the initial step size in each direction.
    pub fn begin(&self) -> (Vec<f64>, Vec<f64>) {
        self.space.begin()
    }

    /// Episodes that every candidate of a generation plays.
    pub fn episodes(&self) -> usize {
        self.agent.episodes as usize
    }

    /// Policy of these values.
    pub fn bundle(&self, values: &[f64], provenance: Provenance) -> PolicyBundle {
        let EvolutionAgent { siblings, efficiency, .. } = *self.agent;
        let (theta, experience) = (self.space.theta(values), self.experience.clone());
        let utility = Utility { theta, experience, siblings, efficiency };
        bundle(Model::Utility(utility), self.experiment, self.setup(), provenance)
    }

    /// A generation with its episodes, ready to be played.
    pub fn round(&self, generation: &Generation) -> GenerationRound<'_> {
        let (first, count) = (generation.number * self.agent.episodes, self.agent.episodes);
        let candidate = |values: &Vec<f64>| self.bundle(values, Provenance::default());
        GenerationRound {
            objective: self,
            episodes: self.training.range(self.experiment.seed, first, count),
            candidates: generation.candidates.iter().map(candidate).collect(),
        }
    }
}

/// Runs of a generation, numbered by player and then by episode: the teacher is the first player, and candidates follow
/// in their order.
pub struct GenerationRound<'a> {
    objective: &'a Objective<'a>,
    episodes: Vec<Arc<Scenario>>,
    candidates: Vec<PolicyBundle>,
}

impl GenerationRound<'_> {
    /// Number of runs.
    pub fn runs(&self) -> usize {
        (1 + self.candidates.len()) * self.episodes.len()
    }

    /// Number of the run of a candidate, counted from 0, on the first episode.
    pub fn first_of(&self, candidate: usize) -> usize {
        (1 + candidate) * self.episodes.len()
    }

    /// Plays a run by its number.
    ///
    /// # Errors
    /// [`TrainError`] where the run fails.
    pub fn cost(&self, run: usize) -> Result<EpisodeCost, TrainError> {
        let (player, scenario) = (run / self.episodes.len(), &self.episodes[run % self.episodes.len()]);
        let Some(candidate) = player.checked_sub(1) else { return self.of_teacher(scenario) };
        let policy =
            self.candidates[candidate].policy_sharing(ExpectedPeak::default(), self.objective.setup().sharing());
        self.play(scenario, policy.map_err(EntryError::Decoder)?)
    }

    fn of_teacher(&self, scenario: &Arc<Scenario>) -> Result<EpisodeCost, TrainError> {
        let teacher = &self.objective.teacher;
        let policy = (teacher.make)(scenario.seed);
        let Some(information) = teacher.information else { return self.play(scenario, policy) };
        let options = SimOptions { information, ..scenario.options.clone() };
        self.play(&Arc::new(Scenario { options, ..(**scenario).clone() }), policy)
    }

    fn play(&self, scenario: &Arc<Scenario>, policy: Box<dyn Policy>) -> Result<EpisodeCost, TrainError> {
        let mut policy = complete(policy, scenario, self.objective.setup().sharing());
        let outcome = Simulator::new(scenario.clone()).run(&mut *policy).map_err(EnvError::from)?;
        let cost = cost::of_run(scenario, &outcome, self.objective.agent.tail);
        Ok(EpisodeCost { cost, served: ServedRequests::of(scenario, &outcome) })
    }
}

/// Experience from the jobs of these episodes once they are complete: the models trained and the
/// work done.
pub(crate) fn past(episodes: &[Arc<Scenario>]) -> Experience {
    let jobs = episodes.iter().flat_map(|scenario| {
        let workload = &scenario.workload;
        workload.jobs.iter().zip(0..).filter_map(|(job, id)| match job.work {
            Work::Application { index, work_milli } => {
                let app = &workload.applications[usize::from(index)];
                // The name that the policy will be shown.
                let name = workload.model_name(JobId(id));
                Some((name, app.total_work() * f64::from(work_milli) / f64::from(WHOLE)))
            }
            Work::Fixed { .. } | Work::Steps { .. } => None,
        })
    });
    Experience::of(jobs)
}
